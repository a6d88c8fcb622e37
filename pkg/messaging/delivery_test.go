package messaging

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestForgedDeathSaysNothingAboutTheFirstFailure(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{time.Unix(1, 0), time.Unix(-1<<40, 0), time.Unix(1<<40, 0)} {
		s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.DiscardHandler)})
		c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Road: InProcess("errors"), Policy: retry.Policy{MaxAttempts: 1}}, session: s, metrics: s.Metrics.of(mainQueue)}
		c.now = time.Now
		death := entry(mainQueue, "rejected", int64(1))
		death["time"] = at
		d := &delivery{Delivery: amqp.Delivery{Headers: own(amqp.Table{"x-death": []any{death}})}}
		d.prepare(mainQueue)
		began := time.Now().Truncate(time.Millisecond)
		d.err, d.class = d.wrong, c.classOf(d.wrong)
		c.decide(d, c.now())
		if got := headerTime(d.copy.Headers, HeaderFirstFailedAt); got.Before(began) || got.After(time.Now()) {
			t.Errorf("%v: first failed at %v", at, got)
		}
	}
}

// A decision that has not been carried out is no message in quarantine.
func TestQuarantinedIsCountedOnceTheCopyIsConfirmed(t *testing.T) {
	t.Parallel()
	s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.DiscardHandler)})
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Road: InProcess("errors"), Policy: retry.Policy{MaxAttempts: 1}}, session: s, metrics: s.Metrics.of(mainQueue)}
	c.now, c.rnd = time.Now, func() float64 { return 0.5 }
	d := &delivery{Delivery: amqp.Delivery{Body: []byte("garbage"), DeliveryTag: 1}}
	d.prepare(mainQueue)
	d.err, d.class = d.wrong, c.classOf(d.wrong)
	c.decide(d, c.now())
	a := &attachment{consumer: c}
	a.ledger.take(1)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Metrics)
	count := func() (n float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "messaging_quarantined_total" {
				n = family.GetMetric()[0].GetCounter().GetValue()
			}
		}
		return n
	}
	a.copiesPublished(publishedCopies{deliveries: []*delivery{d}, outcomes: []Outcome{Nacked}})
	if n := count(); n != 0 {
		t.Errorf("%v counted before the confirm", n)
	}
	a.copiesPublished(publishedCopies{deliveries: []*delivery{d}, outcomes: []Outcome{Acked}})
	if n := count(); n != 1 {
		t.Errorf("%v counted after the confirm", n)
	}
}

func TestOnlyBodiesUpToTheLimitAreDecoded(t *testing.T) {
	t.Parallel()
	body := func(size int) []byte {
		const start, end = `{"messageId":"m","type":"T","data":"`, `"}`
		return []byte(start + strings.Repeat("x", size-len(start)-len(end)) + end)
	}
	largest := delivery{Delivery: amqp.Delivery{Body: body(MaxBody)}}
	largest.prepare(mainQueue)
	if largest.wrong != nil || largest.msg.MessageID != "m" {
		t.Errorf("the largest: %v", largest.wrong)
	}
	larger := delivery{Delivery: amqp.Delivery{Body: body(MaxBody + 1)}}
	larger.prepare(mainQueue)
	if retry.ClassOf(larger.wrong) != retry.Validation || larger.msg.Data != nil {
		t.Errorf("a larger one: %v", larger.wrong)
	}
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Road: InProcess("errors")}}
	exit := c.quarantined(&larger, cause{class: retry.Validation, err: larger.wrong, at: time.Now()})
	if !bytes.Equal(exit.Body, larger.Body) {
		t.Error("the body changed in quarantine")
	}
}
