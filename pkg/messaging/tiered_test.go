package messaging_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// tiered is a consumer on the tiered road with the real topology of the transfer service and its five attempts.
func tiered(answer script, jitter float64, delays ...time.Duration) (messaging.SessionConfig, messaging.ConsumerConfig) {
	s, c := transfer(answer)
	s.Topology = topology.TransferTiered(messaging.Quorum, lapDelay, delays, jitter)
	c.Road = messaging.Tiered(topology.RetryTiers(delays, jitter), contract.DeadLetterExchange)
	c.Policy.MaxAttempts, c.Policy.Delays = 5, delays
	return s, c
}

func TestTieredFiveAttemptsThenParkingLot(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	s, c := tiered(unknownTransfer, 0, delays...)
	f := start(t, s, c)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{
		Body: []byte(poisonBody), ContentType: "application/json", MessageId: "poison-1", AppId: "somebody", Type: "t", CorrelationId: "c", Priority: 3,
		Headers: amqp.Table{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-foreign": int32(7)},
	})
	var second, last time.Time
	for attempt := 1; attempt <= 5; attempt++ {
		m, now := f.next(), time.Now()
		if m.Attempt != attempt || m.MessageID != "poison-1" || m.Queue != contract.AccountEventsQueue || m.TraceParent == "" {
			t.Errorf("execution %d: %+v", attempt, m)
		}
		if attempt > 1 {
			if want := delays[min(attempt-2, 2)]; now.Sub(last) < want-20*time.Millisecond {
				t.Errorf("attempt %d after %v, want %v", attempt, now.Sub(last), want)
			}
		}
		if last = now; attempt == 2 {
			second = now
		}
	}
	d := f.parkedAfter(5, retry.ReasonMaxAttempts, retry.NotFound)
	if string(d.Body) != poisonBody || d.ContentType != "application/json" || d.MessageId != "poison-1" || d.AppId != "somebody" || d.Type != "t" ||
		d.CorrelationId != "c" || d.Priority != 3 {
		t.Errorf("not as it was: %+v", d)
	}
	for name, want := range map[string]any{
		"x-origin-exchange":    contract.EventsExchange,
		"x-origin-routing-key": debited,
		"x-foreign":            int32(7),
		"traceparent":          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		if d.Headers[name] != want {
			t.Errorf("%s = %v, want %v", name, d.Headers[name], want)
		}
	}
	if at, err := time.Parse(time.RFC3339, fmt.Sprint(d.Headers["x-first-failed-at"])); err != nil || !at.Before(second) {
		t.Errorf("first failed at %v, but the second attempt was at %v", at, second)
	}
	queues := []string{contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot}
	for _, delay := range delays {
		queues = append(queues, contract.RetryTierQueue(delay))
	}
	f.empty(queues...)
	f.notHandled()
}

// A long wait must not hold a short one behind it: not at the broker, where a queue expires messages only at its head, and not
// in the consumer.
func TestLongWaitDoesNotHoldAShortOne(t *testing.T) {
	t.Parallel()
	const short, long = 300 * time.Millisecond, 24 * time.Hour
	answer := func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "long" {
			return retry.Errorf(retry.RateLimited, "too many")
		}
		return retry.Errorf(retry.Timeout, "no answer")
	}
	for road, c := range map[string]struct {
		service func() (messaging.SessionConfig, messaging.ConsumerConfig)
		key     string
		waits   func(f *fixture) int // messages on the long wait
	}{
		"tiered": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return tiered(answer, 0, short, long) }, debited, func(f *fixture) int {
			ready, _ := f.env.QueueDepth(f, contract.RetryTierQueue(long))
			return ready
		}},
		"in process": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return account(answer, short, long) }, requested, func(f *fixture) int {
			_, unacked := f.env.QueueDepth(f, requestQueue)
			return unacked
		}},
	} {
		t.Run(road, func(t *testing.T) {
			t.Parallel()
			s, consumer := c.service()
			consumer.Policy.MaxAttempts = 2
			f := start(t, s, consumer)
			f.publishBody(c.key, `{"messageId":"long","type":"T"}`)
			f.next()
			f.eventually("the long wait to begin", func() error {
				if n := c.waits(f); n != 1 {
					return fmt.Errorf("%d messages wait", n)
				}
				return nil
			})
			f.publishBody(c.key, `{"messageId":"short","type":"T"}`)
			if m := f.next(); m.MessageID != "short" || m.Attempt != 1 {
				t.Fatalf("%s, attempt %d", m.MessageID, m.Attempt)
			}
			began := time.Now()
			if m := f.next(); m.MessageID != "short" || m.Attempt != 2 {
				t.Fatalf("%s, attempt %d", m.MessageID, m.Attempt)
			}
			if took := time.Since(began); took < short-20*time.Millisecond || took > short+10*time.Second {
				t.Errorf("the short wait took %v, want %v", took, short)
			}
			f.eventually("the long one to be the only one that waits", func() error {
				if n := c.waits(f); n != 1 {
					return fmt.Errorf("%d messages wait", n)
				}
				return nil
			})
			f.notHandled()
		})
	}
}

func TestJitterSpreadsOverTheQueuesOfATier(t *testing.T) {
	t.Parallel()
	s, c := tiered(unknownTransfer, 0.2, 10*time.Minute)
	f := start(t, s, c)
	const messages = 90
	for i := range messages {
		f.publishBody(debited, fmt.Sprintf(`{"messageId":"%d","type":"T"}`, i))
	}
	names := []string{"transfer.account-events.retry.8m", "transfer.account-events.retry.10m", "transfer.account-events.retry.12m"}
	depths := make([]int, len(names))
	f.eventually("all messages to wait", func() error {
		sum := 0
		for i, name := range names {
			depths[i], _ = f.env.QueueDepth(t, name)
			sum += depths[i]
		}
		if sum != messages {
			return fmt.Errorf("%v wait", depths)
		}
		return nil
	})
	if slices.Min(depths) < messages/9 { // thirty on average; chance is below 1 in a million
		t.Errorf("the queues got %v of %d", depths, messages)
	}
}

// A copy that finds no queue comes back: the original stays where it is, the queue is declared again, and the message goes on.
func TestDeletedTierLosesNothing(t *testing.T) {
	t.Parallel()
	const delay = 100 * time.Millisecond
	s, c := tiered(unknownTransfer, 0, delay)
	c.Policy.MaxAttempts = 2
	f := start(t, s, c)
	queue := contract.RetryTierQueue(delay)
	if _, err := f.client.QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	f.publishBody(debited, poisonBody)
	f.eventually("readiness to name the queue", func() error {
		if err := f.session.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), queue) {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	for attempt := 1; attempt <= 2; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d, want %d", m.Attempt, attempt)
		}
	}
	f.parkedAfter(2, retry.ReasonMaxAttempts, retry.NotFound)
	f.empty(contract.AccountEventsQueue, queue)
	f.notHandled()
}

// A message that leaves the main queue by another way than a rejection after it has waited in a tier must not enter the lap,
// where the broker would take it for a cycle and drop it.
func TestMessageThatExpiresAfterItsTierIsParked(t *testing.T) {
	t.Parallel()
	const delay = 50 * time.Millisecond
	s, _ := tiered(nil, 0, delay)
	f := start(t, s, messaging.ConsumerConfig{}) // nobody consumes
	policy := map[string]any{"pattern": "^" + strings.ReplaceAll(contract.AccountEventsQueue, ".", `\.`) + "$", "apply-to": "queues", "definition": map[string]any{"message-ttl": 50}}
	if err := management.New(f.env.ManagementURL).Put(t.Context(), "/api/policies/"+f.env.VHost+"/"+url.PathEscape("expire main"), policy); err != nil {
		t.Fatal(err)
	}
	f.publish("", contract.RetryTierQueue(delay), amqp.Publishing{Body: []byte(poisonBody), Headers: amqp.Table{"Banking-Attempts": int64(1)}})
	d := f.take(contract.ParkingLot)
	deaths, err := messaging.ReadDeaths(d.Headers)
	if err != nil || len(deaths) != 2 || string(d.Body) != poisonBody {
		t.Errorf("%s with deaths %+v, %v", d.Body, deaths, err)
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
}
