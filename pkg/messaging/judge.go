package messaging

import (
	"context"
	"log/slog"
	"time"

	"example.com/banking/pkg/retry"
)

// judge reaches a verdict on every delivery of a batch that has run: first what the batch says about the dependency behind
// the handler, then what becomes of each message.
func (c *Consumer) judge(live context.Context, ds []*delivery) {
	silent := false
	for _, d := range ds {
		d.class = c.classOfAttempt(live, d.err)
		silent = silent || unanswered(d.class)
	}
	down := silent && c.dampers.dependencyDown(live)
	now := c.now()
	c.dampers.record(now, ds, down)
	retries := 0
	for _, d := range ds {
		switch {
		case d.err == nil:
			d.verdict = done
		case down && unanswered(d.class):
			c.spare(d, now, "the dependency is down, no attempt is spent")
		case d.untried:
			c.spare(d, now, "others of its batch got no answer, it goes back untried")
		case c.decide(d, now) == retry.Retry && d.class.CountsForBreaker():
			retries++
		}
	}
	c.dampers.spend(now, retries)
}

// classOfAttempt is the class of a failed attempt: that of its error, unless our own stop is behind it.
func (c *Consumer) classOfAttempt(live context.Context, err error) retry.Class {
	class := c.classOf(err)
	stopping := live.Err() != nil
	switch {
	case class == "" || class == retry.Validation || class == retry.Invariant || err == errCrashLoop:
	case stopping:
		return retry.Cancelled // whatever it looks like, we ended it
	case class == retry.Cancelled:
		return retry.Unknown // nobody stopped us: giving it back would come round at once, again and again
	}
	return class
}

func (c *Consumer) classOf(err error) retry.Class { return retry.ClassOf(err, c.Classifiers...) }

// spare spends no attempt on a delivery that failed because its dependency is down, or only in the company of others: it says
// nothing about the message, and must not bring it nearer to the quarantine. It comes back when the breaker lets it.
func (c *Consumer) spare(d *delivery, now time.Time, why string) {
	d.verdict = giveBack
	c.attemptLog(d).Warn(why)
	c.observe(d, now, AttemptSpared, retry.Decision{})
}

// decide decides what becomes of a delivery whose attempt failed, and says so in one line of log.
func (c *Consumer) decide(d *delivery, now time.Time) retry.Action {
	decision := c.Policy.Decide(retry.Failure{Class: d.class, Attempt: d.attempt, Age: d.age(now), After: retry.AfterOf(d.err)}, c.rnd)
	if d.err == errCrashLoop {
		decision = retry.Decision{Action: retry.Quarantine, Reason: retry.ReasonCrashLoop}
	}
	if decision.Action != retry.LeaveAlone && (d.firstFailed.IsZero() || absurd(d.firstFailed, now)) {
		d.firstFailed = now
	}
	log := c.attemptLog(d)
	switch decision.Action {
	case retry.LeaveAlone:
		d.verdict = giveBack
		log.Info("attempt cancelled, message given back")
		c.observe(d, now, AttemptCancelled, retry.Decision{})
		return decision.Action
	case retry.Retry:
		c.retry(d, now, decision.Delay)
		log.Warn("attempt failed, message will be retried", "next_delay", decision.Delay)
		c.observe(d, now, AttemptRetried, decision)
	case retry.Quarantine:
		d.verdict, d.reason = quarantineNow, decision.Reason
		d.copy = c.quarantined(d, cause{reason: decision.Reason, class: d.class, err: d.err, at: now})
		log.Error("attempt failed, message is quarantined", "reason", decision.Reason)
		c.observe(d, now, AttemptQuarantined, decision)
	}
	c.metrics.failed(d.class)
	return decision.Action
}

// attemptLog is a logger that says which attempt at which message it is about, and how it ended.
func (c *Consumer) attemptLog(d *delivery) *slog.Logger {
	return c.session.Logger.With("queue", c.Queue, "class", d.class, "attempt", d.attemptOf(c.Policy.MaxAttempts),
		"message_id", cutText(d.msg.MessageID, 1<<10), "transfer_id", cutText(d.msg.TransferID(), 1<<10), "trace_id", traceID(d.msg.TraceParent),
		"error", plainText(d.err.Error(), maxLastError))
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
		d.copy = c.lapCopy(d, c.Road.copyTo(delay, c.rnd()), d.attempt)
	}
}

// traceID is the second part of a W3C traceparent.
func traceID(traceParent string) string {
	if traceParent == "" {
		return ""
	}
	return traceParent[3:35]
}
