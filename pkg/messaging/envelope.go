package messaging

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Envelope is the body of a message. It is the authority: routing keys, exchanges and AMQP properties are copies for people
// and brokers, and may be wrong or gone.
type Envelope struct {
	MessageID     string         // 1–200 characters, unique per message
	Type          string         // what is dispatched on
	OccurredAt    time.Time      // zero when missing or unreadable
	CorrelationID string         // the transfer; "" when missing
	CausationID   string         // MessageID of the cause; "" when missing
	Data          jsontext.Value // nil when missing
}

// Decode reads a body strictly: one JSON object in valid UTF-8, nothing behind it, no member twice at any depth, a member in
// another letter case is an unknown one. An error is of class VALIDATION; the envelope then holds what could be read
// nevertheless, for the log.
func Decode(body []byte) (Envelope, error) { return Envelope{}, nil }

// Encode writes the body of a message.
func (e Envelope) Encode() ([]byte, error) { return nil, nil }

// PayloadHash is the SHA-256 of what a message says: its type and data. How it is spelled (order of members, white space)
// does not matter, nor when and why it was said: an outcome said again is the same payload. Numbers are compared as
// they are written, never as floats.
func (e Envelope) PayloadHash() ([32]byte, error) { return [32]byte{}, nil }
