package messaging

import (
	"context"
	"log/slog"
	"time"
)

// SessionConfig says how to reach the broker and what to declare there.
type SessionConfig struct {
	URLs     []string // AMQP URLs of the brokers of one cluster, tried in turn
	Name     string   // of the service; shown by the broker beside each connection
	Topology Topology
	Logger   *slog.Logger // default slog.Default()
	Metrics  *Metrics     // default: counted, registered nowhere

	ConnectTimeout time.Duration // one attempt to connect, handshake included; default 10 s
	Heartbeat      time.Duration // a peer silent for three of these is dead; default 5 s
	WriteTimeout   time.Duration // a peer that takes no bytes for this long is dead; default 10 s
	PublishTimeout time.Duration // upper bound of one Publish; default 10 s
	CloseTimeout   time.Duration // upper bound of saying good-bye; default 3 s
	ReconnectMin   time.Duration // first pause before connecting anew; default 100 ms
	ReconnectMax   time.Duration // longest such pause; default 10 s
	CheckInterval  time.Duration // how often the topology is looked after; default 30 s
}

// Session owns the two connections to the broker, one that publishes and one that consumes: the broker stops reading from
// a publishing connection when it runs short of memory, and acks must not be stuck behind that. When anything closes, all
// of it is made anew under the next generation, and an ack of an earlier generation is dropped.
type Session struct{}

// NewSession makes a session. Nothing is connected before Run.
func NewSession(c SessionConfig) *Session { return &Session{} }

// Run connects and keeps connected until ctx ends; a broker that is missing is waited for, without limit. It returns nil
// after a clean close, or an error that no waiting can cure: a *TopologyConflict or an URL that is none.
func (s *Session) Run(ctx context.Context) error { return nil }

// Ready returns nil when messages can flow, else why not: not connected, blocked by the broker, a consumer not attached or
// stuck, a queue missing. Whether queues exist is asked at the broker at most every five seconds.
func (s *Session) Ready(ctx context.Context) error { return nil }

// Publish sends all messages and waits for the broker's confirms, many outstanding at once. outcomes[i] is what became of
// messages[i]. The error says why some are Unknown and is nil when none is. It returns when every outcome is known, or
// when ctx or the session's PublishTimeout ends; without a session, or with a broker that blocks publishing, it waits
// until then.
//
// A channel exception, e.g. for a body above the broker's size limit, concerns everything that was outstanding and is in
// the error as a *amqp.Error; publish one by one to find the culprit. A message that cannot be put on the wire at all is not
// sent and is named by an *Unpublishable in the error. Publish is safe for concurrent use.
func (s *Session) Publish(ctx context.Context, messages []Publishing) (outcomes []Outcome, err error) {
	return make([]Outcome, len(messages)), nil
}

// NewConsumer makes a consumer of this session; call it before Run.
func (s *Session) NewConsumer(c ConsumerConfig) (*Consumer, error) { return &Consumer{}, nil }

// Unpublishable names a message that was never sent because AMQP cannot carry it: a property over 255 bytes, headers
// of an unknown type, or too many of them for one frame. Its class is VALIDATION.
type Unpublishable struct {
	Index int // in the slice given to Publish
	Err   error
}

func (u *Unpublishable) Error() string { return "" }

func (u *Unpublishable) Unwrap() error { return u.Err }
