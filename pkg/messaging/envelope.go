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
