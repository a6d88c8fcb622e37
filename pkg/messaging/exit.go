package messaging

import (
	"container/heap"
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
		a.consumer.endCrashLoops(e)
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
		heap.Push(&a.unsent, d)
		a.countWaiting()
		reason := fmt.Sprintf("publishing to %q with key %q: %s", d.exit.Exchange, d.exit.RoutingKey, e.outcomes[i])
		c.stuck.Store(&reason)
		c.session.Logger.Error("message cannot leave, it is held and tried again", "queue", c.Queue, "message_id", cutText(d.msg.MessageID, 1<<10),
			"outcome", e.outcomes[i].String(), "tries", d.tries, "next_delay", pause, "error", plainText(fmt.Sprint(e.err), maxLastError))
	}
	if a.held == 0 {
		c.stuck.Store(nil)
	}
}
