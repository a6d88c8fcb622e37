package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/banking/pkg/contract"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// event is a message of account's, as a test sends it.
type event struct {
	MessageID string
	Type      string
	Data      string // JSON
}

func (e event) body() []byte {
	id, _ := json.Marshal(e.MessageID)
	return fmt.Appendf(nil, `{"messageId":%s,"type":%q,"data":%s}`, id, e.Type, e.Data)
}

// again is the same news under a new messageId.
func (e event) again() event {
	e.MessageID = uuid.NewString()
	return e
}

// tells makes the event of a type about a transfer, with everything the contract wants in it.
func tells(t transferView, messageType string) event {
	account := t.SourceAccountID
	if messageType == contract.AccountCredited || messageType == contract.AccountCreditRejected {
		account = t.DestinationAccountID
	}
	money := fmt.Sprintf(`"amountMinor":%d,"currency":%q`, t.AmountMinor, t.Currency)
	switch messageType {
	case contract.AccountDebitRejected:
		money = `"reason":"INSUFFICIENT_FUNDS"`
	case contract.AccountCreditRejected:
		money = `"reason":"ACCOUNT_FROZEN"`
	}
	return event{uuid.NewString(), messageType, fmt.Sprintf(`{"transferId":%q,"accountId":%q,%s}`, t.ID, account, money)}
}

// publish sends events one after another and waits for the broker to have each.
func (b *bank) publish(events ...event) {
	b.t.Helper()
	for _, e := range events {
		b.publishRaw(contract.EventsExchange, contract.RoutingKey(e.Type), amqp.Publishing{MessageId: e.MessageID, Body: e.body()})
	}
}

// twice sends each event twice under the same messageId, as any broker may.
func (b *bank) twice(events ...event) {
	b.t.Helper()
	for _, e := range events {
		b.publish(e, e)
	}
}

func (b *bank) publishRaw(exchange, key string, p amqp.Publishing) {
	b.t.Helper()
	p.DeliveryMode = amqp.Persistent
	p.ContentType = "application/json"
	confirm, err := b.broker.PublishWithDeferredConfirmWithContext(b.t.Context(), exchange, key, false, false, p)
	b.must(err)
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
		b.t.Fatalf("publish: acked %v, %v", acked, err)
	}
}

// settled waits until the service has taken and finished everything in its queue and in the retry queue.
func (b *bank) settled() {
	b.t.Helper()
	b.eventually("the queues are empty", func() bool {
		for _, queue := range []string{contract.AccountEventsQueue, contract.AccountEventsRetry} {
			if ready, unacked := b.env.QueueDepth(b.t, queue); ready+unacked > 0 {
				return false
			}
		}
		return true
	})
}

// parked takes the next message out of the parking lot, waiting for one.
func (b *bank) parked() amqp.Delivery {
	b.t.Helper()
	var d amqp.Delivery
	b.eventually("a message is parked", func() bool {
		var ok bool
		var err error
		d, ok, err = b.broker.Get(contract.ParkingLot, true)
		b.must(err)
		return ok
	})
	return d
}

// nothingParked fails the test when the parking lot is not empty.
func (b *bank) nothingParked() {
	b.t.Helper()
	if ready, _ := b.env.QueueDepth(b.t, contract.ParkingLot); ready != 0 {
		d, _, err := b.broker.Get(contract.ParkingLot, false)
		b.t.Fatalf("%d messages are parked, the first with %v: %s (%v)", ready, d.Headers, d.Body, err)
	}
}

// message is one that transfer has sent.
type message struct {
	MessageID     string         `json:"messageId"`
	Type          string         `json:"type"`
	OccurredAt    time.Time      `json:"occurredAt"`
	CorrelationID string         `json:"correlationId"`
	CausationID   string         `json:"causationId"`
	Data          jsontext.Value `json:"data"`

	delivery amqp.Delivery
}

// sent collects what is published under a pattern.
type sent struct {
	mu       sync.Mutex
	messages []message
}

// listen reads everything that is published under the pattern from now on.
func (b *bank) listen(pattern string) *sent {
	b.t.Helper()
	queue, err := b.broker.QueueDeclare("", false, true, true, false, nil)
	b.must(err)
	b.must(b.broker.QueueBind(queue.Name, pattern, contract.EventsExchange, false, nil))
	deliveries, err := b.broker.Consume(queue.Name, "", true, true, false, false, nil)
	b.must(err)
	s := &sent{}
	go func() {
		for d := range deliveries {
			m := message{delivery: d}
			if err := json.Unmarshal(d.Body, &m); err != nil {
				m.Type = "unreadable: " + err.Error()
			}
			s.mu.Lock()
			s.messages = append(s.messages, m)
			s.mu.Unlock()
		}
	}()
	return s
}

// about are the distinct messages that were sent about a transfer, in order. The relay may send one twice; a reader's inbox
// would absorb that, so it is left out here too.
func (s *sent) about(id uuid.UUID) []message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []message
	seen := map[string]bool{}
	for _, m := range s.messages {
		if m.CorrelationID == id.String() && !seen[m.MessageID] {
			seen[m.MessageID] = true
			found = append(found, m)
		}
	}
	return found
}

func (s *sent) types(id uuid.UUID) []string {
	var types []string
	for _, m := range s.about(id) {
		types = append(types, m.Type)
	}
	return types
}

// awaitSent waits until so many messages about the transfer were sent.
func (b *bank) awaitSent(id uuid.UUID, n int) []message {
	b.t.Helper()
	b.eventually(fmt.Sprintf("%d messages about %s", n, id), func() bool { return len(b.sent.about(id)) >= n })
	return b.sent.about(id)
}

// count reads one number from the database.
func (b *bank) count(query string, args ...any) int {
	b.t.Helper()
	var n int
	b.must(b.db.QueryRow(b.t.Context(), query, args...).Scan(&n))
	return n
}
