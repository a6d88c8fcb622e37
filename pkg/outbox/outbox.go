// Package outbox sends messages that must go out if and only if a transaction commits.
//
// A service cannot write to its database and to its broker in one atomic step. So it writes the message beside the business
// change, in the same transaction, and a relay publishes it afterwards, as often as it takes to get the broker's confirm. The message
// is sent at least once; the receiver's inbox makes that once.
package outbox

import (
	"time"
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
