package outbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// connected is a session with the broker until the test ends, with a queue that reads debits.
func connected(t *testing.T, env *testenv.Env) *messaging.Session {
	t.Helper()
	session := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{env.AMQPURL}, Name: "account", Logger: slog.New(slog.DiscardHandler),
		Topology: messaging.Topology{
			Exchanges: []messaging.Exchange{{Name: contract.EventsExchange, Kind: "topic"}},
			Queues:    []messaging.Queue{messaging.NewQueue("readers", messaging.Quorum)},
			Bindings:  []messaging.Binding{{Queue: "readers", Exchange: contract.EventsExchange, Key: "accounts.account.debited"}},
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("session: %v", err)
		}
	})
	return session
}

// TestOverARealBroker goes from a row in PostgreSQL to a message in a queue.
func TestOverARealBroker(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	pool := connect(t, env.Database(t, "outbox"))
	session := connected(t, env)
	o := start(t, Config{Pool: pool, Publisher: session, Poll: 20 * time.Millisecond, BatchSize: 64})

	completed, rejected := draft("completed"), draft("rejected")
	completed.Type = contract.TransferCompleted    // has no reader here and needs none
	rejected.Type = contract.AccountCreditRejected // needs one and has none
	overlong := newMessage(t, "overlong")
	overlong.RoutingKey = strings.Repeat("x", 256) // AMQP cannot carry it; a row like this was written by hand
	messages := append(newMessages(t, 300), overlong)
	for _, d := range []Draft{completed, rejected} {
		m, err := NewMessage(d)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, m)
	}
	send(t, o, messages...)
	eventually(t, "only the two that cannot be sent are left", func() bool {
		return rowCount(t, pool, "true") == 2 &&
			rowCount(t, pool, "message_id = 'rejected' and attempts = 0 and set_aside_at is null") == 1 &&
			rowCount(t, pool, "message_id = 'overlong' and attempts = 1 and set_aside_at is not null") == 1
	})

	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for range 300 {
		delivery, ok, err := channel.Get("readers", true)
		if err != nil || !ok {
			t.Fatalf("after %d messages: %t, %v", len(got), ok, err)
		}
		got[delivery.MessageId]++
		if delivery.Type != contract.AccountDebited || delivery.AppId != "account" || delivery.DeliveryMode != amqp.Persistent ||
			delivery.ContentType != "application/json" || delivery.CorrelationId != draft("").CorrelationID ||
			delivery.Timestamp.IsZero() || delivery.Headers["traceparent"] != draft("").TraceParent {
			t.Fatalf("delivery: %+v", delivery)
		}
	}
	for i := range 300 {
		if id := fmt.Sprintf("message-%05d", i); got[id] != 1 {
			t.Errorf("%s arrived %d times", id, got[id])
		}
	}
	if _, more, err := channel.Get("readers", true); more || err != nil {
		t.Errorf("more messages than were sent: %v", err)
	}

	// The reader comes into being, and what waited for it is sent.
	if _, err := channel.QueueDeclare("late-readers", true, false, false, false, amqp.Table{"x-queue-type": "quorum"}); err != nil {
		t.Fatal(err)
	}
	if err := channel.QueueBind("late-readers", "accounts.account.credit-rejected", contract.EventsExchange, false, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message without a reader is sent", func() bool { return rowCount(t, pool, "set_aside_at is null") == 0 })
}

// Two relays, and rows at the head of the table that can never be sent: one that nobody could read, and one that is larger than the
// broker takes, which costs the channel each time. What comes after them is sent, each message once.
func TestBadRowsDoNotHoldTwoRelays(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	pool, registry := connect(t, env.Database(t, "outbox")), prometheus.NewRegistry()
	config := Config{Pool: pool, Publisher: connected(t, env), Poll: 20 * time.Millisecond, MaxAttempts: 2, Registerer: registry}
	first := newOutbox(config)
	config.Publisher, config.Registerer = connected(t, env), nil
	second := newOutbox(config)

	garbage, huge := newMessage(t, "garbage"), newMessage(t, "huge")
	garbage.Body = []byte(`{"messageId":`)
	huge.Body = slices.Concat([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 17<<20), []byte(`"}`)) // RabbitMQ 4 takes 16 MiB, ours 1 MiB
	insert(t, first, garbage, huge)
	run(t, first)
	run(t, second)
	eventually(t, "the bad rows are seen to be bad", func() bool { return rowCount(t, pool, "attempts > 0") == 2 })
	send(t, first, newMessages(t, 5)...)
	eventually(t, "only the bad rows are left", func() bool { return rowCount(t, pool, "true") == 2 })
	eventually(t, "they are set aside", func() bool {
		// The relays themselves sweep every 20 s once they know that it finds little.
		if _, err := first.relayBatch(t.Context(), 0); err != nil {
			t.Error(err)
		}
		return rowCount(t, pool, "message_id = 'garbage' and attempts = 1 and last_error like '%not JSON%' and set_aside_at is not null") == 1 &&
			rowCount(t, pool, "message_id = 'huge' and attempts = 2 and last_error like '%size%' and set_aside_at is not null") == 1
	})
	if _, err := first.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := metric(t, registry, "outbox_set_aside_messages"); n != 2 {
		t.Errorf("the gauge shows %v rows set aside, want 2", n)
	}

	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		delivery, ok, err := channel.Get("readers", true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		got = append(got, delivery.MessageId)
	}
	slices.Sort(got)
	if want := []string{"message-00000", "message-00001", "message-00002", "message-00003", "message-00004"}; !slices.Equal(got, want) {
		t.Errorf("arrived: %v, want each of %v once", got, want)
	}
}
