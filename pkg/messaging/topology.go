package messaging

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
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
//
// The type is always said, because what a broker takes for the default differs. A quorum queue gets a delivery limit
// so high that it never ends anything: unset it is 20 from RabbitMQ 4.0 on, and deletes parked messages after twenty looks;
// -1 means "none" there but deletes after one delivery on 3.10.
func NewQueue(name string, kind QueueType) Queue {
	args := amqp.Table{"x-queue-type": string(kind)}
	if kind == Quorum {
		args["x-delivery-limit"] = int64(math.MaxInt32)
	}
	return Queue{Name: name, Args: args}
}

// DeadLetterTo is the queue with a dead-letter exchange; key replaces the routing key, "" keeps it.
//
// A quorum queue dead-letters at least once: it lets go of a message when the target has confirmed it. That needs
// reject-publish; without it the broker silently falls back to at most once. Classic queues cannot.
func (q Queue) DeadLetterTo(exchange, key string) Queue {
	args := maps.Clone(q.Args)
	args["x-dead-letter-exchange"] = exchange
	if key != "" {
		args["x-dead-letter-routing-key"] = key
	}
	if args["x-queue-type"] == string(Quorum) {
		args["x-dead-letter-strategy"] = "at-least-once"
		args["x-overflow"] = "reject-publish"
	}
	return Queue{Name: q.Name, Args: args}
}

// ExpireAfter is the queue with a time to live that all its messages share. It belongs to the queue and not to each
// message, because a queue expires messages only at its head: a long one would hold back every short one behind it.
func (q Queue) ExpireAfter(ttl time.Duration) Queue {
	args := maps.Clone(q.Args)
	args["x-message-ttl"] = ttl.Milliseconds()
	return Queue{Name: q.Name, Args: args}
}

// declare declares all of it on a channel. An error closes the channel.
func (t Topology) declare(ch *amqp.Channel) error {
	for _, e := range t.Exchanges {
		if err := ch.ExchangeDeclare(e.Name, e.Kind, true, false, false, false, e.Args); err != nil {
			return declareError("exchange", e.Name, err)
		}
	}
	for _, q := range t.Queues {
		if _, err := ch.QueueDeclare(q.Name, true, false, false, false, q.Args); err != nil {
			return declareError("queue", q.Name, err)
		}
	}
	for _, b := range t.Bindings {
		if err := ch.QueueBind(b.Queue, b.Key, b.Exchange, false, b.Args); err != nil {
			return fmt.Errorf("bind %s to %s: %w", b.Queue, b.Exchange, err)
		}
	}
	return nil
}

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

func (c *TopologyConflict) Error() string {
	if c.Argument == "" {
		return fmt.Sprintf("%s %s cannot be declared: %v", c.Kind, c.Name, c.Err)
	}
	return fmt.Sprintf("%s %s exists with another %s: found %s, wanted %s", c.Kind, c.Name, c.Argument, c.Found, c.Wanted)
}

func (c *TopologyConflict) Unwrap() error { return c.Err }

// ExitCode is that of a process that ends because of it.
func (c *TopologyConflict) ExitCode() int { return 3 }

// inequivalent is how the broker puts it, from 3.10 to 4.3: "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for
// queue 'q' in vhost '/': received the value '200' of type 'signedint' but current is none".
var inequivalent = regexp.MustCompile(`(?s)inequivalent arg '([^']+)' for .*: received (.+) but current is (.+)$`)

func declareError(kind, name string, err error) error {
	var refused *amqp.Error
	if !errors.As(err, &refused) || refused.Code != amqp.PreconditionFailed {
		return fmt.Errorf("declare %s %s: %w", kind, name, err)
	}
	conflict := &TopologyConflict{Kind: kind, Name: name, Err: err}
	if m := inequivalent.FindStringSubmatch(refused.Reason); m != nil {
		conflict.Argument, conflict.Wanted, conflict.Found = m[1], m[2], m[3]
	}
	return conflict
}
