package messaging

import (
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
)

// exit is what became of deliveries that were published elsewhere: to the quarantine, or as a copy on a lap.
type exit struct {
	deliveries []*delivery
	outcomes   []Outcome
	err        error
}

// maxExits is how many are published at once.
const maxExits = 256

// exitPauses are the pauses after a publishing that failed. The message is neither acked, which would lose it, nor tried
// again at once, which would spin.
var exitPauses = retry.Backoff{Base: time.Second, Factor: 2, Cap: 30 * time.Second}

// publishExits publishes the deliveries that leave, with one call under way at a time.
func (a *attachment) publishExits() {
	if a.exits != nil || len(a.leaving) == 0 {
		return
	}
	n := min(len(a.leaving), maxExits)
	e := exit{deliveries: a.leaving[:n:n]}
	a.leaving = a.leaving[n:]
	exits := make(chan exit, 1)
	a.exits = exits
	go func() {
		messages := make([]Publishing, n)
		for i, d := range e.deliveries {
			messages[i] = *d.exit
		}
		// Over this link and no other: when it breaks, the originals are back in their queue.
		e.outcomes, e.err = a.link.publish(a.live, messages)
		exits <- e
	}()
}

// left acks the deliveries whose copies the broker has in a queue, and keeps the others for another try.
func (a *attachment) left(e exit) {
	a.exits = nil
	c := a.consumer
	unfit := unpublishables(e.err)
	for i, d := range e.deliveries {
		if e.outcomes[i] == Acked {
			if d.tries > 0 {
				a.held--
			}
			a.ack(d)
			if d.verdict == quarantineNow {
				c.metrics.quarantined.Inc()
				c.metrics.givenUp(d.reason)
			} else {
				c.metrics.retried.Inc()
			}
			continue
		}
		if why := unfit[i]; why != nil && !d.bare {
			d.exit, d.bare = c.bareExit(d), true
			a.leaving = append(a.leaving, d)
			c.session.Logger.Error("message does not fit the wire, it leaves with the least of headers", "queue", c.Queue,
				"message_id", cutText(d.msg.MessageID, 1<<10), "error", plainText(why.Error(), maxLastError))
			continue
		}
		if d.tries++; d.tries == 1 {
			a.held++
		}
		pause := retry.Jitter(exitPauses.Delay(d.tries), 0.2, c.rnd())
		d.due = time.Now().Add(pause)
		a.wait(d)
		reason := fmt.Sprintf("publishing to %q with key %q: %s", d.exit.Exchange, d.exit.RoutingKey, e.outcomes[i])
		c.stuck.Store(&reason)
		c.session.Logger.Error("message cannot leave, it is held and tried again", "queue", c.Queue, "message_id", cutText(d.msg.MessageID, 1<<10),
			"outcome", e.outcomes[i].String(), "tries", d.tries, "next_delay", pause, "error", plainText(fmt.Sprint(e.err), maxLastError))
	}
	if a.held == 0 {
		c.stuck.Store(nil)
	}
}

// stop ends an attachment in good order: nothing new is taken, what waits goes back unspent, what is at work is waited
// for, and its verdicts are carried out.
func (a *attachment) stop() {
	a.check(a.ch.Cancel(a.tag, true))
	for _, d := range append(a.ready, a.waiting...) {
		a.giveBack(d)
	}
	a.ready, a.waiting = nil, nil
	for d := range a.deliveries { // what has been prefetched; the library closes it after the cancel
		a.ledger.take(d.DeliveryTag)
		a.giveBack(&delivery{Delivery: d})
	}
	a.finish()
	a.flush()
	a.closeChannel()
}

// finish waits for the workers and the last publishings.
func (a *attachment) finish() {
	var over <-chan time.Time
	done := a.live.Done()
	for a.publishExits(); a.busy > 0 || a.exits != nil; a.publishExits() {
		select {
		case ds := <-a.results:
			a.busy--
			a.settle(ds)
		case e := <-a.exits:
			a.left(e)
		case <-done:
			done, over = nil, time.After(lastSecond)
		case <-over:
			return // closing the channel gives back what is left
		case <-a.link.broken:
			return
		}
		for _, d := range a.waiting {
			a.giveBack(d)
		}
		a.waiting = nil
		a.flush()
	}
}

// closeChannel gives back what the broker still counts as ours. The session goes on: others publish over it.
func (a *attachment) closeChannel() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = a.ch.Close() // an error says that it was closed already
	}()
	select {
	case <-closed:
	case <-a.link.broken:
	case <-time.After(a.consumer.session.CloseTimeout):
		a.link.fail(errors.New("the broker does not answer"))
	}
}
