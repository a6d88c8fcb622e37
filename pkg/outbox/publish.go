package outbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json/jsontext"
)

// fate is what became of a claimed row.
type fate string

const (
	untried  fate = ""         // left as it is
	acked    fate = "acked"    // the broker has it: the row goes
	nacked   fate = "nacked"   // a queue refused it, e.g. a full one: later
	returned fate = "returned" // it must have a reader and there is none, e.g. its queue was deleted: later
	unknown  fate = "unknown"  // no confirm came: later, under the same messageId
	refused  fate = "refused"  // the broker refuses this very message: an attempt is counted
)

// row is a claimed row of the table.
type row struct {
	Message
	id       int64
	attempts int
	fate     fate
	hopeless bool // with refused: no broker would ever take it, so further attempts are pointless
	reason   string
}

// resolved says whether the row's fate tells that the broker can be talked to.
func (r *row) resolved() bool { return r.fate != untried && r.fate != unknown }

// publish publishes the rows and notes each one's fate. The error says why some are unknown or untried.
//
// Rows go together. A message that the broker refuses for itself (too large, for instance) ends the channel, and with it
// the confirms of all its neighbours, so nobody can tell which one it was. Then the rows without an outcome go again, one by
// one, and only who fails alone has failed. A row with a refusal on its record starts alone.
func (o *Outbox) publish(ctx context.Context, rows []*row) error {
	var together, alone []*row
	for _, r := range rows {
		switch {
		case !jsontext.Value(r.Body).IsValid():
			r.refuse(errors.New("the body is not JSON, no consumer could read it"), true)
		case r.attempts > 0:
			alone = append(alone, r)
		default:
			together = append(together, r)
		}
	}
	err := o.publishTogether(ctx, together)
	if err != nil && !blamesMessage(err) {
		return err
	}
	if err != nil {
		for _, r := range together {
			if r.fate == unknown {
				r.fate = untried
				alone = append(alone, r)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, o.config.PublishTimeout)
	defer cancel()
	for _, r := range alone {
		if ctx.Err() != nil {
			return fmt.Errorf("publish rows one by one: %w", ctx.Err()) // time is no fault of the rest: they stay untried
		}
		err := o.publishAlone(ctx, r)
		if err == nil || r.fate != unknown {
			continue
		}
		if !blamesMessage(err) {
			return err
		}
		var unpublishable *messaging.Unpublishable
		r.refuse(err, errors.As(err, &unpublishable))
	}
	return nil
}

func (o *Outbox) publishTogether(ctx context.Context, rows []*row) error {
	o.solo.RLock()
	defer o.solo.RUnlock()
	return o.attempt(ctx, rows)
}

func (o *Outbox) publishAlone(ctx context.Context, r *row) error {
	o.solo.Lock()
	defer o.solo.Unlock()
	return o.attempt(ctx, []*row{r})
}

// attempt publishes rows in one go and notes their fates.
func (o *Outbox) attempt(ctx context.Context, rows []*row) error {
	if len(rows) == 0 {
		return nil
	}
	publishings := make([]messaging.Publishing, len(rows))
	for i, r := range rows {
		publishings[i] = r.publishing(o.config.Exchange, o.config.AppID)
	}
	ctx, cancel := context.WithTimeout(ctx, o.config.PublishTimeout)
	defer cancel()
	outcomes, err := o.config.Publisher.Publish(ctx, publishings)
	for i, r := range rows {
		outcome := messaging.Unknown
		if i < len(outcomes) {
			outcome = outcomes[i]
		}
		switch outcome {
		case messaging.Acked:
			r.fate = acked
		case messaging.Nacked:
			r.fate, r.reason = nacked, "a queue refused it (basic.nack)"
		case messaging.Returned:
			r.fate, r.reason = returned, "no queue took it (basic.return)"
		default:
			r.fate, r.reason = unknown, fmt.Sprintf("no confirm: %v", err)
		}
	}
	return err
}

// failConfirmed asks the fault point for every row that the broker has. An error there stands for a confirm that never came: the
// row's fate is unknown.
func (o *Outbox) failConfirmed(ctx context.Context, rows []*row, publishErr error) error {
	if o.config.Faults == nil {
		return publishErr
	}
	for _, r := range rows {
		if r.fate != acked {
			continue
		}
		if err := o.config.Faults.At(ctx, fault.AfterPublish, r.ID); err != nil {
			r.fate, r.reason, publishErr = unknown, fmt.Sprintf("no confirm: %v", err), err
		}
	}
	return publishErr
}

func (r *row) refuse(err error, hopeless bool) {
	r.fate, r.hopeless, r.reason = refused, hopeless, err.Error()
	r.attempts++
}

// blamesMessage says whether an error of publishing is about a message. Everything else, a lost connection and a missing
// exchange included, would meet every message alike and says nothing about this one.
func blamesMessage(err error) bool {
	var unpublishable *messaging.Unpublishable
	var refused *messaging.Refused
	return errors.As(err, &unpublishable) || errors.As(err, &refused)
}

const (
	minWait = time.Second
	maxWait = 30 * time.Second
)

var refusalBackoff = retry.Backoff{Base: minWait, Factor: 2, Cap: maxWait}

// wait is how long a row rests before its next attempt.
func (r *row) wait(now time.Time) time.Duration {
	wait := minWait // nobody is to blame: soon, so that a backlog flows when the broker is back
	switch r.fate {
	case refused:
		wait = refusalBackoff.Delay(r.attempts)
	case nacked, returned:
		// Grows with the row's age, which makes an exponential series without a counter.
		wait = min(max(minWait, now.Sub(r.OccurredAt)/2), maxWait)
	}
	return retry.Jitter(wait, 0.2, rand.Float64())
}

// maxReasonBytes bounds last_error.
const maxReasonBytes = 1024

// storableReason is the reason as PostgreSQL takes it; it may quote what a broker or a message said.
func (r *row) storableReason() string {
	reason := r.reason
	if len(reason) > maxReasonBytes {
		reason = reason[:maxReasonBytes]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(reason, "?"), "\x00", "?")
}
