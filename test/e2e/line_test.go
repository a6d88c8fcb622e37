package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// line is a test's own connection to the broker.
type line struct {
	t       *testing.T
	channel *amqp.Channel
}

func newLine(t *testing.T, amqpURL string) *line {
	t.Helper()
	conn, err := amqp.Dial(amqpURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &line{t, channel}
}

// publish sends bodies to the exchange of all events and waits until the broker has them.
func (l *line) publish(key string, bodies ...string) {
	l.t.Helper()
	confirms := make([]*amqp.DeferredConfirmation, len(bodies))
	for i, body := range bodies {
		var err error
		confirms[i], err = l.channel.PublishWithDeferredConfirm("banking.events", key, true, false,
			amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: []byte(body)})
		if err != nil {
			l.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	for _, confirm := range confirms {
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			l.t.Fatalf("publish under %s: acked %v, %v", key, acked, err)
		}
	}
}

// overhear gets a copy of everything that is published under the key from now on; the result takes the first and ends it.
func (l *line) overhear(key string) (first func() amqp.Delivery) {
	l.t.Helper()
	q, err := l.channel.QueueDeclare("", false, true, true, false, nil)
	if err == nil {
		err = l.channel.QueueBind(q.Name, key, "banking.events", false, nil)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return func() amqp.Delivery {
		l.t.Helper()
		d := l.take(q.Name)
		if _, err := l.channel.QueueDelete(q.Name, false, false, false); err != nil {
			l.t.Fatal(err)
		}
		return d
	}
}

// take takes the next message out of a queue, waiting for it.
func (l *line) take(queue string) (d amqp.Delivery) {
	l.t.Helper()
	eventually(l.t, 90*time.Second, func() bool {
		var ok bool
		var err error
		if d, ok, err = l.channel.Get(queue, true); err != nil {
			l.t.Fatal(err)
		}
		return ok
	}, func() string { return "no message in " + queue })
	return d
}

// depth is how many messages are ready in a queue.
func (l *line) depth(queue string) int {
	l.t.Helper()
	q, err := l.channel.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return q.Messages
}

// idOf is the messageId of a body.
func idOf(t *testing.T, body []byte) string {
	t.Helper()
	var envelope struct{ MessageID string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return envelope.MessageID
}

// attempt is a line of the log about an attempt that failed.
type attempt struct {
	Time      time.Time
	Msg       string
	MessageID string `json:"message_id"`
	Class     string
	Attempt   string
	Reason    string
}

// attempts are the failed attempts at a message, as the service's log tells of them.
func (r *replica) attempts(messageID string) (all []attempt) {
	r.t.Helper()
	for line := range strings.Lines(r.log.String()) {
		var a attempt
		if json.Unmarshal([]byte(line), &a) == nil && a.MessageID == messageID && strings.HasPrefix(a.Msg, "attempt failed") {
			all = append(all, a)
		}
	}
	return all
}
