package outbox

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func TestRelaySendsWhatWasCommittedAndNothingElse(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b})

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	o.Queue(batch, []Message{newMessage(t, "rolled-back")})
	if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, o, newMessages(t, 3)...)
	awaitEmpty(t, pool)
	if b.count() != 3 || b.times("rolled-back") != 0 {
		t.Errorf("published %d messages, the rolled back one %d times", b.count(), b.times("rolled-back"))
	}
}

func TestQueueOfNothingAddsNoStatement(t *testing.T) {
	t.Parallel()
	b := &pgx.Batch{}
	New(Config{Pool: &pgxpool.Pool{}, Publisher: &broker{}, Exchange: "x"}).Queue(b, nil)
	if b.Len() != 0 {
		t.Errorf("%d statements", b.Len())
	}
}

// With the poll an hour away only the signal can be what sends.
func TestWakeSendsAtOnce(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b})
	for i := range 20 {
		id := fmt.Sprintf("m%d", i)
		started := time.Now()
		send(t, o, newMessage(t, id))
		eventually(t, id+" is published", func() bool { return b.times(id) == 1 })
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("message %d took %s", i, took)
		}
	}
}

func TestMoreThanOneBatchGoesWithOneSignal(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b, BatchSize: 10})
	send(t, o, newMessages(t, 101)...)
	awaitEmpty(t, pool)
	if b.count() != 101 {
		t.Errorf("published %d of 101", b.count())
	}
}

// A process that died after its commit has told nobody.
func TestSweepSendsWhatNobodySignalled(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, BatchSize: 10})
	insert(t, o, newMessages(t, 25)...) // before the start: more than the first sweep takes
	run(t, o)
	awaitEmpty(t, pool)
	insert(t, o, newMessage(t, "later"))
	awaitEmpty(t, pool)
	if b.count() != 26 {
		t.Errorf("published %d of 26", b.count())
	}
}

// Under a load that never ends a sweep must not go on for ever at the upper end: it is what finds late commits at the lower one.
func TestSweepEndsUnderEndlessLoad(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, BatchSize: 5})
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		insert(t, o, newMessages(t, 5)...) // as many again as were taken
		return ackAll(batch)
	})
	insert(t, o, newMessages(t, 5)...)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for range 3 {
		if _, err := o.sweepOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if b.count() == 0 || b.count() > 50 {
		t.Errorf("three sweeps published %d messages", b.count())
	}
	select {
	case <-o.wake:
	default:
		t.Error("the relays were not told that there is more")
	}
}

// Ids are taken in one order and committed in another. A relay that remembers the highest id it has sent, and looks only above
// it, loses the message of a transaction that commits late.
func TestLateCommitIsSent(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond})
	late, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	forRelay(o, batch, newMessage(t, "late"))
	if err := late.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	send(t, o, newMessages(t, 50)...)
	// The open transaction stalls nobody, and the frontier passes its id.
	eventually(t, "the frontier is above the late row", func() bool { return o.frontier.low(time.Now()) > 1 })
	if b.count() != 50 {
		t.Fatalf("published %d of 50 beside the open transaction", b.count())
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the late message is sent", func() bool { return b.times("late") == 1 })
}

func TestRelaysShareTheWork(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	one := start(t, Config{Pool: pool, Publisher: b, BatchSize: 16, Poll: 20 * time.Millisecond})
	two := start(t, Config{Pool: pool, Publisher: b, BatchSize: 16, Poll: 20 * time.Millisecond})
	messages := newMessages(t, 2000)
	for chunk := range slices.Chunk(messages, 50) {
		insert(t, one, chunk...)
		one.Wake()
		two.Wake()
	}
	awaitEmpty(t, pool)
	for _, m := range messages {
		if n := b.times(m.ID); n != 1 {
			t.Errorf("%s published %d times", m.ID, n)
		}
	}
}

// Stopping is not a reason to publish everything under way once more.
// The consumers stop before the relay does: what their last handlers have committed still leaves with this process.
func TestStopSendsWhatWasCommittedBefore(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b})
	stopped, stop := context.WithCancel(t.Context())
	stop()
	send(t, o, newMessage(t, "m1"))
	if err := o.Run(stopped); err != nil {
		t.Fatal(err)
	}
	if n := b.times("m1"); n != 1 || rowCount(t, pool, "true") != 0 {
		t.Errorf("sent %d times before the end, %d rows left", n, rowCount(t, pool, "true"))
	}
}

func TestStopLetsTheBatchUnderWayFinish(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	entered, release := make(chan struct{}), make(chan struct{})
	slow := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		close(entered)
		select {
		case <-release:
			return ackAll(batch)
		case <-ctx.Done():
			return make([]messaging.Outcome, len(batch)), ctx.Err()
		}
	})
	o := newOutbox(Config{Pool: pool, Publisher: slow})
	insert(t, o, newMessages(t, 5)...)
	stop := run(t, o)
	<-entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("Run ended with a batch under way")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	<-stopped
	if n := rowCount(t, pool, "true"); n != 0 {
		t.Errorf("%d rows are left to be sent again", n)
	}
}

// A broker that has stopped answering must not hold up the end of the process.
func TestStopDoesNotWaitForAHangingBroker(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	entered := make(chan struct{})
	hanging := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		close(entered)
		<-ctx.Done()
		return make([]messaging.Outcome, len(batch)), ctx.Err()
	})
	o := newOutbox(Config{Pool: pool, Publisher: hanging, PublishTimeout: time.Hour})
	insert(t, o, newMessage(t, "m"))
	stop := run(t, o)
	<-entered
	stop() // fails the test by itself when it takes too long
	if n := rowCount(t, pool, "attempts = 0"); n != 1 {
		t.Error("the row was lost or blamed")
	}
}
