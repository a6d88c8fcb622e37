package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

const debited = "accounts.account.debited"

func unknownTransfer(context.Context, *messaging.Message) error {
	return retry.Errorf(retry.NotFound, "transfer %q:\n\tunknown", "not-a-real-id")
}

func succeed(context.Context, *messaging.Message) error { return nil }

// parkedAfter checks what every parked message says, and returns the rest for the test to check.
func (f *fixture) parkedAfter(attempts int, reason string, class retry.Class) amqp.Delivery {
	f.Helper()
	d := f.take(contract.ParkingLot)
	f.checkQuarantined(d, "transfer", contract.AccountEventsQueue, attempts, reason, class)
	if d.RoutingKey != debited || d.Exchange != contract.DeadLetterExchange {
		f.Errorf("parked through %q with key %q", d.Exchange, d.RoutingKey)
	}
	return d
}

func (f *fixture) checkQuarantined(d amqp.Delivery, service, queue string, attempts int, reason string, class retry.Class) {
	f.Helper()
	for name, want := range map[string]any{
		"x-park-reason":  reason,
		"x-error-class":  string(class),
		"x-attempts":     int64(attempts),
		"x-origin-queue": queue,
		"x-service":      service,
	} {
		if got := d.Headers[name]; got != want {
			f.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	for _, name := range []string{"x-first-failed-at", "x-parked-at"} {
		text, _ := d.Headers[name].(string)
		if at, err := time.Parse(time.RFC3339, text); err != nil || time.Since(at) > time.Hour || time.Until(at) > time.Second {
			f.Errorf("%s = %v", name, d.Headers[name])
		}
	}
	for name := range d.Headers {
		if name == "Banking-Attempts" || name == "x-replay-count" || strings.HasPrefix(name, "x-death") || strings.HasPrefix(name, "x-first-death") {
			f.Errorf("carries %s", name)
		}
	}
	lastError, _ := d.Headers["x-last-error"].(string)
	if lastError == "" || strings.ContainsAny(lastError, "\n\t") {
		f.Errorf("x-last-error = %q", lastError)
	}
	if d.DeliveryMode != amqp.Persistent {
		f.Error("is not persistent")
	}
}

func TestLapThreeAttemptsThenParkingLot(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	f := start(t, s, c)
	sent := time.Now().Truncate(time.Second)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{
		Body: []byte(poisonBody), ContentType: "application/json", MessageId: "poison-1", AppId: "somebody", Type: "t", CorrelationId: "c",
		Timestamp: sent, Priority: 3,
		Headers: amqp.Table{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x-foreign": int32(7)},
	})
	began := time.Now()
	for attempt := 1; attempt <= 3; attempt++ {
		m := f.next()
		if m.Attempt != attempt || m.MessageID != "poison-1" || m.Queue != contract.AccountEventsQueue || m.TraceParent == "" {
			t.Errorf("execution %d: %+v", attempt, m)
		}
	}
	if took := time.Since(began); took < 2*lapDelay {
		t.Errorf("three attempts within %v", took)
	}
	d := f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound)
	if string(d.Body) != poisonBody || d.ContentType != "application/json" || d.MessageId != "poison-1" || d.AppId != "somebody" ||
		d.Type != "t" || d.CorrelationId != "c" || !d.Timestamp.Equal(sent) || d.Priority != 3 {
		t.Errorf("not as it was: %+v", d)
	}
	for name, want := range map[string]any{
		"x-origin-exchange":    contract.EventsExchange,
		"x-origin-routing-key": debited,
		"x-foreign":            int32(7),
		"x-last-error":         `transfer "not-a-real-id":  unknown`,
		"traceparent":          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	} {
		if d.Headers[name] != want {
			t.Errorf("%s = %v, want %v", name, d.Headers[name], want)
		}
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	f.notHandled()
}

// death is an entry of x-death as a broker writes it.
func death(queue, reason string, count any) amqp.Table {
	return amqp.Table{
		"queue": queue, "reason": reason, "count": count, "time": time.Now(),
		"exchange": "somewhere", "routing-keys": []any{"some.key"},
	}
}

func aged(death amqp.Table) amqp.Table {
	death["time"] = time.Now().Add(-48 * time.Hour)
	return death
}

func TestDeathsOfOtherQueuesAreNotAttempts(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	f := start(t, s, c)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: amqp.Table{"x-death": []any{
		death("some.other.queue", "rejected", int64(7)),
		death(contract.AccountEventsRetry, "expired", int64(1)),
		death(contract.AccountEventsQueue, "rejected", int64(1)),
	}}})
	for attempt := 2; attempt <= 3; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d, want %d", m.Attempt, attempt)
		}
	}
	f.take(contract.ParkingLot)
	f.notHandled()
}

func TestForeignDeathHeadersMakeTheirLapsAndPark(t *testing.T) {
	t.Parallel()
	for name, headers := range map[string]amqp.Table{
		"an array of numbers":       {"x-death": []any{int32(1), "two", nil, []any{amqp.Table{}}}},
		"a text":                    {"x-death": "rejected"},
		"nothing":                   {"x-death": nil},
		"an empty array":            {"x-death": []any{}},
		"tables of nonsense":        {"x-death": []any{amqp.Table{"queue": int32(1), "reason": nil, "count": "many"}}},
		"a count below zero":        {"x-death": []any{death(contract.AccountEventsQueue, "rejected", int64(-5))}},
		"an expiry at another's":    {"x-death": []any{death("elsewhere", "expired", int64(3))}, "x-first-death-reason": "expired", "x-first-death-queue": "elsewhere", "x-first-death-exchange": ""},
		"only first-death":          {"x-first-death-reason": "expired", "x-first-death-queue": contract.AccountEventsQueue},
		"a first death of nonsense": {"x-first-death-reason": int64(1)},
		"attempts of nonsense":      {"Banking-Attempts": "all of them"},
		"attempts beyond any":       {"Banking-Attempts": int64(math.MaxInt64)},
		"more than there are": {"x-death": []any{
			death(contract.AccountEventsRetry, "expired", int64(99)), death(contract.AccountEventsQueue, "rejected", int64(99))}},
		"all that a broker writes": {"x-first-death-reason": "rejected", "x-first-death-queue": contract.AccountEventsQueue, "x-first-death-exchange": "e", "x-death": []any{
			death(contract.AccountEventsRetry, "expired", int64(99)), death(contract.AccountEventsQueue, "rejected", int64(99))}},
		"an old death":        {"x-death": []any{aged(death(contract.AccountEventsQueue, "rejected", int64(1)))}},
		"a copy to elsewhere": {"CC": []any{contract.AccountEventsRetry + ".nowhere"}, "x-death": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := transfer(unknownTransfer)
			f := start(t, s, c)
			f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: headers})
			for attempt := 1; attempt <= 3; attempt++ {
				if m := f.next(); m.Attempt != attempt {
					t.Errorf("attempt %d, want %d", m.Attempt, attempt)
				}
			}
			d := f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound)
			if d.Headers["x-origin-exchange"] != contract.EventsExchange || d.Headers["x-origin-routing-key"] != debited {
				t.Errorf("origin: %v", d.Headers)
			}
			f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry)
			f.notHandled()
		})
	}
}

func TestOwnAttemptHeaderCountsWhateverTheBrokerDoes(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	f := start(t, s, c)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: amqp.Table{"Banking-Attempts": int16(1)}})
	for attempt := 2; attempt <= 3; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d, want %d", m.Attempt, attempt)
		}
	}
	f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound)
}

func TestExpiredMessageIsParkedAndNotDropped(t *testing.T) {
	t.Parallel()
	s, _ := transfer(nil)
	f := start(t, s, messaging.ConsumerConfig{}) // nobody consumes
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Expiration: "50"})
	d := f.take(contract.ParkingLot)
	deaths, err := messaging.ReadDeaths(d.Headers)
	if err != nil || len(deaths) != 1 || deaths[0].Reason != "expired" || deaths[0].Queue != contract.AccountEventsQueue ||
		deaths[0].RoutingKeys[0] != debited {
		t.Errorf("deaths %+v, %v", deaths, err)
	}
}

// Without its retry queue a rejected message has nowhere to wait. The exchange before that queue leads it to the parking lot, without
// any header of ours; what the broker says of it must do for a replay.
func TestRejectedWithoutARetryQueueIsParkedWithReasonAndOrigin(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	s.CheckInterval = time.Hour // nobody puts the queue back
	f := start(t, s, c)
	if _, err := f.client.QueueDelete(contract.AccountEventsRetry, false, false, false); err != nil {
		t.Fatal(err)
	}
	f.publishBody(debited, poisonBody)
	f.next()
	d := f.take(contract.ParkingLot)
	p := messaging.ReadParked(d.Headers)
	if p.Reason != retry.ReasonRejected || p.Attempts != 1 || p.OriginQueue != contract.AccountEventsQueue || !p.OriginKnown ||
		p.OriginExchange != contract.EventsExchange || p.OriginRoutingKey != debited || time.Since(p.ParkedAt) > time.Hour {
		t.Errorf("parked as %+v", p)
	}
	f.eventually("the retry queue to be back", func() error {
		if slices.ContainsFunc(f.env.Queues(f), func(q testenv.Queue) bool { return q.Name == contract.AccountEventsRetry }) {
			return nil
		}
		return fmt.Errorf("it is not, and ready says: %v", f.session.Ready(f.Context())) // which looks after it
	})
	f.publish("", contract.AccountEventsQueue, messaging.Replayed(&d, time.Now()))
	for attempt := 1; attempt <= 3; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d after the replay, want %d", m.Attempt, attempt)
		}
	}
	if d := f.take(contract.ParkingLot); d.Headers["x-park-reason"] != retry.ReasonMaxAttempts || d.Headers["x-attempts"] != int64(3) ||
		d.Headers["x-origin-exchange"] != contract.EventsExchange || d.Headers["x-origin-routing-key"] != debited || d.Headers["x-replay-count"] != int64(1) {
		t.Errorf("parked again with %v", d.Headers)
	}
}

// Operators set policies. With one by which messages expire in the main queue, a message that comes back from its lap while nobody
// consumes dies there of something else than a rejection. It must still be somewhere: RabbitMQ 4 parks it, 3.10 lets it make laps.
func TestMessageThatExpiresAfterItsLapIsNotDropped(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	s.Topology = topology.Transfer(messaging.Quorum, time.Second)
	f := start(t, s, c)
	f.publishBody(debited, poisonBody)
	f.next()
	f.stop()
	const marker = "comes behind it, and is parked on any version"
	f.publish("", contract.AccountEventsRetry, amqp.Publishing{Body: []byte(marker)})
	m := management.New(f.env.ManagementURL)
	expire := "/api/policies/" + f.env.VHost + "/expire"
	policy := map[string]any{"pattern": `^transfer\.account-events$`, "apply-to": "queues", "definition": map[string]any{"message-ttl": 50}}
	if err := m.Put(t.Context(), expire, policy); err != nil {
		t.Fatal(err)
	}
	found := false
	for body := ""; body != marker; {
		body = string(f.take(contract.ParkingLot).Body)
		found = found || body == poisonBody
	}
	if err := m.Delete(t.Context(), expire); err != nil {
		t.Fatal(err)
	}
	f.eventually("the message", func() error {
		for _, queue := range []string{contract.ParkingLot, contract.AccountEventsQueue} {
			if d, ok, err := f.client.Get(queue, true); err != nil {
				f.Fatal(err)
			} else if ok {
				found = found || string(d.Body) == poisonBody
			}
		}
		if !found {
			return errors.New("it is nowhere")
		}
		return nil
	})
}

func TestRejectedMessageWithExpirationMakesItsLaps(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	f := start(t, s, c)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Expiration: "60000"})
	for attempt := 1; attempt <= 3; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d, want %d", m.Attempt, attempt)
		}
	}
	if d := f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound); d.Expiration != "" {
		t.Errorf("expiration %q is still set", d.Expiration)
	}
}

func TestAgedMessagesAreNotRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class  retry.Class
		age    time.Duration
		reason string
	}{
		"not found and no longer young": {retry.NotFound, 6 * time.Minute, retry.ReasonNotFoundAged},
		"older than anything":           {retry.Unknown, 25 * time.Hour, retry.ReasonMaxAge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, consumer := transfer(func(context.Context, *messaging.Message) error { return retry.Errorf(c.class, "no") })
			f := start(t, s, consumer)
			body := `{"messageId":"old","type":"T","occurredAt":"` + time.Now().Add(-c.age).UTC().Format(time.RFC3339) + `"}`
			f.publishBody(debited, body)
			f.parkedAfter(1, c.reason, c.class)
			f.publish(contract.EventsExchange, debited, amqp.Publishing{
				Body: []byte(`{"messageId":"old-2","type":"T"}`), Timestamp: time.Now().Add(-c.age),
			})
			f.parkedAfter(1, c.reason, c.class)
		})
	}
}
