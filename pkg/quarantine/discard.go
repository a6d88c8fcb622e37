package quarantine

import (
	"context"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
)

// discarding is one discard.
type discarding struct {
	work
	run *run
}

// discard throws quarantined messages away, once each of them is written down as a whole; or says which it would.
func (q *Quarantine) discard(c echo.Context) error {
	order, err := q.discardOrderOf(c)
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

	d := &discarding{run: newRun(c, ActionDiscard, order.Because)}
	d.work = work{
		Quarantine: q, hold: h, stream: service.NewStream(c), filter: order.filter, began: d.run.began, confirm: order.Confirm,
		prepare: d.prepare, carryOut: d.carryOut,
	}
	d.summary.DryRun = !order.Confirm
	if order.Confirm {
		d.summary.Run = &d.run.id
	}
	return d.answer(c, d.through(ctx, queues))
}

func (d *discarding) prepare(_ context.Context, tasks []*task) error {
	for _, t := range tasks {
		if !d.confirm {
			t.Outcome = wouldDiscard
		}
	}
	return nil
}

func (d *discarding) carryOut(ctx context.Context, c *chunk, tasks []*task) error {
	if !d.confirm {
		return d.say(tasks)
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	err := d.remove(ctx, c, tasks)
	if said := d.say(settled(tasks)); err == nil {
		err = said
	}
	return err
}

// remove writes the messages down, and only then lets the broker forget them.
func (d *discarding) remove(ctx context.Context, c *chunk, todo []*task) error {
	todo, unable := writable(todo)
	d.record(ctx, d.run, unable)
	if len(todo) == 0 {
		return nil
	}
	ctx, cancel := finish(ctx)
	defer cancel()
	if err := d.hold.start(ctx, d.run, todo); err != nil {
		return err
	}
	if err := d.crash(afterAuditStarted); err != nil {
		return err
	}
	failure := c.ack(todo)
	if failure != nil {
		failure = &brokerError{c.look.queue, failure}
		for _, t := range todo {
			t.settle(OutcomeUnknown, OutcomeUnknown, "the broker may not have heard that it can leave the quarantine: look, and discard it again if it is there")
		}
	} else {
		if err := d.crash(afterAck); err != nil {
			return err
		}
		for _, t := range todo {
			t.settle(OutcomeDone, discarded, "")
		}
	}
	err := d.hold.end(ctx, todo)
	d.record(ctx, d.run, todo)
	if failure != nil {
		return failure
	}
	return err
}
