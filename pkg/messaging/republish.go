package messaging

import (
	"container/heap"
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
)

// publishedCopies is what became of deliveries whose copies were published: to the quarantine, to a queue of the lap, or to the
// tail of their own.
type publishedCopies struct {
	deliveries []*delivery
	outcomes   []Outcome
	err        error
}

// maxCopies is how many are published at once.
const maxCopies = 256

// copyPauses are the pauses after a publishing that failed. The message is neither acked, which would lose it, nor tried
// again at once, which would spin.
var copyPauses = retry.Backoff{Base: time.Second, Factor: 2, Cap: 30 * time.Second}

// moveToTail sends a delivery that has spent attempts here to the tail of its own queue, with those in a header. There they
// outlive this process and its channel, and who is behind it comes before it.
func (a *attachment) moveToTail(d *delivery) {
	d.verdict = tailByCopy
	d.copy = a.consumer.lapCopy(d, a.consumer.Queue, d.attempt-1) // attempt is the one it has not made, or that does not count
	a.outgoing = append(a.outgoing, d)
}

// publishCopies publishes the copies of deliveries that are to leave this queue, with one call under way at a time.
func (a *attachment) publishCopies() {
	if a.published != nil || len(a.outgoing) == 0 {
		return
	}
	n := min(len(a.outgoing), maxCopies)
	r := publishedCopies{deliveries: a.outgoing[:n:n]}
	a.outgoing = a.outgoing[n:]
	published := make(chan publishedCopies, 1)
	a.published = published
	go func() {
		messages := make([]Publishing, n)
		for i, d := range r.deliveries {
			messages[i] = *d.copy
		}
		// Over this link and no other: when it breaks, the originals are back in their queue.
		r.outcomes, r.err = a.link.publish(a.live, messages)
		a.consumer.endCrashLoops(r)
		published <- r
	}()
}

// copiesPublished acks the deliveries whose copies the broker has in a queue, and keeps the others for another try.
func (a *attachment) copiesPublished(r publishedCopies) {
	a.published = nil
	c := a.consumer
	unfit := unpublishables(r.err)
	for i, d := range r.deliveries {
		if r.outcomes[i] == Acked {
			if d.tries > 0 {
				a.stranded--
			}
			a.ack(d)
			switch d.verdict {
			case quarantineNow:
				c.metrics.quarantined.Inc()
				c.metrics.givenUp(d.reason)
			case tailByCopy:
				c.metrics.givenBack.Inc()
			default:
				c.metrics.retried.Inc()
			}
			continue
		}
		if why := unfit[i]; why != nil && !d.bare {
			d.copy, d.bare = c.bareCopy(d), true
			a.outgoing = append(a.outgoing, d)
			c.session.Logger.Error("message does not fit the wire, it leaves with the least of headers", "queue", c.Queue,
				"message_id", cutText(d.msg.MessageID, 1<<10), "error", plainText(why.Error(), maxLastError))
			continue
		}
		if d.tries++; d.tries == 1 {
			a.stranded++
		}
		pause := retry.Jitter(copyPauses.Delay(d.tries), 0.2, c.rnd())
		d.due = time.Now().Add(pause)
		heap.Push(&a.unsent, d)
		a.countWaiting()
		reason := fmt.Sprintf("publishing to %q with key %q: %s", d.copy.Exchange, d.copy.RoutingKey, r.outcomes[i])
		c.stuck.Store(&reason)
		why := reason // a message that comes back is no error of the call
		if r.err != nil {
			why = r.err.Error()
		}
		c.session.Logger.Error("message cannot leave, it is held and tried again", "queue", c.Queue, "message_id", cutText(d.msg.MessageID, 1<<10),
			"outcome", r.outcomes[i].String(), "tries", d.tries, "next_delay", pause, "error", plainText(why, maxLastError))
	}
	if a.stranded == 0 {
		c.stuck.Store(nil)
	}
}
