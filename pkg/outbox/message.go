package outbox

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
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
	ID            string         // the messageId, up to 200 characters; "" for a new UUIDv7. Something that may be said again needs a derived one
	Type          string         // required; routing key and the duty to have a reader follow from it
	CorrelationID string         // the transfer; "" for none
	CausationID   string         // the messageId of what this answers; "" for none
	OccurredAt    time.Time      // required; sent in UTC with milliseconds
	Data          jsontext.Value // required; a JSON object
	TraceParent   string         // W3C trace context of the work that sends it; "" for none
}

const (
	maxIDCharacters    = 200 // what receivers accept as a messageId
	maxRoutingKeyBytes = 255 // what AMQP can carry
)

// NewMessage encodes a draft. An error means that the draft cannot be sent by anyone: no type or one whose routing key AMQP
// cannot carry, no time, data that is not a JSON object, an id that receivers refuse, text that PostgreSQL cannot store.
func NewMessage(d Draft) (Message, error) {
	if d.ID == "" {
		d.ID = uuid.Must(uuid.NewV7()).String()
	}
	if err := d.check(); err != nil {
		return Message{}, fmt.Errorf("outgoing message %q: %w", d.Type, err)
	}
	occurredAt := d.OccurredAt.UTC().Truncate(time.Millisecond)
	body, err := messaging.Envelope{
		MessageID:     d.ID,
		Type:          d.Type,
		OccurredAt:    occurredAt,
		CorrelationID: d.CorrelationID,
		CausationID:   d.CausationID,
		Data:          d.Data,
	}.Encode()
	if err != nil {
		return Message{}, fmt.Errorf("outgoing message %q: %w", d.Type, err)
	}
	return Message{
		ID:            d.ID,
		Type:          d.Type,
		RoutingKey:    contract.RoutingKey(d.Type),
		Body:          body,
		CorrelationID: d.CorrelationID,
		TraceParent:   d.TraceParent,
		OccurredAt:    occurredAt,
		Mandatory:     contract.MustHaveReader(d.Type),
	}, nil
}

func (d Draft) check() error {
	switch {
	case d.Type == "" || len(contract.RoutingKey(d.Type)) > maxRoutingKeyBytes:
		return errors.New("its type is missing or too long")
	case utf8.RuneCountInString(d.ID) > maxIDCharacters:
		return fmt.Errorf("its id is longer than %d characters", maxIDCharacters)
	case d.OccurredAt.IsZero():
		return errors.New("it has no time")
	case d.Data.Kind() != '{' || !d.Data.IsValid():
		return errors.New("its data is not a JSON object")
	}
	for _, text := range []string{d.ID, d.Type, d.CorrelationID, d.TraceParent} {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%q cannot be stored as text", text)
		}
	}
	return nil
}

// publishing is the message as it goes on the wire. What is a property here is a copy for brokers and people; the body
// is the authority.
func (m Message) publishing(exchange, appID string) messaging.Publishing {
	p := messaging.Publishing{
		Exchange:   exchange,
		RoutingKey: m.RoutingKey,
		Mandatory:  m.Mandatory,
		Publishing: amqp.Publishing{
			MessageId:     m.ID,
			Type:          m.Type,
			CorrelationId: m.CorrelationID,
			AppId:         appID,
			Timestamp:     m.OccurredAt,
			DeliveryMode:  amqp.Persistent,
			ContentType:   "application/json",
			Body:          m.Body,
		},
	}
	if m.TraceParent != "" {
		p.Headers = amqp.Table{"traceparent": m.TraceParent}
	}
	return p
}
