package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMessageTakesEffectOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for range 3 {
		m := message("m1", `{"tally":"a","amount":2500}`)
		if err := b.handle(t, m)[0]; err != nil {
			t.Errorf("result: %v", err)
		}
	}
	b.expect(t, 2500, 1, 1)
	if b.hooks.saves != 1 {
		t.Errorf("saved %d times: duplicates cost writes", b.hooks.saves)
	}
	b.idle(t)
}

// Two copies that are handled at the same moment both find the inbox empty when they ask first and insert later.
func TestTwentyCopiesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	second := b.newHandler(connect(t, b.pool.Config().ConnString(), nil))
	b.hooks = hooks{} // shared by goroutines below, and only read
	var start, done sync.WaitGroup
	start.Add(1)
	for i := range 20 {
		handler := b.handler
		if i%2 == 1 {
			handler = second
		}
		done.Go(func() {
			start.Wait()
			results, err := handler(context.Background(), []*messaging.Message{message("m1", `{"tally":"a","amount":2500}`)})
			if err != nil || results[0] != nil {
				t.Errorf("copy %d: %v, %v", i, results, err)
			}
		})
	}
	start.Done()
	done.Wait()
	b.expect(t, 2500, 1, 1)
}

func TestOtherPayloadUnderAKnownID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handle(t, message("m1", `{"tally":"a","amount":9007199254740992}`))
	results := b.handle(t,
		message("m1", `{"tally":"a","amount":9007199254740993}`), // the same number to a float
		message("m2", `{"tally":"a","amount":1}`))
	class(t, results[0], retry.Invariant)
	if results[1] != nil {
		t.Errorf("its neighbour: %v", results[1])
	}
	otherType := message("m1", `{"tally":"a","amount":9007199254740992}`)
	otherType.Type = "Tally.Subtract"
	class(t, b.handle(t, otherType)[0], retry.Invariant)
	b.expect(t, 9007199254740993, 2, 2)
}

func TestTheSameSaidDifferentlyIsADuplicate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handle(t, message("m1", `{"tally":"a","amount":5}`))
	again := message("m1", `{ "amount": 5, "tally": "a" }`)
	again.OccurredAt, again.CausationID, again.TraceParent = time.Now().Add(time.Hour), "another cause", "another trace"
	if err := b.handle(t, again)[0]; err != nil {
		t.Errorf("result: %v", err)
	}
	b.expect(t, 5, 1, 1)
}

func TestFailedMessageLeavesItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handle(t, message("seen", `{"tally":"a","amount":1}`))
	results := b.handle(t,
		message("m1", `{"tally":"a","amount":10}`),
		message("bad", `{"tally":"a","amount":100,"do":"fail"}`),
		message("garbage", `{"tally":7}`),
		message("seen", `{"tally":"a","amount":1}`),
		message("m2", `{"tally":"a","amount":1000}`))
	class(t, results[1], retry.NotFound)
	class(t, results[2], retry.Validation)
	for _, i := range []int{0, 3, 4} {
		if results[i] != nil {
			t.Errorf("message %d: %v", i, results[i])
		}
	}
	b.expect(t, 1011, 3, 3)
	// It is not taken for done: the retry has its effect.
	retried := message("bad", `{"tally":"a","amount":100}`)
	if err := b.handle(t, retried)[0]; err != nil {
		t.Errorf("retried: %v", err)
	}
	b.expect(t, 1111, 4, 4)
}

func TestBatchThatFailsAltogetherIsNotSeen(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	results := b.handle(t, message("m1", `{"tally":"a","do":"fail"}`), message("m2", `{"tally":"a","do":"fail"}`))
	class(t, results[0], retry.NotFound)
	class(t, results[1], retry.NotFound)
	b.expect(t, 0, 0, 0)
	b.idle(t)
}

// What a panic leaves of the unit of work may be anything, so nothing of it may be saved.
func TestPanicInApply(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	results := b.handle(t,
		message("m1", `{"tally":"a","amount":1}`),
		message("bad", `{"tally":"a","do":"panic"}`),
		message("m2", `{"tally":"a","amount":2}`),
		message("worse", `{"tally":"a","do":"panic in Parse"}`))
	for _, i := range []int{1, 3} {
		class(t, results[i], retry.Unknown)
		if !strings.Contains(fmt.Sprint(results[i]), "inbox_test.go") {
			t.Errorf("no stack that leads to the panic: %v", results[i])
		}
	}
	if results[0] != nil || results[2] != nil {
		t.Errorf("its neighbours: %v", results)
	}
	b.expect(t, 3, 2, 2)
	b.idle(t)
}

func TestPanicOutsideOfApplyFailsTheBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	boom := func() { panic("boom") }
	for name, h := range map[string]hooks{"Begin": {begin: boom}, "Load": {load: boom}, "Save": {save: boom}} {
		b.hooks = h
		_, err := b.handler(t.Context(), []*messaging.Message{message("m1", `{"tally":"a","amount":1}`)})
		class(t, err, retry.Unknown)
		if err == nil || !strings.Contains(err.Error(), "boom") {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.hooks = hooks{}
	b.idle(t)
	b.expect(t, 0, 0, 0)
}

// A batch never holds two copies; should it, they must not become two effects.
func TestCopiesInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	results := b.handle(t,
		message("m1", `{"tally":"a","amount":1}`),
		message("m1", `{"tally":"a","amount":1}`),
		message("m1", `{"tally":"a","amount":2}`))
	if results[0] != nil || results[1] != nil {
		t.Errorf("copies: %v", results)
	}
	class(t, results[2], retry.Invariant)
	b.expect(t, 1, 1, 1)
}

// What fails before the database must fail without it, or a database that is down makes good-for-nothing messages wait.
func TestInvalidMessagesNeedNoDatabase(t *testing.T) {
	t.Parallel()
	pool := connect(t, "postgres://nobody@127.0.0.1:1/none", nil)
	b := &bench{pool: pool}
	b.handler = b.newHandler(pool)
	class(t, b.handle(t, message("m1", `{"tally":7}`))[0], retry.Validation)
	_, err := b.handler(t.Context(), []*messaging.Message{message("m2", `{"tally":"a"}`)})
	class(t, err, retry.Timeout)
}

func TestConsumersDoNotHideMessagesFromEachOther(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.handle(t, message("m1", `{"tally":"a","amount":1}`))
	b.handler = b.newHandler(b.pool, func(c *Config[command]) { c.Consumer = "other" })
	b.handle(t, message("m1", `{"tally":"a","amount":1}`))
	b.expect(t, 2, 2, 2)
}

// roundTrips counts how often the program waits for the server, and the statements it sends.
type roundTrips struct{ trips, statements int }

func (r *roundTrips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	r.trips, r.statements = r.trips+1, r.statements+1
	return ctx
}

func (r *roundTrips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (r *roundTrips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	r.trips, r.statements = r.trips+1, r.statements+data.Batch.Len()
	return ctx
}

func (r *roundTrips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (r *roundTrips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func TestTwoRoundTripsForABatch(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "inbox")
	b := newBenchAt(t, url)
	counter := &roundTrips{}
	b.handler = b.newHandler(connect(t, url, counter))
	number := 0
	fresh := func(data string) *messaging.Message {
		number++
		return message(fmt.Sprintf("m%d", number), data)
	}
	batch := func(n int, data string) []*messaging.Message {
		messages := make([]*messaging.Message, n)
		for i := range messages {
			messages[i] = fresh(data)
		}
		return messages
	}
	good, bad := `{"tally":"a","amount":1}`, `{"tally":"a","do":"fail"}`
	known := batch(3, good)
	b.handle(t, known...)
	for name, test := range map[string]struct {
		batch      []*messaging.Message
		statements int // begin, insert ids, load | save, outbox, [use the key, forget failed, compare duplicates,] commit
	}{
		"one":                    {batch(1, good), 6},
		"fifty":                  {batch(50, good), 6},
		"some failing":           {append(batch(10, good), batch(2, bad)...), 8},
		"some failing, some old": {slices.Concat(batch(10, good), batch(2, bad), known), 9},
		"all old":                {known, 6}, // …, use the key, compare, rollback
	} {
		*counter = roundTrips{}
		b.handle(t, test.batch...)
		if counter.trips != 2 || counter.statements != test.statements {
			t.Errorf("%s: %d round trips with %d statements, want 2 with %d", name, counter.trips, counter.statements, test.statements)
		}
	}
}

func TestResultsAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(c *Config[command]) { c.Registerer = registry })
	b.newHandler(b.pool, func(c *Config[command]) { c.Registerer, c.Consumer = registry, "other" }) // shares the metric
	b.handle(t, message("m1", `{"tally":"a"}`), message("m2", `{"tally":"a","do":"fail"}`))
	b.handle(t, message("m1", `{"tally":"a"}`), message("m3", `{"tally":7}`))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, m := range families[0].GetMetric() {
		got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = m.GetCounter().GetValue()
	}
	want := map[string]float64{"tallies done": 1, "tallies duplicate": 1, "tallies failed": 2, "other done": 0}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %v, want %v", name, got[name], n)
		}
	}
}

func TestHandlerRefusesToBeWiredWrongly(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Handler(Config[command]{Pool: &pgxpool.Pool{}})
}
