package exercises

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/management"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
)

// broker is RabbitMQ, over a connection of the run's own that is made anew when it breaks.
type broker struct {
	url, vhost string
	management *management.Client

	mu      sync.Mutex
	conn    *amqp.Connection
	channel *amqp.Channel
}

func newBroker(amqpURL, managementURL string) (*broker, error) {
	first, _, _ := strings.Cut(amqpURL, ",")
	uri, err := amqp.ParseURI(first)
	if err != nil {
		return nil, errors.New("AMQP_URL is not a valid AMQP URL") // the parser's words would quote the password
	}
	api := management.New(managementURL).WithUser(uri.Username, uri.Password)
	return &broker{url: first, vhost: uri.Vhost, management: api}, nil
}

// dial opens a connection for somebody who holds messages or listens, with the same guard against what the client library cannot read as the
// services have: the bank may hold such a message. The password never shows in an error.
func (b *broker) dial() (*amqp.Connection, error) {
	session := messaging.NewSession(messaging.SessionConfig{URLs: []string{b.url}, Name: "bank", Heartbeat: 10 * time.Second})
	conn, err := session.Dial(context.Background(), "exercise") // which has its own limit
	if err != nil {
		return nil, fmt.Errorf("the broker does not answer: %w", err)
	}
	return conn, nil
}

// open returns the channel of the run. An error of the broker closes it; the next call gets another.
func (b *broker) open() (*amqp.Channel, error) {
	if b.channel != nil && !b.channel.IsClosed() {
		return b.channel, nil
	}
	if b.conn == nil || b.conn.IsClosed() {
		var err error
		if b.conn, err = b.dial(); err != nil {
			return nil, err
		}
	}
	channel, err := b.conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("a channel of the broker: %w", err)
	}
	if err := channel.Confirm(false); err != nil {
		return nil, fmt.Errorf("a channel of the broker: %w", err)
	}
	b.channel = channel
	return channel, nil
}

func (b *broker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn != nil {
		_ = b.conn.Close() // which may have broken
	}
}

// publish sends messages to the exchange of all events and waits until the broker has them.
func (b *broker) publish(ctx context.Context, key string, bodies ...[]byte) error {
	messages := make([]amqp.Publishing, len(bodies))
	for i, body := range bodies {
		messages[i] = amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body}
	}
	return b.publishTo(ctx, contract.EventsExchange, key, messages...)
}

func (b *broker) publishTo(ctx context.Context, exchange, key string, messages ...amqp.Publishing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	channel, err := b.open()
	if err != nil {
		return err
	}
	confirms := make([]*amqp.DeferredConfirmation, len(messages))
	for i, m := range messages {
		if confirms[i], err = channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, false, false, m); err != nil {
			return fmt.Errorf("publishing under %s: %w", key, err)
		}
	}
	for _, confirm := range confirms {
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			return errors.Join(fmt.Errorf("publishing under %s: the broker did not take it", key), err)
		}
	}
	return nil
}

// depth is how many messages wait in a queue right now, and how many consumers it has. What consumers hold is not counted.
func (b *broker) depth(queue string) (messages, consumers int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	channel, err := b.open()
	if err != nil {
		return 0, 0, err
	}
	q, err := channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("counting %s: %w", queue, err)
	}
	return q.Messages, q.Consumers, nil
}

// remove deletes a queue that nobody needs any more.
func (b *broker) remove(queue string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	channel, err := b.open()
	if err != nil {
		return err
	}
	if _, err = channel.QueueDelete(queue, false, false, false); err != nil {
		return fmt.Errorf("deleting %s: %w", queue, err)
	}
	return nil
}

// queue is what the management API knows of a queue.
type queue struct {
	Arguments struct {
		TTL int64 `json:"x-message-ttl"` // milliseconds
	} `json:"arguments"`
}

// look asks the management API, which knows how a queue was declared.
func (b *broker) look(ctx context.Context, name string) (q queue, err error) {
	return q, b.management.Get(ctx, "/api/queues/"+url.PathEscape(b.vhost)+"/"+url.PathEscape(name), &q)
}

// lapTime is how long a rejected event waits: the time to live of the retry queue, asked of the broker and not of the settings.
func (b *broker) lapTime(ctx context.Context) (time.Duration, error) {
	q, err := b.look(ctx, contract.AccountEventsRetry)
	return time.Duration(q.Arguments.TTL) * time.Millisecond, err
}
