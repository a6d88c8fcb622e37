package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sort"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/invariants"
	"example.com/banking/internal/management"
	"example.com/banking/pkg/messaging"
)

// queue is what is known of one queue. How many wait and how many consume is the broker's own word; how many are being handled, and how many
// have died and did not arrive where they are led, only the management API counts, and is a few seconds late.
type queue struct {
	Name      string `json:"name"`
	Ready     int64  `json:"ready"`
	Unacked   int64  `json:"unacked"`
	Dead      int64  `json:"deadLettering"` // dead and still here: the broker keeps such a message until a queue has it, and tries every 3 minutes
	Consumers int64  `json:"consumers"`
}

// broker looks at RabbitMQ, and publishes to it, with the operator's rights.
type broker struct {
	amqpURL    string
	management *management.Client
	unmanaged  error // why there is none
	vhost      string
}

func newBroker(to *endpoints) (*broker, error) {
	if err := to.need("AMQP_URL"); err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(to.AMQPURL, ",")
	uri, err := amqp.ParseURI(first)
	if err != nil {
		return nil, errors.New("AMQP_URL is not a valid AMQP URL") // the parser's words would quote the password
	}
	b := &broker{amqpURL: first, vhost: uri.Vhost, unmanaged: to.need("RABBITMQ_MANAGEMENT_URL")}
	if b.unmanaged == nil {
		b.management = management.New(to.ManagementURL).WithUser(uri.Username, uri.Password)
	}
	return b, nil
}

// dial opens a connection, with the same guard against what the client library cannot read as the services have; the password never shows
// in an error.
func (b *broker) dial(ctx context.Context) (*amqp.Connection, error) {
	conn, err := messaging.NewSession(messaging.SessionConfig{URLs: []string{b.amqpURL}, Name: "bank", Heartbeat: 10 * time.Second}).Dial(ctx, "operator")
	if err != nil {
		return nil, fmt.Errorf("the broker does not answer: %w", err)
	}
	return conn, nil
}

// queues lists the vhost's queues by name, without those that belong to a single connection.
func (b *broker) queues(ctx context.Context) ([]queue, error) {
	known, err := b.managed(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := b.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	for i := range known {
		q := &known[i]
		declared, err := channel.QueueDeclarePassive(q.Name, true, false, false, false, nil)
		if err != nil {
			return nil, fmt.Errorf("counting queue %s: %w", q.Name, err)
		}
		q.Ready, q.Consumers = int64(declared.Messages), int64(declared.Consumers)
	}
	return known, nil
}

// managed lists them as the management API does.
func (b *broker) managed(ctx context.Context) ([]queue, error) {
	if b.unmanaged != nil {
		return nil, b.unmanaged
	}
	var listed []struct {
		Name      string `json:"name"`
		Ready     int64  `json:"messages_ready"`
		Unacked   int64  `json:"messages_unacknowledged"`
		Dead      int64  `json:"messages_dlx"` // of a quorum queue alone; in no other of its counts
		Consumers int64  `json:"consumers"`
		Exclusive bool   `json:"exclusive"`
	}
	if err := b.management.Get(ctx, "/api/queues/"+url.PathEscape(b.vhost), &listed); err != nil {
		return nil, err
	}
	queues := make([]queue, 0, len(listed))
	for _, q := range listed {
		if !q.Exclusive { // somebody's connection alone may look into it, and it ends with that
			queues = append(queues, queue{q.Name, q.Ready, q.Unacked, q.Dead, q.Consumers})
		}
	}
	sort.Slice(queues, func(i, j int) bool { return queues[i].Name < queues[j].Name })
	return queues, nil
}

// depth is the number of messages that wait in a queue right now, by the broker's own word and not by statistics.
func (b *broker) depth(channel *amqp.Channel, name string) (int64, error) {
	declared, err := channel.QueueDeclarePassive(name, true, false, false, false, nil)
	return int64(declared.Messages), err
}

// Queues is what the invariants count: exact for what is ready, a few seconds old for what is being handled or dead-lettered.
func (b *broker) Queues(ctx context.Context) ([]invariants.Queue, error) {
	known, err := b.queues(ctx)
	if err != nil {
		return nil, err
	}
	counted := make([]invariants.Queue, 0, len(known))
	for _, q := range known {
		counted = append(counted, invariants.Queue{Name: q.Name, Messages: q.Ready + q.Unacked + q.Dead})
	}
	return counted, nil
}
