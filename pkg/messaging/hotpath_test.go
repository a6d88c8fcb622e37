package messaging

import (
	"errors"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// What each message costs on its way through a consumer, one step at a time; to be compared with benchstat.

var hotBody = []byte(`{"messageId":"2f1d6a5c-6b0e-5c39-9f6d-0f6f8f6f2b11","type":"Accounts.Account.Debited","occurredAt":"2026-11-30T10:15:00.123Z",` +
	`"correlationId":"0190a8a0-0000-7000-8000-000000000001","causationId":"b4a5f6de-1a69-53b1-8ba2-3f6c0a8f8a10",` +
	`"data":{"transferId":"0190a8a0-0000-7000-8000-000000000001","accountId":"0190a8a0-0000-7000-8000-000000000002","amountMinor":2500,"currency":"EUR"}}`)

func hotDelivery(tag uint64) amqp.Delivery {
	return amqp.Delivery{
		DeliveryTag: tag, Exchange: "banking.events", RoutingKey: "accounts.account.debited", ContentType: "application/json", DeliveryMode: amqp.Persistent,
		MessageId: "2f1d6a5c-6b0e-5c39-9f6d-0f6f8f6f2b11", Type: "Accounts.Account.Debited", Body: hotBody,
		Headers: amqp.Table{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(hotBody); err != nil {
			b.Fatal(err)
		}
	}
}

// Headers and body of a first delivery, as a worker reads them.
func BenchmarkPrepare(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		d := delivery{Delivery: hotDelivery(1)}
		d.prepare(mainQueue)
		if d.wrong != nil || d.attempt != 1 {
			b.Fatal(d.wrong, d.attempt)
		}
	}
}

func BenchmarkPayloadHash(b *testing.B) {
	e, err := Decode(hotBody)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.PayloadHash(); err != nil {
			b.Fatal(err)
		}
	}
}

// The headers of a message that is given up.
func BenchmarkQuarantineHeaders(b *testing.B) {
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Service: "transfer", Road: InProcess("parked")}}
	d := &delivery{Delivery: hotDelivery(1)}
	d.prepare(mainQueue)
	why := cause{reason: retry.ReasonMaxAttempts, class: retry.Unknown, err: errors.New("no"), at: time.Now()}
	b.ReportAllocs()
	for b.Loop() {
		if p := c.quarantined(d, why); len(p.Headers) == 0 {
			b.Fatal("no headers")
		}
	}
}

// quiet takes acks and does nothing.
type quiet struct{ acks int }

func (q *quiet) Ack(uint64, bool) error { q.acks++; return nil }

// BenchmarkBatch takes 128 deliveries, forms their batch and acks them, without a broker; the figures are those of a whole batch.
func BenchmarkBatch(b *testing.B) {
	const size = 128
	c := &Consumer{ConsumerConfig: ConsumerConfig{BatchSize: size}}
	a := &attachment{consumer: c, subscription: subscription{prefetch: 2 * size}}
	var tag uint64
	var ch quiet
	b.ReportAllocs()
	for b.Loop() {
		for range size {
			tag++
			a.take(hotDelivery(tag))
		}
		n, full := a.next()
		if n != size || !full {
			b.Fatal(n, full)
		}
		for _, d := range a.ready[:n] {
			a.ack(d)
		}
		a.ready = a.ready[n:]
		if err := a.ledger.flush(&ch); err != nil {
			b.Fatal(err)
		}
	}
	if ch.acks != b.N {
		b.Errorf("%d acks for %d batches", ch.acks, b.N)
	}
}
