package messaging

import (
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// subscription is what an attachment has asked the broker for. It follows the breaker: everything up to the prefetch while that is
// closed, one message at a time while it is half-open, nothing while it is open. And it follows the pace. The channel stays.
type subscription struct {
	tag        string               // a new one for each
	number     int                  // of subscriptions so far
	deliveries <-chan amqp.Delivery // nil while there is none
	prefetch   int                  // 0 while there is none
	stale      bool                 // since it began, a message has come to wait here that may be all of a prefetch of one

	slow    bool               // one message at a time, because some were held for too long
	breaker retry.BreakerState // that it follows at present
	until   time.Time          // when that ends by itself; zero: never
}

// follow brings the subscription in line with the breaker and the pace.
//
// Nothing waits here while the breaker is open. That may be for long: the attempts would be lost with the process, or when the
// broker takes the channel of a consumer that does not ack (consumer_timeout). And those who wait are the ones that opened it; if they
// are to blame themselves, the next to be tried must be somebody else.
//
// Nor is anything held for long that is not started. Where it comes to that, as with a rate that was lowered to next to nothing, all
// goes back, and one message at a time is taken until the pace is as it should be.
func (a *attachment) follow(now time.Time) error {
	a.breaker, a.until = a.consumer.dampers.breakerState(now)
	if a.breaker == retry.Open {
		for _, d := range a.waiting {
			a.moveToTail(d)
		}
		a.waiting = nil
		a.countWaiting()
	}
	late := a.late(now)
	a.slow = late || a.slow && a.consumer.dampers.hindered()
	wanted := a.wanted()
	if a.prefetch == wanted && !a.starved() && !late {
		return nil
	}
	if a.prefetch > 0 {
		less := wanted < a.prefetch || late
		if err := a.unsubscribe(); err != nil {
			return err
		}
		if less {
			a.giveBack(a.ready)
			a.ready = nil
		}
	}
	if wanted == 0 {
		return nil
	}
	return a.subscribe(wanted)
}

// late says whether a message has been held for too long without being started.
func (a *attachment) late(now time.Time) bool {
	return len(a.ready) > 0 && !a.ready[0].since.Add(a.consumer.maxHold).After(now)
}

// wanted is the prefetch that breaker and pace allow; 0 is no subscription.
func (a *attachment) wanted() int {
	switch {
	case a.breaker == retry.Open:
		return 0
	case a.breaker == retry.HalfOpen || a.slow:
		return 1
	default:
		return a.consumer.Prefetch
	}
}

// starved says whether nothing is left to do and nothing may come: what waits here for its next attempt may be all that a small prefetch
// lets the broker hand out. A new subscription counts anew.
func (a *attachment) starved() bool {
	return a.prefetch < a.consumer.Prefetch && a.stale && a.busy+len(a.ready) == 0 && !a.saturated()
}

// subscribe asks for deliveries, for no more than prefetch without an ack. The broker counts them for each subscription, so what an
// earlier one has left here does not count. Each has a tag of its own: RabbitMQ (3.10, quorum queues) takes one that is used again
// while messages of the earlier are unacked for the same consumer, and loses count of what it has sent.
func (a *attachment) subscribe(prefetch int) error {
	queue := a.consumer.Queue
	a.number++
	a.tag = fmt.Sprintf("%s:%s:%d", a.consumer.session.Name, queue, a.number)
	return a.link.within(a.live, "consume "+queue, func() error {
		if err := a.ch.Qos(prefetch, 0, false); err != nil {
			return err
		}
		deliveries, err := a.ch.Consume(queue, a.tag, false, false, false, false, nil)
		a.deliveries, a.prefetch, a.stale = deliveries, prefetch, false
		return err
	})
}

// unsubscribe ends the subscription and takes what has been delivered until then. It waits for the broker to confirm: what
// would come later belongs to nobody, and would be unacked for as long as the channel lives.
func (a *attachment) unsubscribe() error {
	err := a.link.within(a.live, "cancel the consumer of "+a.consumer.Queue, func() error { return a.ch.Cancel(a.tag, false) })
	if err != nil {
		return err
	}
	for d := range a.deliveries {
		a.take(d)
	}
	a.deliveries, a.prefetch = nil, 0
	return nil
}
