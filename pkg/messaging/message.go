package messaging

import (
	"context"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Message is one decoded delivery, as a handler sees it.
type Message struct {
	Envelope
	Queue       string     // the queue it was taken from
	Attempt     int        // this execution, counted from 1
	Redelivered bool       // the broker has handed it out before
	Headers     amqp.Table // as received; read only
	TraceParent string     // W3C trace context of the sender, "" when there was none
}

// Handler handles a batch of messages in one transaction. The first result has one entry for each message: nil when it is
// done (or was a duplicate), else the error whose class decides what happens to that message alone. The second result is not nil
// when the transaction as a whole failed, so that nothing happened to any of them; the consumer then tries them one by
// one. A handler never acks, nacks or waits.
type Handler func(ctx context.Context, batch []*Message) ([]error, error)

// Publishing is one message to be published with confirm.
type Publishing struct {
	Exchange   string
	RoutingKey string
	Mandatory  bool // must reach a queue: unroutable is Returned, not Acked
	amqp.Publishing
}

// Outcome is what became of one publishing.
type Outcome int

// Unknown is the zero value on purpose: who does not know must publish again.
const (
	Unknown  Outcome = iota // no confirm came; the broker may have it or not
	Acked                   // the broker has it, in every queue it was routed to
	Nacked                  // the broker refused it, e.g. a full queue
	Returned                // mandatory, and no queue took it
)

func (o Outcome) String() string {
	switch o {
	case Acked:
		return "acked"
	case Nacked:
		return "nacked"
	case Returned:
		return "returned"
	}
	return "unknown"
}
