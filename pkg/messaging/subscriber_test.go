package messaging_test

import (
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Who else has subscribed has had the message, and may have succeeded with it. What one consumer's failure makes of it, the next
// attempt and the end alike, is for that consumer's queue alone.
func TestRetriesReachOnlyTheQueueThatFailed(t *testing.T) {
	t.Parallel()
	foreign := amqp.Table{"x-death": []any{death("elsewhere", "rejected", int64(1))}, "CC": []any{"accounts.account.copied"}}
	for road, c := range map[string]struct {
		service  func() (messaging.SessionConfig, messaging.ConsumerConfig)
		headers  amqp.Table
		attempts int
	}{
		"lap":         {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return transfer(unknownTransfer) }, nil, 3},
		"lap by copy": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return transfer(unknownTransfer) }, foreign, 3},
		"tiered": {func() (messaging.SessionConfig, messaging.ConsumerConfig) {
			return tiered(unknownTransfer, 0.2, 50*time.Millisecond)
		}, nil, 5},
	} {
		t.Run(road, func(t *testing.T) {
			t.Parallel()
			s, consumer := c.service()
			f := start(t, s, consumer)
			const other = "other.subscriber"
			if _, err := f.client.QueueDeclare(other, true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
				t.Fatal(err)
			}
			if err := f.client.QueueBind(other, "accounts.#", contract.EventsExchange, false, nil); err != nil {
				t.Fatal(err)
			}
			f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: c.headers})
			for range c.attempts {
				f.next()
			}
			f.parkedAfter(c.attempts, retry.ReasonMaxAttempts, retry.NotFound)
			f.empty(contract.AccountEventsQueue, contract.ParkingLot)
			f.notHandled()
			if ready, _ := f.env.QueueDepth(t, other); ready != 1 {
				t.Errorf("the other subscriber got %d copies, want 1", ready)
			}
		})
	}
}
