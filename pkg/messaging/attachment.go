package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// attachment is one consumer on one link: a channel, and the deliveries taken from it. One goroutine, run, owns all of
// it; workers only see the deliveries they were given and answer with verdicts. When the link breaks the whole attachment
// is forgotten, because the broker has put every unacked message back.
//
// A delivery goes from take to ready, in a batch to a worker (dispatch, Consumer.handle), comes back with a verdict (settle),
// and is then acked, or waits for its next attempt, or leaves.
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
	quiet   time.Time        // since when nothing has come from them or, since it subscribed, from the broker

	ready   []*delivery // to be handled, in order
	since   time.Time   // when the first of them came
	waiting schedule    // between two attempts
	leaving []*delivery // to be published and then acked
	unsent  schedule    // the same, before another try
	exits   chan exit   // what became of the publishings; nil while none is under way
	held    int         // deliveries whose publishing has failed so far
	ledger  ledger

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
	if err := a.heedBreaker(time.Now()); err != nil {
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
		if err := a.heedBreaker(now); err != nil {
			a.lost(err)
			return
		}
		a.wake(now)
		again := a.dispatch(now)
		a.publishExits()
		a.flush()
		deliveries := a.deliveries
		if a.full() {
			deliveries = nil
		}
		timer.Reset(a.pause(now, again))
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
			a.quiet = time.Now()
			a.settle(ds)
		case e := <-a.exits:
			a.left(e)
		case <-a.consumer.dampers.changed:
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
	waiting := len(a.waiting) + len(a.unsent)
	return len(a.ready) >= a.consumer.BatchSize || waiting > 0 && 2*waiting >= a.consumer.Prefetch
}

func (a *attachment) take(d amqp.Delivery) {
	a.ledger.take(d.DeliveryTag)
	a.enqueue(&delivery{Delivery: d, suspect: d.Redelivered && a.consumer.Starts != nil})
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

// settle carries out the verdicts on a batch.
func (a *attachment) settle(ds []*delivery) {
	m := a.consumer.metrics
	var back []*delivery
	for _, d := range ds {
		switch d.verdict {
		case done:
			a.ledger.ack(d.DeliveryTag)
			m.done.Inc()
		case retryHere:
			d.attempt++
			a.wait(d)
			m.retried.Inc()
		case holdHere:
			a.wait(d)
		case lapByReject:
			a.ledger.close(d.DeliveryTag)
			a.check(a.ch.Reject(d.DeliveryTag, false))
			m.retried.Inc()
		case lapByCopy, quarantineNow:
			a.leaving = append(a.leaving, d)
		case giveBack, none:
			back = append(back, d)
		}
	}
	a.giveBack(back)
}

// giveBack gives deliveries back unspent.
func (a *attachment) giveBack(ds []*delivery) {
	if a.stopping {
		a.excuse(ds)
	}
	for _, d := range ds {
		a.ledger.close(d.DeliveryTag)
		a.check(a.ch.Nack(d.DeliveryTag, false, true))
		a.consumer.metrics.givenBack.Inc()
	}
}

func (a *attachment) flush() {
	a.check(a.ledger.flush(a.ch))
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
