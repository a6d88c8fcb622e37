package outbox

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Message is one outgoing message.
type Message struct {
	ID            string // the envelope's messageId
	Type          string
	RoutingKey    string
	Body          []byte // the encoded envelope
	CorrelationID string
	TraceParent   string
	OccurredAt    time.Time
	Mandatory     bool // must have a reader: an unroutable one stays in the outbox
}

// Draft is what a service knows of a message it wants to send.
type Draft struct {
	ID            string         // the messageId; "" for a new UUIDv7. Something that may be said again needs a derived one
	Type          string         // required; routing key and the duty to have a reader follow from it
	CorrelationID string         // the transfer; "" for none
	CausationID   string         // the messageId of what this answers; "" for none
	OccurredAt    time.Time      // required; sent in UTC with milliseconds
	Data          jsontext.Value // required; a JSON object
	TraceParent   string         // W3C trace context of the work that sends it; "" for none
}

// NewMessage encodes a draft. An error means that the draft cannot be sent by anyone: no type, data that is not JSON, an id
// longer than the 255 bytes an AMQP property takes, text that PostgreSQL cannot store.
func NewMessage(d Draft) (Message, error) {
	return Message{}, nil
}
