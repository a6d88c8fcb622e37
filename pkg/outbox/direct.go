package outbox

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
)

// The direct way: who has committed messages still holds them in memory, so it publishes them at once instead of having a relay read
// them back. That saves a claim for each batch and, more than that, a wait: a relay that waits for confirms claims nothing, the
// direct way has any number of publishings under way.
//
// It is a shortcut and the rows stay the truth. They are written with a hold on them, which keeps relays off for a few seconds. What the
// broker has confirmed by then is deleted; whatever else happened (no confirm, a return, a refusal, a process that died) is the
// relay's business again as soon as the hold is released or has run out. The relay alone counts attempts and sets rows aside.
const (
	// defaultHold is how long a row that is published directly is left alone, and so what a message that was committed just before a
	// crash has to wait for the relay of another process.
	defaultHold = 3 * time.Second
	// maxDirect bounds the messages that are published directly at once, and so the memory they take. What is beyond goes by the relay.
	maxDirect = 4096
	// gather is how long confirmed rows are collected before they are deleted together: at thin traffic a delete for each message would
	// cost as much as its insert. A crash sends as many again.
	gather = 100 * time.Millisecond
)

// direct is the state of the direct way.
type direct struct {
	// open is set by a relay that has got confirms and cleared by the first failure here: with the broker away rows are written
	// without a hold, and only the relay tries, with its backoff.
	open     atomic.Bool
	inFlight atomic.Int64 // messages

	mu      sync.Mutex
	running sync.WaitGroup // the publishings; nothing is added once stopped is set
	stopped bool
	sent    []int64 // confirmed, to be deleted
	back    []int64 // to be released to the relay
	settle  chan struct{}
}

// Queued are messages that travel with a transaction. Queue makes them, inserts their rows and leaves one thing to the caller: Committed,
// after the commit.
//
// A service that inserts the rows by a statement of its own takes four steps: Prepare before the statement, Hold for its next_attempt_at,
// Keep for each row that it returns, Committed after the commit. None of them, left out, loses a message. Rows without the hold may be sent
// by a relay as well as directly, that is twice; what is not kept, or not told to be committed, waits for the relay until its hold has run
// out.
type Queued struct {
	outbox   *Outbox
	messages []Message
	direct   bool
	deadline time.Time
	rows     []*row
}

// Hold is what a statement that inserts rows by hand adds to clock_timestamp() to get next_attempt_at, as an interval: null for rows
// that the relay shall take at once.
func (q *Queued) Hold() *time.Duration {
	if !q.direct {
		return nil
	}
	return &q.outbox.hold
}

// Keep notes the id that the row of a message got. Rows that are inserted by hand return id and message_id for this.
func (q *Queued) Keep(id int64, messageID string) {
	if !q.direct {
		return
	}
	for i := range q.messages {
		// Rows come back in the order of the messages as a rule, so this looks at one.
		at := (len(q.rows) + i) % len(q.messages)
		if q.messages[at].ID == messageID {
			q.rows = append(q.rows, &row{Message: q.messages[at], id: id})
			return
		}
	}
}

// Committed says that the transaction has committed: its messages are on their way when it returns, and it waits for nothing. When it is
// never called, or the process dies before it is, the relay sends them a few seconds later.
func (q *Queued) Committed() {
	switch {
	case !q.direct:
		if len(q.messages) > 0 {
			q.outbox.Wake()
		}
	case len(q.rows) > 0:
		q.outbox.publishDirectly(q.rows, q.deadline)
	}
}

// Prepare decides by which way messages go that are to be inserted by hand. The usual way is Queue.
func (o *Outbox) Prepare(messages []Message) *Queued {
	d := &o.direct
	q := &Queued{outbox: o, messages: messages, deadline: time.Now().Add(o.hold)}
	q.direct = len(messages) > 0 && d.open.Load() && d.inFlight.Load()+int64(len(messages)) <= maxDirect
	return q
}

// publishDirectly publishes rows and notes what is to become of each. It returns at once.
func (o *Outbox) publishDirectly(rows []*row, deadline time.Time) {
	d := &o.direct
	if time.Until(deadline) < o.hold/2 {
		// The statement has waited for long, or the process has. What fails for want of time would be taken for the broker's fault.
		back := make([]int64, len(rows))
		for i, r := range rows {
			back[i] = r.id
		}
		d.note(nil, back)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return // their hold runs out
	}
	n := int64(len(rows))
	d.inFlight.Add(n)
	d.running.Go(func() {
		defer d.inFlight.Add(-n)
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		o.publishHeld(ctx, rows)
	})
}

func (o *Outbox) publishHeld(ctx context.Context, rows []*row) {
	fit := make([]*row, 0, len(rows))
	for _, r := range rows {
		if jsontext.Value(r.Body).IsValid() { // the relay sets the others aside
			fit = append(fit, r)
		}
	}
	err := o.failConfirmed(ctx, fit, o.publishTogether(ctx, fit))
	if err != nil {
		o.direct.allow(false)
		o.config.Logger.LogAttrs(ctx, slog.LevelWarn, "outgoing messages are left to the relay", slog.Int("messages", len(rows)), slog.Any("error", err))
	}
	var sent, back []int64
	for _, r := range rows {
		if r.fate == acked {
			sent = append(sent, r.id)
		} else {
			back = append(back, r.id)
		}
	}
	o.metrics.tried(rows)
	o.metrics.direct.Add(float64(len(sent)))
	o.direct.note(sent, back)
}

// allow opens or closes the direct way; it stays closed once it is stopped.
func (d *direct) allow(open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open.Store(open && !d.stopped)
}

func (d *direct) note(sent, back []int64) {
	d.mu.Lock()
	d.sent, d.back = append(d.sent, sent...), append(d.back, back...)
	d.mu.Unlock()
	select {
	case d.settle <- struct{}{}:
	default:
	}
}

// releaseSQL ends the hold of rows, and of no row more: a publishing that took longer than the hold finds that a relay has tried the row
// meanwhile, and cutting short the wait it set would have the row tried again at once. Such a row shows it: postponeSQL leaves a reason.
const releaseSQL = `update outbox set next_attempt_at = null where id = any ($1::bigint[]) and last_error is null`

// settleDirect deletes what was confirmed and releases the rest, in bulk, until ctx ends.
func (o *Outbox) settleDirect(ctx context.Context) {
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.direct.settle:
		}
		sleep(ctx, gather)
		if err := o.settleSoon(ctx); err != nil {
			failures++
			o.pause(ctx, failures, err)
			continue
		}
		failures = 0
	}
}

// settleSoon gives up on a database that hangs, and soon when ctx ends.
func (o *Outbox) settleSoon(ctx context.Context) error {
	ctx, end := outlive(ctx, o.config.StopGrace/2)
	defer end()
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	return o.settleNoted(ctx)
}

// settleNoted carries out what is noted. After an error it is noted again.
func (o *Outbox) settleNoted(ctx context.Context) error {
	d := &o.direct
	d.mu.Lock()
	sent, back := d.sent, d.back
	d.sent, d.back = nil, nil
	d.mu.Unlock()
	if len(sent)+len(back) == 0 {
		return nil
	}
	b := &pgx.Batch{} // one transaction
	b.Queue(configureSQL)
	if len(sent) > 0 {
		b.Queue(deleteSQL, sent)
	}
	if len(back) > 0 {
		b.Queue(releaseSQL, back)
	}
	if err := o.config.Pool.SendBatch(ctx, b).Close(); err != nil {
		d.note(sent, back)
		return err
	}
	if len(sent) > 0 {
		o.frontier.finished(sent[len(sent)-1], time.Now())
	}
	if len(back) > 0 {
		o.frontier.released(slices.Min(back), time.Now())
		o.Wake()
	}
	return nil
}

// stopDirect closes the direct way and waits for what is under way for half of the StopGrace; the other half is for settling it, until
// ctx ends.
func (o *Outbox) stopDirect(ctx context.Context) {
	d := &o.direct
	d.mu.Lock()
	d.stopped = true
	d.open.Store(false)
	d.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		d.running.Wait() // each ends with its hold
		close(idle)
	}()
	grace := time.NewTimer(o.config.StopGrace / 2)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	}
	if err := o.settleNoted(ctx); err != nil {
		o.config.Logger.LogAttrs(ctx, slog.LevelInfo, "sent messages are left in the outbox and will be sent again", slog.Any("error", err))
	}
}
