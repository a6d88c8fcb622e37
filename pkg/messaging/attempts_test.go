package messaging_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// What becomes of x-death between two attempts depends on the broker's version, and on who handles the message on its way.
// Here the test is the broker that brings it back.
func TestAttemptsDoNotDependOnDeathHeaders(t *testing.T) {
	t.Parallel()
	const never = 24 * time.Hour
	foreign := amqp.Table{"x-death": []any{death("elsewhere", "rejected", int64(1))}, "x-first-death-reason": "rejected", "x-first-death-queue": "elsewhere"}
	for road, c := range map[string]struct {
		service  func() (messaging.SessionConfig, messaging.ConsumerConfig)
		waitsIn  string
		headers  amqp.Table
		attempts int
	}{
		"tiered": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return tiered(unknownTransfer, 0, never) },
			contract.RetryTierQueue(never), nil, 5},
		"lap by copy": {func() (messaging.SessionConfig, messaging.ConsumerConfig) {
			s, c := transfer(unknownTransfer)
			s.Topology = topology.Transfer(messaging.Quorum, never)
			return s, c
		}, contract.AccountEventsRetry, foreign, 3},
	} {
		for name, tampered := range map[string]amqp.Table{
			"stripped":         {},
			"forged":           {"x-death": []any{death(contract.AccountEventsQueue, "rejected", int64(99))}, "x-first-death-reason": "rejected", "x-first-death-queue": contract.AccountEventsQueue},
			"started anew":     {"x-death": []any{death(contract.AccountEventsQueue, "rejected", int64(1))}},
			"a text":           {"x-death": "rejected"},
			"a negative count": {"x-death": []any{death(contract.AccountEventsQueue, "rejected", int64(-3))}},
		} {
			t.Run(road+", "+name, func(t *testing.T) {
				t.Parallel()
				s, consumer := c.service()
				f := start(t, s, consumer)
				f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: c.headers})
				for replays := range int64(2) {
					for attempt := 1; attempt <= c.attempts; attempt++ {
						if m := f.next(); m.Attempt != attempt {
							t.Errorf("attempt %d, want %d", m.Attempt, attempt)
						}
						if attempt == c.attempts {
							break
						}
						d := f.take(c.waitsIn)
						f.publish("", contract.AccountEventsQueue, amqp.Publishing{Body: d.Body, Headers: retold(d.Headers, tampered)})
					}
					d := f.parkedAfter(c.attempts, retry.ReasonMaxAttempts, retry.NotFound)
					if d.Headers["x-origin-exchange"] != contract.EventsExchange || d.Headers["x-origin-routing-key"] != debited {
						t.Errorf("origin: %v", d.Headers)
					}
					if replays == 0 { // what comes back from the parking lot starts anew
						f.publish("", contract.AccountEventsQueue, amqp.Publishing{Body: d.Body, Headers: retold(d.Headers, c.headers)})
					}
				}
				f.empty(contract.AccountEventsQueue, c.waitsIn)
				f.notHandled()
			})
		}
	}
}

// retold are the headers of a message without its deaths, and with others instead.
func retold(headers, deaths amqp.Table) amqp.Table {
	told := maps.Clone(deaths)
	if told == nil {
		told = amqp.Table{}
	}
	for name, value := range headers {
		if !strings.HasPrefix(name, "x-death") && !strings.HasPrefix(name, "x-first-death") && !strings.HasPrefix(name, "x-last-death") {
			told[name] = value
		}
	}
	return told
}
