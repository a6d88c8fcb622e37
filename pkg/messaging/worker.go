package messaging

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"example.com/banking/pkg/retry"
)

// batch is what a worker handles at once, and the attachment that waits for the verdicts.
type batch struct {
	owner      *attachment
	deliveries []*delivery
}

// handle runs a batch and reaches a verdict on every delivery of it.
func (c *Consumer) handle(live context.Context, b *batch) {
	defer func() { b.owner.results <- b.deliveries }()
	for _, d := range b.deliveries {
		d.err, d.verdict, d.untried = nil, none, false
	}
	c.run(live, b)
}

// run runs a batch and judges it, when it is its turn. When that never comes there is no verdict: the deliveries go back as they are.
func (c *Consumer) run(live context.Context, b *batch) {
	suspect := b.deliveries[0].suspect()
	if c.session.turns.begin(live, suspect) != nil {
		return // we stop
	}
	defer c.session.turns.end(suspect)
	select {
	case <-b.owner.link.broken:
		return // the broker has put them back already
	default:
	}
	if !suspect {
		c.execute(live, b.deliveries)
		c.judge(live, b.deliveries)
		return
	}
	c.runSuspect(live, b.deliveries[0], b.owner.link.brokerMajor)
	c.judge(live, b.deliveries)
	c.noteEnd(b.deliveries[0]) // not earlier: what is made of its failure may be what ends the process
}

// execute takes deliveries through the handler, in as few transactions as it can. Each ends with its error, or nil.
func (c *Consumer) execute(live context.Context, ds []*delivery) {
	left := make([]*delivery, 0, len(ds))
	for _, d := range ds {
		c.readHeaders(d)
		d.prepare(c.Queue)
		if d.err = d.wrong; d.err == nil {
			left = append(left, d)
		}
	}
	for len(left) > 0 {
		var round []*delivery
		round, left = distinct(left)
		c.transact(live, round)
	}
}

func (c *Consumer) readHeaders(d *delivery) {
	if first := d.readHeaders(c.Queue); !first {
		return
	}
	d.believe(c.Policy.MaxAttempts)
	if d.past.nonsense {
		c.metrics.nonsense.Inc()
	}
}

// distinct takes out what can be handled in one transaction: no messageId twice. The second copy comes later, and finds
// what the first one did.
func distinct(ds []*delivery) (round, later []*delivery) {
	seen := make(map[string]struct{}, len(ds))
	for _, d := range ds {
		if _, twice := seen[d.msg.MessageID]; twice {
			later = append(later, d)
			continue
		}
		seen[d.msg.MessageID] = struct{}{}
		round = append(round, d)
	}
	return round, later
}

const (
	// conflictTries is how often a conflict is tried again on the spot before it counts as an attempt: the other
	// transaction is over within milliseconds.
	conflictTries = 4
	conflictPause = 5 * time.Millisecond
)

// transact runs deliveries through the handler, as one transaction if it can be.
func (c *Consumer) transact(live context.Context, ds []*delivery) {
	for try := 1; ; try++ {
		errs, whole := c.call(live, ds)
		if whole != nil && len(ds) > 1 && !(c.classOf(whole) == retry.Conflict && try <= conflictTries) {
			c.split(live, ds, whole)
			return
		}
		var conflicts []*delivery
		for i, d := range ds {
			if d.err = whole; whole == nil {
				d.err = errs[i]
			}
			if d.err != nil && try <= conflictTries && c.classOf(d.err) == retry.Conflict {
				conflicts = append(conflicts, d)
			}
		}
		if len(conflicts) == 0 {
			return
		}
		ds = conflicts
		pause := retry.FullJitter(conflictPause<<try, c.rnd())
		select {
		case <-time.After(pause):
		case <-live.Done():
		}
	}
}

// split handles the deliveries of a batch that failed as a whole one by one, so that one bad message does not cost its
// neighbours an attempt. Where a dependency does not answer that would be waiting in vain: it stops when the dependency is
// known to be down, and otherwise after two. What it has not come to has not failed, and goes back unspent.
func (c *Consumer) split(live context.Context, ds []*delivery, whole error) {
	last, silent := whole, 0
	if unanswered(c.classOf(whole)) && c.dampers.dependencyDown(live) {
		silent = 2
	}
	for _, d := range ds {
		if silent == 2 {
			d.err, d.untried = last, true
			continue
		}
		c.transact(live, []*delivery{d})
		if unanswered(c.classOf(d.err)) {
			last = d.err
			silent++
		}
	}
}

// unanswered says whether a failure is that of a dependency which gave no answer, or only that it is busy.
func unanswered(class retry.Class) bool { return class == retry.Timeout || class == retry.RateLimited }

// call calls the handler once, with its deadline. A panic is an error of class UNKNOWN.
func (c *Consumer) call(live context.Context, ds []*delivery) (errs []error, whole error) {
	ctx, cancel := context.WithTimeout(live, c.HandlerTimeout)
	defer cancel()
	messages := make([]*Message, len(ds))
	for i, d := range ds {
		d.msg.Attempt = d.attempt
		messages[i] = &d.msg
	}
	began := time.Now()
	defer func() {
		c.metrics.handling.Observe(time.Since(began).Seconds())
		if p := recover(); p != nil {
			c.session.Logger.Error("handler panicked", "queue", c.Queue, "panic", plainText(fmt.Sprint(p), maxLastError), "stack", string(debug.Stack()))
			errs, whole = nil, retry.Errorf(retry.Unknown, "the handler panicked: %v", p)
		}
	}()
	errs, whole = c.Handler(ctx, messages)
	if whole == nil && len(errs) != len(ds) {
		whole = retry.Errorf(retry.Unknown, "the handler answered %d results for %d messages", len(errs), len(ds))
	}
	return errs, whole
}
