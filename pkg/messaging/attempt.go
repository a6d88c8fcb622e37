package messaging

import (
	"time"

	"example.com/banking/pkg/retry"
)

// Attempt is one attempt at a message that did not end well, as ConsumerConfig.Observe is told of it. Texts are those of the message,
// cut to a bounded length.
type Attempt struct {
	Queue      string
	MessageID  string // as far as the body could be read, like Type and TransferID; "" for none
	Type       string
	TransferID string // see Envelope.TransferID
	Attempt    int    // counted from 1. One that was spared or cancelled is not spent: the next has the same number
	Class      retry.Class
	Error      string // one plain line
	Outcome    AttemptOutcome
	Reason     string        // why it goes to the quarantine, with AttemptQuarantined
	Delay      time.Duration // until the next attempt, with AttemptRetried
	At         time.Time
}

// AttemptOutcome is what was decided about a message after an attempt that failed.
type AttemptOutcome string

// The outcomes. They say what is about to be done: a process that ends before it has done it leaves the message where it was, and another
// attempt is made.
const (
	AttemptRetried     AttemptOutcome = "RETRY"
	AttemptQuarantined AttemptOutcome = "QUARANTINE"
	AttemptSpared      AttemptOutcome = "SPARED"    // the dependency is down: given back, no attempt spent
	AttemptCancelled   AttemptOutcome = "CANCELLED" // we stop: given back, no attempt spent
)

// observe tells the observer, if there is one, how an attempt ended.
func (c *Consumer) observe(d *delivery, now time.Time, outcome AttemptOutcome, decision retry.Decision) {
	if c.Observe == nil {
		return
	}
	c.Observe(Attempt{
		Queue:      c.Queue,
		MessageID:  cutText(d.msg.MessageID, 1<<10),
		Type:       cutText(d.msg.Type, 1<<10),
		TransferID: cutText(d.msg.TransferID(), 1<<10),
		Attempt:    d.attempt,
		Class:      d.class,
		Error:      plainText(d.err.Error(), maxLastError),
		Outcome:    outcome,
		Reason:     decision.Reason,
		Delay:      decision.Delay,
		At:         now,
	})
}
