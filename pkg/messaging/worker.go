package messaging

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
)

// batch is what a worker handles at once, and the attachment that waits for the verdicts.
type batch struct {
	owner      *attachment
	deliveries []*delivery
}

// handle reaches a verdict on every delivery of a batch.
func (c *Consumer) handle(live context.Context, b *batch) {
	defer func() { b.owner.results <- b.deliveries }()
	select {
	case <-b.owner.link.broken:
		return // its deliveries have been requeued by the broker
	default:
	}
	var left []*delivery
	for _, d := range b.deliveries {
		d.verdict = none
		if first := d.prepare(c.Queue); first && d.past.nonsense {
			c.metrics.nonsense.Inc()
		}
		if d.wrong != nil {
			c.failed(live, d, d.wrong)
			continue
		}
		left = append(left, d)
	}
	for len(left) > 0 {
		var round []*delivery
		round, left = distinct(left)
		c.execute(live, round)
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

// execute runs deliveries through the handler, as one transaction if it can be.
func (c *Consumer) execute(live context.Context, ds []*delivery) {
	for try := 1; ; try++ {
		errs, whole := c.call(live, ds)
		if whole != nil && len(ds) > 1 && !(c.classOf(whole) == retry.Conflict && try <= conflictTries) {
			c.split(live, ds)
			return
		}
		var conflicts []*delivery
		for i, d := range ds {
			err := whole
			if whole == nil {
				err = errs[i]
			}
			switch {
			case err == nil:
				d.verdict = done
			case try <= conflictTries && c.classOf(err) == retry.Conflict:
				conflicts = append(conflicts, d)
			default:
				c.failed(live, d, err)
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

// split handles the deliveries of a failed batch one by one, so that one bad message does not cost its neighbours an
// attempt. Two in a row for which a dependency did not answer are enough to know that the rest would wait in vain too.
func (c *Consumer) split(live context.Context, ds []*delivery) {
	unanswered := 0
	var last error
	for _, d := range ds {
		if unanswered == 2 {
			c.failed(live, d, last)
			continue
		}
		errs, whole := c.call(live, []*delivery{d})
		last = whole
		if whole == nil {
			last = errs[0]
		}
		switch class := c.classOf(last); {
		case last == nil:
			d.verdict = done
			unanswered = 0
		case class == retry.Conflict:
			c.execute(live, []*delivery{d})
			unanswered = 0
		default:
			c.failed(live, d, last)
			if class == retry.Timeout || class == retry.RateLimited {
				unanswered++
			} else {
				unanswered = 0
			}
		}
	}
}

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

func (c *Consumer) classOf(err error) retry.Class { return retry.ClassOf(err, c.Classifiers...) }

// failed decides what becomes of a delivery whose attempt failed, and says so in one line of log.
func (c *Consumer) failed(live context.Context, d *delivery, err error) {
	class := c.classOf(err)
	permanent := class == retry.Validation || class == retry.Invariant
	switch {
	case live.Err() != nil && !permanent:
		class = retry.Cancelled // whatever it looks like, we ended it
	case class == retry.Cancelled && live.Err() == nil:
		class = retry.Unknown // nobody stopped us: giving it back would come round at once, again and again
	}
	now := c.now()
	decision := c.Policy.Decide(retry.Failure{Class: class, Attempt: d.attempt, Age: d.age(now), After: retry.AfterOf(err)}, c.rnd)
	if decision.Action != retry.LeaveAlone && (d.firstFailed.IsZero() || absurd(d.firstFailed, now)) {
		d.firstFailed = now
	}
	log := c.session.Logger.With("queue", c.Queue, "class", class, "attempt", d.attemptOf(c.Policy.MaxAttempts),
		"message_id", cutText(d.msg.MessageID, 1<<10), "transfer_id", cutText(transferOf(d.msg.Envelope), 1<<10), "trace_id", traceID(d.msg.TraceParent),
		"error", plainText(err.Error(), maxLastError))
	switch decision.Action {
	case retry.LeaveAlone:
		d.verdict = giveBack
		log.Info("attempt cancelled, message given back")
		return
	case retry.Retry:
		c.retry(d, now, decision.Delay)
		log.Warn("attempt failed, message will be retried", "next_delay", decision.Delay)
	case retry.Quarantine:
		d.verdict, d.reason = quarantineNow, decision.Reason
		d.exit = c.quarantined(d, burial{reason: decision.Reason, class: class, err: err, at: now})
		log.Error("attempt failed, message is quarantined", "reason", decision.Reason)
	}
	c.metrics.failed(class)
}

// retry puts a delivery on its road to the next attempt.
func (c *Consumer) retry(d *delivery, now time.Time, delay time.Duration) {
	switch {
	case !c.Road.atBroker():
		d.verdict = retryHere
		d.due = now.Add(delay)
	case c.Road.RetryQueue != "" && d.past.rejectable:
		d.verdict = lapByReject
	default:
		d.verdict = lapByCopy
		d.exit = c.lapCopy(d, c.Road.copyTo(delay, c.rnd()))
	}
}

// transferOf is the transfer that a message is about, for the log: its correlation id, else what data says.
func transferOf(e Envelope) string {
	if e.CorrelationID != "" {
		return e.CorrelationID
	}
	var data struct {
		TransferID string `json:"transferId"`
	}
	_ = json.Unmarshal(e.Data, &data) // data of another kind names no transfer
	return data.TransferID
}

// traceID is the second part of a W3C traceparent.
func traceID(traceParent string) string {
	if traceParent == "" {
		return ""
	}
	return traceParent[3:35]
}
