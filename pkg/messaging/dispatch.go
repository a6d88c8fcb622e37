package messaging

import (
	"container/heap"
	"time"

	"example.com/banking/pkg/retry"
)

// crowded is the pause before workers that have no room are asked again.
const crowded = time.Millisecond

// dispatch gives batches to idle workers. When something is left that an idle worker could do later, it says when.
func (a *attachment) dispatch(now time.Time) (again time.Time) {
	c := a.consumer
	workers := c.Concurrency
	if a.breaker != retry.Closed {
		workers = 1
	}
	for len(a.ready) > 0 && a.busy < workers && !a.saturated() {
		n, full := a.next()
		if due := a.since.Add(c.BatchWait); !full && due.After(now) {
			return due
		}
		if len(a.work) == cap(a.work) {
			return now.Add(crowded) // they are at what a broken session left
		}
		if a.ready[0].suspect() {
			// It may be the end of this process. What has been handled is settled before, or it would come back with it.
			if a.busy > 0 || a.published != nil || len(a.outgoing) > 0 {
				return time.Time{} // each of these will say when it has ended
			}
			a.flush()
		}
		n, again := c.dampers.admit(now, n)
		if n == 0 {
			return again
		}
		a.work <- &batch{owner: a, deliveries: a.ready[:n:n]}
		a.busy++
		a.ready = a.ready[n:]
		a.since = now
	}
	return time.Time{}
}

// next is the size of the next batch, and whether waiting for more messages would not make it larger: all that the broker hands out
// may be here. A suspect is a batch of its own, and ends the one before it; while the breaker is half-open every message is.
func (a *attachment) next() (n int, full bool) {
	if a.breaker != retry.Closed || a.ready[0].suspect() {
		return 1, true
	}
	for n = 1; n < a.consumer.BatchSize; n++ {
		if n == len(a.ready) {
			return n, a.ledger.held >= a.prefetch
		}
		if a.ready[n].suspect() {
			break
		}
	}
	return n, true
}

// wait holds a delivery until it is due.
func (a *attachment) wait(d *delivery) {
	heap.Push(&a.waiting, d)
	a.stale = true
	a.countWaiting()
}

func (a *attachment) countWaiting() {
	a.consumer.metrics.waiting.Set(float64(len(a.waiting) + len(a.unsent)))
}

// wake moves what is due on. What has been held for long by then goes to the tail of the queue, with its attempts.
func (a *attachment) wake(now time.Time) {
	for len(a.unsent) > 0 && !a.unsent[0].due.After(now) {
		a.outgoing = append(a.outgoing, heap.Pop(&a.unsent).(*delivery))
		a.countWaiting()
	}
	for len(a.waiting) > 0 && !a.waiting[0].due.After(now) {
		d := heap.Pop(&a.waiting).(*delivery)
		if now.Sub(d.taken) < a.consumer.maxHold {
			a.enqueue(d)
		} else {
			a.moveToTail(d) // it could be held as long again before it is started
		}
		a.countWaiting()
	}
}

// pause is the time until something is due that no event tells of.
func (a *attachment) pause(now, again time.Time) time.Duration {
	next := now.Add(time.Hour)
	earlier := func(at time.Time) {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	earlier(again)
	for _, held := range []schedule{a.waiting, a.unsent} {
		if len(held) > 0 {
			earlier(held[0].due)
		}
	}
	if len(a.ready) > 0 {
		earlier(a.ready[0].since.Add(a.consumer.maxHold))
	}
	earlier(a.until)
	earlier(a.ledger.ackBy)
	return max(0, next.Sub(now))
}

// schedule is a heap of deliveries by the time they are due.
type schedule []*delivery

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].due.Before(s[j].due) }
func (s schedule) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *schedule) Push(d any)        { *s = append(*s, d.(*delivery)) }
func (s *schedule) Pop() any {
	old := *s
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*s = old[:len(old)-1]
	return d
}
