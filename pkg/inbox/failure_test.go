package inbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
)

// block holds the row of tally "a" locked, so that a handler that has begun waits in Load. It returns the end of that, and what
// tells that the handler waits.
func (b *bench) block(t *testing.T) (release func(), waiting func() bool) {
	t.Helper()
	ctx := context.Background()
	if _, err := b.pool.Exec(ctx, `insert into tallies values ('a', 0) on conflict do nothing`); err != nil {
		t.Fatal(err)
	}
	tx, err := b.pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, `select from tallies where name = 'a' for update`); err != nil {
		t.Fatal(err)
	}
	release = sync.OnceFunc(func() { _ = tx.Rollback(ctx) })
	t.Cleanup(release)
	const waits = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
	return release, func() bool { return b.number(t, waits) > 0 }
}

// blocked starts a message that waits in Load and returns its outcome to come.
func (b *bench) blocked(ctx context.Context, t *testing.T) (release func(), whole <-chan error) {
	t.Helper()
	release, waiting := b.block(t)
	done := make(chan error, 1)
	go func() {
		_, err := b.handler(ctx, []*messaging.Message{message("m1", `{"tally":"a","amount":1}`)})
		done <- err
	}()
	eventually(t, "the handler waits for the row", waiting)
	return release, done
}

// afterwards checks that a failed batch left nothing behind, and that the same message then has its one effect.
func (b *bench) afterwards(t *testing.T) {
	t.Helper()
	b.idle(t)
	b.expect(t, 0, 0, 0)
	if err := b.handle(t, message("m1", `{"tally":"a","amount":1}`))[0]; err != nil {
		t.Errorf("the message again: %v", err)
	}
	b.expect(t, 1, 1, 1)
}

// CANCELLED spends no attempt, so it may only be said of our own shutdown: anything else would come back for ever.
func TestOnlyOurShutdownIsCancelled(t *testing.T) {
	t.Parallel()
	signal := func(function string) func(*bench, *testing.T, context.CancelFunc) {
		return func(b *bench, t *testing.T, _ context.CancelFunc) {
			query := `select ` + function + `(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
			if _, err := b.pool.Exec(t.Context(), query); err != nil {
				t.Error(err)
			}
		}
	}
	for name, test := range map[string]struct {
		end  func(*bench, *testing.T, context.CancelFunc)
		want retry.Class
	}{
		"shutdown":          {func(_ *bench, _ *testing.T, cancel context.CancelFunc) { cancel() }, retry.Cancelled},
		"query cancelled":   {signal("pg_cancel_backend"), retry.Timeout},
		"connection killed": {signal("pg_terminate_backend"), retry.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			release, whole := b.blocked(ctx, t)
			test.end(b, t, cancel)
			err := <-whole
			class(t, err, test.want)
			release()
			b.afterwards(t)
		})
	}
}

// Somebody else's cancelled context is not our shutdown.
func TestForeignCancellationIsNotCancelled(t *testing.T) {
	t.Parallel()
	p := &processor[command]{config: Config[command]{Consumer: "tallies"}}
	class(t, p.classify(t.Context(), fmt.Errorf("load: %w", context.Canceled)), retry.Timeout)
}

func TestTransactionThatTakesTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handler = b.newHandler(b.pool, func(c *Config[command]) { c.Timeout = 50 * time.Millisecond })
	release, _ := b.block(t)
	_, err := b.handler(t.Context(), []*messaging.Message{message("m1", `{"tally":"a","amount":1}`)})
	class(t, err, retry.Timeout)
	release()
	b.handler = b.newHandler(b.pool)
	b.afterwards(t)
}

func TestPoolThatIsUsedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handler = b.newHandler(b.pool, func(c *Config[command]) { c.Timeout = 50 * time.Millisecond })
	for range b.pool.Config().MaxConns {
		conn, err := b.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	_, err := b.handler(t.Context(), []*messaging.Message{message("m1", `{"tally":"a","amount":1}`)})
	class(t, err, retry.RateLimited)
}

// Somebody else inserted what Load did not see. Trying again sees it.
func TestUniqueViolationIsAConflict(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.pool.Exec(t.Context(), `insert into tallies values ('taken', 0)`); err != nil {
		t.Fatal(err)
	}
	_, err := b.handler(t.Context(), []*messaging.Message{
		message("m1", `{"tally":"a","amount":1}`), message("m2", `{"tally":"taken","do":"insert"}`)})
	class(t, err, retry.Conflict)
	b.idle(t)
	b.expect(t, 0, 0, 0)
}

func TestErrorOfTheDatabaseFailsTheWholeBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.pool.Exec(t.Context(), `alter table tallies add check (total < 100)`); err != nil {
		t.Fatal(err)
	}
	_, err := b.handler(t.Context(), []*messaging.Message{
		message("m1", `{"tally":"a","amount":1}`), message("m2", `{"tally":"a","amount":100}`)})
	class(t, err, retry.Unknown)
	b.handler = b.newHandler(b.pool, func(c *Config[command]) {
		c.Classifiers = []retry.Classifier{func(error) (retry.Class, bool) { return retry.Invariant, true }}
	})
	_, err = b.handler(t.Context(), []*messaging.Message{message("m2", `{"tally":"a","amount":100}`)})
	class(t, err, retry.Invariant)
	b.afterwards(t)
}

// Two instances get overlapping batches in different orders. Inserted as they come, their ids would deadlock within seconds.
func TestOverlappingBatchesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const rounds, size = 5, 1000
	var workers sync.WaitGroup
	for worker := range 4 {
		handler := b.newHandler(b.pool, func(c *Config[command]) {
			c.Begin = func() Work[command] { return &tally{totals: map[string]int64{}, hooks: &hooks{}} }
		})
		random := rand.New(rand.NewPCG(seed, uint64(worker)))
		workers.Go(func() {
			for round := range rounds {
				batch := make([]*messaging.Message, size)
				for i, n := range random.Perm(size) {
					batch[i] = message(fmt.Sprintf("r%d-m%d", round, n), `{"tally":"a","amount":1}`)
				}
				if _, err := handler(context.Background(), batch); err != nil && retry.ClassOf(err) != retry.Conflict {
					t.Errorf("round %d: %v", round, err)
				} else if err != nil {
					t.Errorf("round %d: workers got in each other's way: %v", round, err)
				}
			}
		})
	}
	workers.Wait()
	b.expect(t, rounds*size, rounds*size, rounds*size)
}

// The first copy is still under way when the second one comes; then the first one fails. The second is now the first.
func TestCopyWaitsForTheOutcomeOfTheFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := message("m1", `{"tally":"a","amount":1}`)
	hash, err := m.PayloadHash()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), insertSQL, "tallies", []string{"m1"}, [][]byte{hash[:]}); err != nil {
		t.Fatal(err)
	}
	done := make(chan []error, 1)
	go func() {
		results, err := b.handler(context.Background(), []*messaging.Message{m})
		if err != nil {
			t.Error(err)
		}
		done <- results
	}()
	const waits = `select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
	eventually(t, "the copy waits", func() bool { return b.number(t, waits) == 1 })
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if results := <-done; len(results) != 1 || results[0] != nil {
		t.Errorf("results: %v", results)
	}
	b.expect(t, 1, 1, 1)
}

// A server in another isolation level than ours would let one of two copies fail instead of being absorbed.
func TestIsolationLevelOfTheServerDoesNotMatter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	config := b.pool.Config()
	if _, err := b.pool.Exec(t.Context(), "alter database "+pgx.Identifier{config.ConnConfig.Database}.Sanitize()+
		" set default_transaction_isolation = 'serializable'"); err != nil {
		t.Fatal(err)
	}
	b.pool.Reset()
	var copies sync.WaitGroup
	for range 10 {
		copies.Go(func() {
			if results, err := b.handler(context.Background(), []*messaging.Message{message("m1", `{"tally":"a","amount":1}`)}); err != nil || results[0] != nil {
				t.Errorf("%v, %v", results, err)
			}
		})
	}
	copies.Wait()
	b.expect(t, 1, 1, 1)
}
