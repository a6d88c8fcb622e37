package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

// replaying is one replay.
type replaying struct {
	work
	run     *run
	order   *replayOrder
	canary  int       // how many more are to be sent before the others
	nextDue time.Time // when the rate allows the next batch
}

// replay sends quarantined messages on their way again, or says what it would do.
func (q *Quarantine) replay(c echo.Context) error {
	order, err := q.replayOrderOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := service.Unhurried(c)
	defer cancel()
	queues := q.queuesOf(order.filter)
	h, err := q.hold(ctx, queues)
	if err != nil {
		return q.refuse(err, queues)
	}
	defer h.release()

	r := &replaying{run: newRun(c, ActionReplay, ""), order: order, canary: order.Canary}
	r.work = work{
		Quarantine: q, hold: h, stream: service.NewStream(c), filter: order.filter, began: r.run.began, confirm: order.Confirm,
		prepare: r.prepare, carryOut: r.carryOut, checked: r.checked,
	}
	r.summary.DryRun = !order.Confirm
	if order.Confirm {
		r.summary.Run = &r.run.id
		r.size = r.canary // these for themselves, then all the others
	}
	return r.answer(c, r.through(ctx, queues))
}

func (r *replaying) prepare(ctx context.Context, tasks []*task) error {
	canary := r.canary
	for _, t := range tasks {
		r.aim(t, r.order)
		if t.Outcome == refused {
			continue
		}
		if t.Canary = canary > 0; t.Canary {
			canary--
		}
		if !r.confirm {
			t.Outcome = wouldReplay
		}
	}
	if !r.confirm {
		r.canary = canary
	}
	return r.forecast(ctx, r.hold, tasks)
}

func (r *replaying) carryOut(ctx context.Context, c *chunk, tasks []*task) error {
	if !r.confirm {
		return r.say(tasks)
	}
	size := max(1, min(actable, int(r.order.Rate/10))) // a tenth of a second's worth: many share an audit's commit and a confirm's way
	for len(tasks) > 0 {
		n := min(size, len(tasks))
		batch := tasks[:n]
		tasks = tasks[n:]
		todo := make([]*task, 0, n)
		for _, t := range batch {
			if t.Outcome != refused {
				todo = append(todo, t)
			}
		}
		if err := r.pause(ctx, len(todo)); err != nil {
			return err
		}
		err := r.send(ctx, c, todo)
		if said := r.say(settled(batch)); err == nil {
			err = said
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// settled are those of which something can be said.
func settled(batch []*task) []*task {
	known := batch[:0:0]
	for _, t := range batch {
		if t.Outcome != "" {
			known = append(known, t)
		}
	}
	return known
}

// pause waits until the rate allows n more. It ends early, with the cause, when the run is to end.
func (r *replaying) pause(ctx context.Context, n int) error {
	now := time.Now()
	timer := time.NewTimer(r.nextDue.Sub(now))
	defer timer.Stop()
	r.nextDue = later(now, r.nextDue).Add(time.Duration(float64(n) / r.order.Rate * float64(time.Second)))
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return context.Cause(ctx)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// send carries a batch through the four steps: written down, sent and confirmed, acked, written down. A crash between any two of
// them leaves a parked message too many, never one too few.
func (r *replaying) send(ctx context.Context, c *chunk, todo []*task) error {
	if len(todo) == 0 {
		return nil
	}
	ctx, cancel := finish(ctx)
	defer cancel()
	if err := r.hold.start(ctx, r.run, todo); err != nil {
		return err
	}
	if err := r.crash(afterAuditStarted); err != nil {
		return err
	}
	sent, failure := r.publish(ctx, todo)
	if err := r.crash(afterPublish); err != nil {
		return err
	}
	if err := c.ack(sent); err != nil {
		failure = errors.Join(failure, &brokerError{c.look.queue, err})
		for _, t := range sent {
			t.settle(OutcomeUnknown, OutcomeUnknown, "it was sent; the broker may not have heard that it can leave the quarantine")
		}
	} else {
		if err := r.crash(afterAck); err != nil {
			return err
		}
		for _, t := range sent {
			t.settle(OutcomeDone, replayed, "")
		}
	}
	err := r.hold.end(ctx, todo)
	r.record(ctx, r.run, todo)
	return errors.Join(failure, err)
}

// publish sends the messages and answers those that the broker has. The error ends the run.
func (r *replaying) publish(ctx context.Context, todo []*task) (sent []*task, failure error) {
	now := time.Now()
	messages := make([]messaging.Publishing, len(todo))
	for i, t := range todo {
		messages[i] = t.publishing(now)
	}
	outcomes, err := r.Session.Publish(ctx, messages)
	var culprit *messaging.Refused
	var unfit *messaging.Unpublishable
	alone := errors.As(err, &culprit) || errors.As(err, &unfit) // such a message takes its neighbours along, be they ours or the outbox's
	for i, t := range todo {
		outcome, err := outcomes[i], err
		if outcome == messaging.Unknown && alone {
			var once []messaging.Outcome
			once, err = r.Session.Publish(ctx, messages[i:i+1])
			outcome = once[0]
		}
		switch {
		case outcome == messaging.Acked:
			sent = append(sent, t)
		case outcome == messaging.Returned:
			t.settle(OutcomeFailed, OutcomeFailed, "no queue took it: "+t.Target)
		case outcome == messaging.Nacked:
			t.settle(OutcomeFailed, OutcomeFailed, "the broker refused it: "+t.Target)
		case alone && errors.As(err, &unfit):
			t.settle(OutcomeFailed, OutcomeFailed, "AMQP cannot carry it: "+unfit.Err.Error())
		case alone && errors.As(err, &culprit): // once more, and nothing else was under way with it
			t.settle(OutcomeFailed, OutcomeFailed, "the broker refuses it for itself: "+culprit.Exception.Reason)
		default:
			t.settle(OutcomeUnknown, OutcomeUnknown, "the broker has not confirmed it; it may have been sent")
			failure = fmt.Errorf("publish: %w", err)
		}
	}
	if failure != nil {
		failure = errors.Join(&stopped{"the broker did not confirm a message; it is where it was, and may have been sent as well"}, failure)
	}
	return sent, failure
}
