package messaging

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A channel that the broker closes while nothing more is taken: deliveries end, but nobody looks there.
func TestClosedChannelIsNoticedWithoutASubscription(t *testing.T) {
	t.Parallel()
	a := &attachment{
		consumer: &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Concurrency: 1, BatchSize: 1, maxHold: time.Hour}, metrics: NewMetrics().of(mainQueue), dampers: &dampers{}},
		link:     &link{broken: make(chan struct{})}, closed: make(chan *amqp.Error, 1), ready: []*delivery{{since: time.Now()}}, busy: 1,
	}
	a.closed <- &amqp.Error{Code: amqp.PreconditionFailed, Reason: "delivery acknowledgement timed out", Server: true}
	a.run(t.Context())
	select {
	case <-a.link.broken:
	default:
		t.Fatal("the link lives on")
	}
	if why := a.link.why.Error(); !strings.Contains(why, "timed out") || !strings.Contains(why, mainQueue) {
		t.Errorf("why: %s", why)
	}
}

// The broker takes the channel from who holds a delivery for 30 minutes, whatever it was held for: each wait is short enough, but
// before each of the attempts it may also have been held back.
func TestWhatHasBeenHeldForLongGoesToTheTail(t *testing.T) {
	t.Parallel()
	consumer := func() *attachment {
		return &attachment{consumer: &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Prefetch: 10, maxHold: defaultMaxHold}, metrics: NewMetrics().of(mainQueue)}}
	}
	now := time.Now()
	failed := func(held, wait time.Duration) *delivery {
		return &delivery{verdict: retryHere, attempt: 1, taken: now.Add(-held), due: now.Add(wait)}
	}
	a := consumer()
	short, long := failed(4*time.Minute, 20*time.Minute), failed(6*time.Minute, 20*time.Minute)
	a.settle([]*delivery{short, long})
	if len(a.waiting) != 1 || a.waiting[0] != short || len(a.outgoing) != 1 || a.outgoing[0] != long {
		t.Fatalf("%d wait, %d go", len(a.waiting), len(a.outgoing))
	}
	if long.verdict != tailByCopy || long.copy.RoutingKey != mainQueue || long.copy.Headers[headerAttempts] != int64(1) {
		t.Errorf("it goes as %d to %q with %v", long.verdict, long.copy.RoutingKey, long.copy.Headers)
	}

	a = consumer()
	fresh, old := failed(9*time.Minute, -time.Second), failed(10*time.Minute, 0)
	a.wait(fresh)
	a.wait(old)
	a.wake(now)
	if len(a.waiting) != 0 || len(a.ready) != 1 || a.ready[0] != fresh || len(a.outgoing) != 1 || a.outgoing[0] != old || old.verdict != tailByCopy {
		t.Errorf("%d wait, %d are ready, %d go", len(a.waiting), len(a.ready), len(a.outgoing))
	}
}
