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
