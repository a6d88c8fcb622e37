package outbox

import (
	"context"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// startOpen starts an outbox whose direct way is open. Its relay finds nothing by itself within the test.
func startOpen(t *testing.T, config Config) *Outbox {
	t.Helper()
	o := start(t, config)
	openDirect(t, o)
	return o
}

// openDirect sends a message by the relay, whose confirm opens the direct way.
func openDirect(t *testing.T, o *Outbox) {
	t.Helper()
	send(t, o, newMessage(t, "first"))
	eventually(t, "the direct way is open", o.direct.open.Load)
	awaitEmpty(t, o.config.Pool)
}

// commit queues messages in a transaction of their own and commits it.
func commit(t *testing.T, o *Outbox, messages ...Message) *Queued {
	t.Helper()
	b := &pgx.Batch{}
	q := o.Queue(b, messages)
	if err := o.config.Pool.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	return q
}

func TestCommittedMessagesGoWithoutARelay(t *testing.T) {
	t.Parallel()
	b := &broker{}
	o := startOpen(t, Config{Pool: newPool(t), Publisher: b})
	messages := newMessages(t, 100)
	commit(t, o, messages...).Committed()
	awaitEmpty(t, o.config.Pool)
	for _, m := range messages {
		if n := b.times(m.ID); n != 1 {
			t.Errorf("%s published %d times", m.ID, n)
		}
	}
	if n := testutil.ToFloat64(o.metrics.direct); n != 100 {
		t.Errorf("%v went directly, want 100", n)
	}
}

func TestNothingGoesBeforeTheCommit(t *testing.T) {
	t.Parallel()
	b := &broker{}
	o := startOpen(t, Config{Pool: newPool(t), Publisher: b, Poll: 10 * time.Millisecond})
	tx, err := o.config.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	o.Queue(batch, []Message{newMessage(t, "rolled back")})
	if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	commit(t, o, newMessage(t, "committed")).Committed()
	awaitEmpty(t, o.config.Pool)
	if b.times("rolled back") != 0 || b.times("committed") != 1 {
		t.Errorf("published %d and %d times", b.times("rolled back"), b.times("committed"))
	}
}

// A process dies between the commit and the publishing. The relay of another one leaves the rows alone while they are held, and sends
// them afterwards.
func TestRowsOfADeadProcessAreSentWhenTheirHoldIsOver(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	dead := startOpen(t, Config{Pool: pool, Publisher: b})
	dead.hold = time.Hour
	commit(t, dead, newMessage(t, "held")) // and no Committed
	start(t, Config{Pool: pool, Publisher: b, Poll: 10 * time.Millisecond})
	insert(t, dead, newMessage(t, "free"))
	eventually(t, "the free row is sent", func() bool { return b.times("free") == 1 })
	if n := rowCount(t, pool, "next_attempt_at > clock_timestamp() + interval '59 minutes'"); n != 1 || b.times("held") != 0 {
		t.Errorf("%d rows are held; it was published %d times", n, b.times("held"))
	}
	if _, err := pool.Exec(t.Context(), "update outbox set next_attempt_at = now()"); err != nil {
		t.Fatal(err)
	}
	awaitEmpty(t, pool)
	if n := b.times("held"); n != 1 {
		t.Errorf("published %d times", n)
	}
}

// Whatever is not confirmed is the relay's at once, and the relay alone decides what becomes of it. No sweep comes within the test: the
// release has to wake a relay, and to lead it back to a row that others have overtaken.
func TestWhatIsNotConfirmedGoesByTheRelay(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]messaging.Outcome{"nacked": messaging.Nacked, "returned": messaging.Returned, "unknown": messaging.Unknown} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &broker{}
			o := startOpen(t, Config{Pool: newPool(t), Publisher: b})
			o.hold = 2 * deadline // longer than eventually waits: only a release lets the relay have it
			overtake(o)
			b.set(func(batch []messaging.Publishing) (outcomes []messaging.Outcome, err error) {
				b.set(nil) // once
				for _, p := range batch {
					outcome := messaging.Acked
					if p.MessageId != "good" {
						outcome = fails
					}
					outcomes = append(outcomes, outcome)
				}
				if fails == messaging.Unknown {
					err = errNotConnected
				}
				return outcomes, err
			})
			commit(t, o, newMessage(t, "bad"), newMessage(t, "good"), newMessage(t, "worse")).Committed()
			awaitEmpty(t, o.config.Pool)
			if b.times("good") != 1 || b.times("bad") != 2 || b.times("worse") != 2 {
				t.Errorf("the good one was published %d times, the bad ones %d and %d", b.times("good"), b.times("bad"), b.times("worse"))
			}
			if n := testutil.ToFloat64(o.metrics.published.WithLabelValues(name)); n != 2 {
				t.Errorf("%v tries are counted as %s, want those of the direct way", n, name)
			}
		})
	}
}

// overtake has claims start far above any row of a test, as they do when many others have been sent meanwhile.
func overtake(o *Outbox) {
	const farAbove = 1 << 40
	f := &o.frontier
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hint, f.candidate, f.highest = farAbove, farAbove, farAbove
}

// With the broker away rows are written without a hold: the relay has them as soon as it is back, and nobody else asks.
func TestTheDirectWayClosesWithTheBroker(t *testing.T) {
	t.Parallel()
	b := &broker{}
	o := startOpen(t, Config{Pool: newPool(t), Publisher: b, Poll: 20 * time.Millisecond})
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		return make([]messaging.Outcome, len(batch)), errNotConnected
	})
	commit(t, o, newMessage(t, "lost")).Committed()
	eventually(t, "the direct way is closed", func() bool { return !o.direct.open.Load() })
	q := commit(t, o, newMessage(t, "next"))
	// The relay may have tried it meanwhile, and postponed it.
	if n := rowCount(t, o.config.Pool, "message_id = 'next' and (next_attempt_at is null or last_error is not null)"); q.Hold() != nil || n != 1 {
		t.Errorf("held for %v, %d rows are the relay's", q.Hold(), n)
	}
	b.set(nil)
	q.Committed()
	awaitEmpty(t, o.config.Pool)
	eventually(t, "it is open again", o.direct.open.Load)
}

// A body that no consumer could read is published by neither way: the relay sets it aside.
func TestWhatIsNoJSONDoesNotGoDirectly(t *testing.T) {
	t.Parallel()
	b := &broker{}
	o := startOpen(t, Config{Pool: newPool(t), Publisher: b})
	bad := newMessage(t, "bad")
	bad.Body = []byte("not JSON")
	commit(t, o, bad, newMessage(t, "good")).Committed()
	eventually(t, "it alone is left, set aside", func() bool {
		return rowCount(t, o.config.Pool, "true") == 1 && rowCount(t, o.config.Pool, "message_id = 'bad' and set_aside_at is not null") == 1
	})
	if b.times("bad") != 0 || b.times("good") != 1 {
		t.Errorf("the bad one was published %d times, the good one %d", b.times("bad"), b.times("good"))
	}
}

// While the direct way is closed, a commit wakes the relay.
func TestCommittedMessagesWakeTheRelayWhileTheDirectWayIsClosed(t *testing.T) {
	t.Parallel()
	o := newOutbox(Config{Pool: newPool(t), Publisher: &broker{}}) // nothing of it runs
	q := commit(t, o, newMessage(t, "next"))
	if n := rowCount(t, o.config.Pool, "next_attempt_at is null"); q.Hold() != nil || n != 1 {
		t.Errorf("held for %v, %d rows are the relay's", q.Hold(), n)
	}
	if commit(t, o).Committed(); len(o.wake) != 0 {
		t.Error("a transaction without messages wakes the relay")
	}
	if q.Committed(); len(o.wake) != 1 {
		t.Error("the relay is not woken")
	}
}

// What is being published directly at the stop has time to be confirmed, and is deleted.
func TestStopWaitsForDirectPublishings(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, StopGrace: deadline})
	stop := run(t, o)
	openDirect(t, o)
	asked, confirm := make(chan struct{}), make(chan struct{})
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		close(asked)
		<-confirm
		return ackAll(batch)
	})
	commit(t, o, newMessage(t, "late")).Committed()
	<-asked
	var stopping sync.WaitGroup
	stopping.Go(stop)
	eventually(t, "it stops", func() bool { return !o.direct.open.Load() })
	close(confirm)
	stopping.Wait()
	if n := rowCount(t, pool, "true"); n != 0 || b.times("late") != 1 {
		t.Errorf("%d rows are left, published %d times", n, b.times("late"))
	}
	if q := o.Prepare(newMessages(t, 1)); q.Hold() != nil {
		t.Error("a row that is written after the stop is held")
	}
}

// A handler that commits after the stop publishes nothing: nobody would delete the row, and the next process would send it a second time.
func TestWhatIsCommittedAfterTheStopIsLeftToTheNextProcess(t *testing.T) {
	t.Parallel()
	b := &broker{}
	o := newOutbox(Config{Pool: newPool(t), Publisher: b})
	stop := run(t, o)
	openDirect(t, o)
	o.hold = time.Hour
	late := commit(t, o, newMessage(t, "late"))
	insert(t, o, newMessage(t, "farewell")) // and nobody wakes a relay
	stop()
	late.Committed()
	o.direct.running.Wait()
	if n := rowCount(t, o.config.Pool, "next_attempt_at is not null"); n != 1 || b.times("late") != 0 {
		t.Errorf("%d rows are held, published %d times", n, b.times("late"))
	}
	if o.direct.open.Load() || b.times("farewell") != 1 {
		t.Error("the confirm of what the relay sent at the stop has opened the direct way again")
	}
}

// The direct way holds a bounded number of messages; what is beyond goes by the relay.
func TestTheDirectWayIsBounded(t *testing.T) {
	t.Parallel()
	o := newOutbox(Config{Pool: newPool(t), Publisher: &broker{}})
	o.direct.allow(true)
	if o.Prepare(newMessages(t, maxDirect)).Hold() == nil || o.Prepare(newMessages(t, maxDirect+1)).Hold() != nil {
		t.Errorf("the bound is not %d", maxDirect)
	}
	o.direct.inFlight.Add(maxDirect)
	if o.Prepare(newMessages(t, 1)).Hold() != nil {
		t.Error("more than the bound are under way")
	}
}

// Rows are matched with their messages by id, whatever the order in which they come back.
func TestKeepFindsTheMessageOfARow(t *testing.T) {
	t.Parallel()
	o := newOutbox(Config{Pool: newPool(t), Publisher: &broker{}})
	o.direct.allow(true)
	q := o.Prepare([]Message{newMessage(t, "a"), newMessage(t, "b"), newMessage(t, "c")})
	for id, name := range []string{"c", "a", "strange", "b"} {
		q.Keep(int64(id), name)
	}
	for i, want := range []string{"c", "a", "b"} {
		if i >= len(q.rows) || q.rows[i].ID != want {
			t.Fatalf("row %d is not that of %s: %+v", i, want, q.rows)
		}
	}
}

// A database that is away when confirmed rows are to be deleted: they stay noted, and go when it is back.
func TestConfirmedRowsOutliveADatabaseFailure(t *testing.T) {
	t.Parallel()
	o := newOutbox(Config{Pool: newPool(t), Publisher: &broker{}}) // nothing of it runs
	insert(t, o, newMessages(t, 2)...)
	o.direct.note([]int64{1}, []int64{2})
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.settleNoted(away); err == nil {
		t.Fatal("settled without a database")
	}
	if err := o.settleNoted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, o.config.Pool, "id = 2"); n != 1 || rowCount(t, o.config.Pool, "true") != 1 {
		t.Errorf("%d of the released row, %d rows in all", n, rowCount(t, o.config.Pool, "true"))
	}
	if high := o.frontier.high(); high != 1 { // nothing else tells the claims where to start when nearly all goes directly
		t.Errorf("the frontier is at %d, want the id of the confirmed row", high)
	}
}

// A direct publishing ends without a confirm when a relay has tried the row already, because its hold had run out: the wait that the relay
// has set stays.
func TestALateReleaseDoesNotCutTheWaitOfTheRelayShort(t *testing.T) {
	t.Parallel()
	b := &broker{}
	b.set(answers(func(messaging.Publishing) messaging.Outcome { return messaging.Nacked }))
	o := newOutbox(Config{Pool: newPool(t), Publisher: b}) // nothing of it runs
	o.hold = time.Hour
	insert(t, o, newMessage(t, "postponed"))
	if _, err := o.relayBatch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	o.direct.allow(true)
	commit(t, o, newMessage(t, "held"))
	if n := rowCount(t, o.config.Pool, "next_attempt_at is not null"); n != 2 {
		t.Fatalf("%d rows wait, want 2", n)
	}
	o.direct.note(nil, []int64{1, 2})
	if err := o.settleNoted(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, o.config.Pool, "(message_id = 'postponed') = (next_attempt_at is not null)"); n != 2 {
		t.Errorf("%d of 2 rows are as they should be: the postponed one waits, the held one is released", n)
	}
}

// A process is paused between the commit and the publishing, for longer than the hold: the relay of another one has sent the rows by then,
// and it sends nothing any more.
func TestWhoIsPausedForLongerThanTheHoldPublishesNothing(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	inTime := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		if err := ctx.Err(); err != nil { // as a Session does
			return make([]messaging.Outcome, len(batch)), err
		}
		return b.Publish(ctx, batch)
	})
	paused := startOpen(t, Config{Pool: pool, Publisher: inTime})
	paused.hold = 50 * time.Millisecond
	late := commit(t, paused, newMessages(t, 3)...)
	start(t, Config{Pool: pool, Publisher: b, Poll: 10 * time.Millisecond})
	awaitEmpty(t, pool)
	sent := b.count()
	late.Committed()
	eventually(t, "it has given up", func() bool { return paused.direct.inFlight.Load() == 0 })
	if n := b.count(); n != sent || sent != 3+1 {
		t.Errorf("published %d messages, and %d more afterwards", sent, n-sent)
	}
	if !paused.direct.open.Load() {
		t.Error("the direct way is closed, as if the broker were away")
	}
}
