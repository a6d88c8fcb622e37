package messaging

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/fault"
	amqp "github.com/rabbitmq/amqp091-go"
)

// attachment is one consumer on one link: a channel, and the deliveries taken from it. One goroutine, run, owns all of
// it; workers only see the deliveries they were given and answer with verdicts. When the link breaks the whole attachment
// is forgotten, because the broker has put every unacked message back.
type attachment struct {
	consumer   *Consumer
	link       *link
	ch         *amqp.Channel
	deliveries <-chan amqp.Delivery
	tag        string
	cancelled  chan string      // the broker ended the consumer
	closed     chan *amqp.Error // or the channel
	live       context.Context

	work    chan<- *batch
	results chan []*delivery // from the workers; has room for one answer of each
	busy    int              // batches at the workers

	ready   []*delivery // to be handled, in order
	since   time.Time   // when the first of them came
	waiting schedule    // between two attempts, or before publishing again
	leaving []*delivery // to be published and then acked
	exits   chan exit   // what became of the publishings; nil while none is under way
	held    int         // deliveries whose publishing has failed so far
	ledger  ledger
	acked   []string // message ids of the acks since the last flush, while faults can be ordered
}

func (c *Consumer) attach(l *link, work chan<- *batch, live context.Context) (*attachment, error) {
	a := &attachment{
		consumer: c, link: l, live: live, work: work, tag: c.session.Name + ":" + c.Queue,
		results: make(chan []*delivery, 2*c.Concurrency),
	}
	err := l.within(live, "consume "+c.Queue, func() (err error) {
		if a.ch, err = l.consuming.Channel(); err != nil {
			return err
		}
		if err := a.ch.Qos(c.Prefetch, 0, false); err != nil {
			return err
		}
		a.cancelled = a.ch.NotifyCancel(make(chan string, 1))
		a.closed = a.ch.NotifyClose(make(chan *amqp.Error, 1))
		a.deliveries, err = a.ch.Consume(c.Queue, a.tag, false, false, false, false, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.stuck.Store(nil)
	c.attached.Store(l.generation)
	return a, nil
}

// run works until the link breaks or ctx ends.
func (a *attachment) run(ctx context.Context) {
	defer func() { a.consumer.metrics.waiting.Set(0) }()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		a.wake(time.Now())
		a.dispatch()
		a.publishExits()
		a.flush()
		deliveries := a.deliveries
		if a.full() {
			deliveries = nil
		}
		timer.Reset(a.pause(time.Now()))
		select {
		case d, open := <-deliveries:
			if !open {
				a.lost(nil)
				return
			}
			a.take(d)
			a.takeMore()
		case ds := <-a.results:
			a.busy--
			a.settle(ds)
		case e := <-a.exits:
			a.left(e)
		case <-timer.C:
		case <-a.cancelled: // deliveries end too, but nobody looks there while it is full
			a.lost(nil)
			return
		case exception := <-a.closed: // the same
			a.lost(closeError("channel", exception))
			return
		case <-a.link.broken:
			return
		case <-ctx.Done():
			a.stop()
			return
		}
	}
}

// full says whether no more deliveries are taken: the next batch is complete, or so many messages wait here that the
// next ones had better wait at the broker.
func (a *attachment) full() bool {
	return len(a.ready) >= a.consumer.BatchSize || len(a.waiting) > 0 && 2*len(a.waiting) >= a.consumer.Prefetch
}

// pause is the time until something is due.
func (a *attachment) pause(now time.Time) time.Duration {
	next := now.Add(time.Hour)
	if len(a.waiting) > 0 {
		next = a.waiting[0].due
	}
	if len(a.ready) > 0 && a.busy < a.consumer.Concurrency {
		// dispatch has left them: for a fuller batch, or because the workers are at what a broken session left.
		at := a.since.Add(a.consumer.BatchWait)
		if !at.After(now) {
			at = now.Add(crowded)
		}
		if at.Before(next) {
			next = at
		}
	}
	return max(0, next.Sub(now))
}

// crowded is the pause before workers that have no room are asked again.
const crowded = time.Millisecond

func (a *attachment) take(d amqp.Delivery) {
	a.ledger.take(d.DeliveryTag)
	a.enqueue(&delivery{Delivery: d})
}

// takeMore takes what has come meanwhile, so that a batch is not made of the first one alone.
func (a *attachment) takeMore() {
	for !a.full() {
		select {
		case d, open := <-a.deliveries:
			if !open {
				return // run finds it closed too
			}
			a.take(d)
		default:
			return
		}
	}
}

func (a *attachment) enqueue(d *delivery) {
	if len(a.ready) == 0 {
		a.since = time.Now()
	}
	a.ready = append(a.ready, d)
}

// dispatch gives batches to idle workers.
func (a *attachment) dispatch() {
	c := a.consumer
	for len(a.ready) > 0 && a.busy < c.Concurrency {
		if len(a.ready) < c.BatchSize && c.BatchWait > 0 && time.Since(a.since) < c.BatchWait {
			return
		}
		n := min(len(a.ready), c.BatchSize)
		b := &batch{owner: a, deliveries: a.ready[:n:n]}
		select {
		case a.work <- b:
		default:
			return // workers still busy with what a broken session left; tried again with the next event
		}
		a.busy++
		a.ready = a.ready[n:]
		a.since = time.Now()
	}
}

// settle carries out the verdicts on a batch.
func (a *attachment) settle(ds []*delivery) {
	m := a.consumer.metrics
	for _, d := range ds {
		switch d.verdict {
		case done:
			a.ack(d)
			m.done.Inc()
		case retryHere:
			a.wait(d)
			m.retried.Inc()
		case lapByReject:
			a.ledger.close(d.DeliveryTag)
			a.check(a.ch.Reject(d.DeliveryTag, false))
			m.retried.Inc()
		case lapByCopy, quarantineNow:
			a.leaving = append(a.leaving, d)
		case giveBack, none:
			a.giveBack(d)
		}
	}
}

func (a *attachment) giveBack(d *delivery) {
	a.ledger.close(d.DeliveryTag)
	a.check(a.ch.Nack(d.DeliveryTag, false, true))
	a.consumer.metrics.givenBack.Inc()
}

// wait holds a delivery until it is due.
func (a *attachment) wait(d *delivery) {
	heap.Push(&a.waiting, d)
	a.consumer.metrics.waiting.Set(float64(len(a.waiting)))
}

// wake moves what is due on.
func (a *attachment) wake(now time.Time) {
	for len(a.waiting) > 0 && !a.waiting[0].due.After(now) {
		d := heap.Pop(&a.waiting).(*delivery)
		a.consumer.metrics.waiting.Set(float64(len(a.waiting)))
		if d.verdict == retryHere {
			d.attempt++
			a.enqueue(d)
		} else {
			a.leaving = append(a.leaving, d)
		}
	}
}

// ack notes that a delivery is to be acked.
func (a *attachment) ack(d *delivery) {
	if faults := a.consumer.Faults; faults != nil {
		if err := faults.At(a.live, fault.BeforeAck, d.msg.MessageID); err != nil {
			a.check(err) // the link is given up, so the broker hands the message out again
			return
		}
		a.acked = append(a.acked, d.msg.MessageID)
	}
	a.ledger.ack(d.DeliveryTag)
}

// flush sends the acks.
func (a *attachment) flush() {
	err := a.ledger.flush(a.ch)
	a.check(err)
	for _, id := range a.acked {
		if err == nil {
			a.check(a.consumer.Faults.At(a.live, fault.AfterAck, id))
		}
	}
	a.acked = a.acked[:0]
}

// check gives the link up when the channel does not take what we say.
func (a *attachment) check(err error) {
	if err != nil {
		a.link.fail(fmt.Errorf("consumer of %s: %w", a.consumer.Queue, err))
	}
}

// lost gives the link up because the broker ended this consumer: the queue was deleted, or the channel closed.
// Without a reason it looks for one: deliveries end in both cases.
func (a *attachment) lost(err error) {
	if err == nil {
		err = errors.New("cancelled by the broker")
		select {
		case exception := <-a.closed:
			err = closeError("channel", exception)
		default:
		}
	}
	a.link.fail(fmt.Errorf("consumer of %s: %w", a.consumer.Queue, err))
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
