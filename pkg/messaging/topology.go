package messaging

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Topology is everything a service declares at the broker. It is declared actively at the start of every session, so what
// somebody deleted comes back, and what exists with other arguments is found out (TopologyConflict).
type Topology struct {
	Exchanges []Exchange
	Queues    []Queue
	Bindings  []Binding
}

// Exchange is a durable exchange.
type Exchange struct {
	Name string
	Kind string // "topic", "headers", "direct" or "fanout"
	Args amqp.Table
}

// Queue is a durable queue.
type Queue struct {
	Name string
	Args amqp.Table
}

// Binding leads messages from an exchange to a queue.
type Binding struct {
	Queue    string
	Exchange string
	Key      string
	Args     amqp.Table
}

// QueueType is how the broker stores a queue.
type QueueType string

// Quorum queues are the default. Classic ones exist for comparison: when the broker is killed while it dead-letters,
// they lose messages.
const (
	Quorum  QueueType = "quorum"
	Classic QueueType = "classic"
)

// NewQueue is a queue of the given type whose messages stay until they are taken.
func NewQueue(name string, kind QueueType) Queue { return Queue{} }

// DeadLetterTo is the queue with a dead-letter exchange; key replaces the routing key, "" keeps it.
func (q Queue) DeadLetterTo(exchange, key string) Queue { return q }

// ExpireAfter is the queue with a time to live that all its messages share.
func (q Queue) ExpireAfter(ttl time.Duration) Queue { return q }

// TopologyConflict says that something exists at the broker with other arguments than ours. No retry can help: somebody
// has to decide which is right. A service ends with exit code 3.
type TopologyConflict struct {
	Kind     string // "queue" or "exchange"
	Name     string
	Argument string // e.g. "x-message-ttl"; "" when the broker did not say
	Found    string // what the broker has
	Wanted   string // what we declared
	Err      error  // the broker's own words
}

func (c *TopologyConflict) Error() string { return "" }

func (c *TopologyConflict) Unwrap() error { return c.Err }
