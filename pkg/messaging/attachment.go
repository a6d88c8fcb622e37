package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// attachment is one consumer on one link: a channel, and the deliveries taken from it. One goroutine, run, owns all of
// it; workers only see the deliveries they were given and answer with verdicts. When the link breaks the whole attachment
// is forgotten, because the broker has put every unacked message back.
//
// The way of one delivery: take puts it among the ready ones, dispatch gives it in a batch to a worker, where Consumer.handle runs the
// batch and judges it; settle carries the verdict out. It is acked, rejected or given back, or waits here for its next attempt
// (wake), or a copy of it is published before it is acked (publishCopies): elsewhere, or at the tail of its own queue.
type attachment struct {
	consumer  *Consumer
	link      *link
	ch        *amqp.Channel
	cancelled chan string      // the broker ended the consumer
	closed    chan *amqp.Error // or the channel
	live      context.Context
	subscription

	work    chan<- *batch    // only we send on it
	results chan []*delivery // from the workers; has room for one answer of each
	busy    int              // batches at the workers

	ready     []*delivery          // to be handled, in order
	since     time.Time            // when the first of them came
	waiting   schedule             // between two attempts
	outgoing  []*delivery          // their copies are to be published, then they are acked
	unsent    schedule             // the same, before another try
	published chan publishedCopies // what became of the copies; nil while none is under way
	stranded  int                  // deliveries whose copies could not be published so far
	ledger    ledger
	acked     []string // message ids of the acks since the last flush, while faults can be ordered

	stopping  bool
	unexcused bool // deliveries could not be excused
}

func (c *Consumer) attach(l *link, work chan<- *batch, live context.Context) (*attachment, error) {
	a := &attachment{
		consumer: c, link: l, live: live, work: work,
		results: make(chan []*delivery, 2*c.Concurrency),
	}
	err := l.within(live, "open a channel for "+c.Queue, func() (err error) {
		a.ch, err = l.consuming.Channel()
		return err
	})
	if err != nil {
		return nil, err
	}
	a.cancelled = a.ch.NotifyCancel(make(chan string, 1))
	a.closed = a.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := a.follow(time.Now()); err != nil {
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
		now := time.Now()
		if err := a.follow(now); err != nil {
			a.lost(err)
			return
		}
		a.wake(now)
		again := a.dispatch(now)
		a.publishCopies()
		if a.ledger.ripe(now, a.prefetch) || a.consumer.Faults != nil { // a fault at an ack is to be about that message alone
			a.flush()
		}
		timer.Reset(a.pause(now, again))
		select {
		case d, open := <-a.deliveries:
			if !open {
				a.lost(nil)
				return
			}
			a.take(d)
			a.takeMore()
		case ds := <-a.results:
			a.busy--
			a.settle(ds)
		case r := <-a.published:
			a.copiesPublished(r)
			a.flush() // while the copy and the original are both there, a crash makes two of one
		case <-a.consumer.dampers.changed:
		case <-timer.C:
		case <-a.cancelled: // deliveries end too, but there may be no subscription
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

// saturated says whether so many messages wait here that no others are started, which might come to wait as well. A half-open breaker
// tries one all the same, or it would never close.
func (a *attachment) saturated() bool {
	waiting := len(a.waiting) + len(a.unsent)
	return a.breaker != retry.HalfOpen && waiting > 0 && 2*waiting >= a.consumer.Prefetch
}

func (a *attachment) take(d amqp.Delivery) {
	a.ledger.take(d.DeliveryTag)
	taken := &delivery{Delivery: d, taken: time.Now()}
	if d.Redelivered && a.consumer.Starts != nil {
		taken.suspicion = unnoted
	}
	a.enqueue(taken)
}

// takeMore takes what has come meanwhile, so that a batch is not made of the first one alone. There is no more of it than the
// prefetch, and none is left to the client library, where nobody would know for how long it has been held.
func (a *attachment) takeMore() {
	for {
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
	d.since = time.Now()
	if len(a.ready) == 0 {
		a.since = d.since
	}
	a.ready = append(a.ready, d)
}

// settle carries out the verdicts on a batch.
func (a *attachment) settle(ds []*delivery) {
	m := a.consumer.metrics
	var back []*delivery
	for _, d := range ds {
		switch d.verdict {
		case done:
			a.ack(d)
			m.done.Inc()
		case retryHere:
			d.attempt++
			// A wait that alone is too long is what the settings want, and the tail would be none.
			if most := a.consumer.mostHeld(); d.due.Sub(d.taken) > most && time.Until(d.due) <= most {
				a.moveToTail(d) // where it counts as new
			} else {
				a.wait(d)
			}
			m.retried.Inc()
		case lapByReject:
			a.ledger.close(d.DeliveryTag)
			a.check(a.ch.Reject(d.DeliveryTag, false))
			m.retried.Inc()
		case lapByCopy, quarantineNow:
			a.outgoing = append(a.outgoing, d)
		case giveBack, none:
			back = append(back, d)
		}
	}
	a.giveBack(back)
}

// giveBack gives deliveries back unspent. What has spent attempts here goes to the tail with them; but not when we stop, which
// must not wait for the broker, and happens on purpose.
func (a *attachment) giveBack(ds []*delivery) {
	if a.stopping {
		a.excuse(ds)
	}
	for _, d := range ds {
		if d.waited() && !a.stopping {
			a.moveToTail(d)
			continue
		}
		a.ledger.close(d.DeliveryTag)
		a.check(a.ch.Nack(d.DeliveryTag, false, true))
		a.consumer.metrics.givenBack.Inc()
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
