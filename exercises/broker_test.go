package exercises

import (
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
)

// A run reads messages that anybody may have sent: one with headers that the client library cannot read must not end its connection.
func TestARunReadsWhatTheLibraryCannot(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b, err := newBroker(env.AMQPURL, env.ManagementURL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := b.dial()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	queue, err := channel.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := channel.Consume(queue.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	deep := amqp.Table{"n": int32(1)}
	for range 100 {
		deep = amqp.Table{"n": deep}
	}
	for _, headers := range []amqp.Table{deep, nil} {
		if err := channel.PublishWithContext(t.Context(), "", queue.Name, false, false, amqp.Publishing{Headers: headers, Body: []byte("body")}); err != nil {
			t.Fatal(err)
		}
	}
	if d := <-deliveries; string(d.Body) != "body" || d.Headers[messaging.HeaderUnreadable] != "n" {
		t.Errorf("came %q with %v", d.Body, d.Headers)
	}
	if d := <-deliveries; string(d.Body) != "body" || len(d.Headers) != 0 {
		t.Errorf("behind it came %q with %v", d.Body, d.Headers)
	}
}
