package outbox_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// listener is a broker that hands on what it is sent. A service has a *messaging.Session here.
type listener struct{ sent chan string }

func (l listener) Publish(_ context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error) {
	outcomes := make([]messaging.Outcome, len(messages))
	for i, m := range messages {
		l.sent <- fmt.Sprintf("%s under %s: %s", m.MessageId, m.RoutingKey, m.Body)
		outcomes[i] = messaging.Acked
	}
	return outcomes, nil
}

// A message leaves if and only if the transaction commits that wrote it beside the business change.
func ExampleOutbox() {
	t, end := testenv.Example()
	defer end()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	pool, err := pgxpool.New(ctx, testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, outbox.Schema+`create table orders (id text primary key)`); err != nil {
		fmt.Println(err)
		return
	}
	broker := listener{make(chan string, 10)}
	box := outbox.New(outbox.Config{
		Pool: pool, Publisher: broker, Exchange: "banking.events", AppID: "shop", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	stopped := make(chan error, 1)
	go func() { stopped <- box.Run(ctx) }()

	place := func(id string, commit bool) error {
		message, err := outbox.NewMessage(outbox.Draft{
			ID: "order-" + id, Type: "Shop.Order.Placed", CorrelationID: id, Data: []byte(`{"orderId":"` + id + `"}`),
			OccurredAt: time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC),
		})
		if err != nil {
			return err
		}
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		batch := &pgx.Batch{}
		batch.Queue(`insert into orders values ($1)`, id)
		box.Queue(batch, []outbox.Message{message})
		if err := tx.SendBatch(ctx, batch).Close(); err != nil || !commit {
			_ = tx.Rollback(ctx)
			return err
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		box.Wake()
		return nil
	}
	fmt.Println("rolled back:", place("1", false))
	fmt.Println("committed:", place("2", true))
	fmt.Println("sent:", <-broker.sent)
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// rolled back: <nil>
	// committed: <nil>
	// sent: order-2 under shop.order.placed: {"messageId":"order-2","type":"Shop.Order.Placed","occurredAt":"2026-11-30T10:15:00.000Z","correlationId":"2","data":{"orderId":"2"}}
	// stopped: <nil>
}

// One statement stores an order and its message: the service inserts the message's row itself. Prepare decides whether it goes directly or
// by the relay; the four steps are the same.
func ExampleQueued() {
	t, end := testenv.Example()
	defer end()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	pool, err := pgxpool.New(ctx, testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, outbox.Schema+`create table orders (id text primary key)`); err != nil {
		fmt.Println(err)
		return
	}
	broker := listener{make(chan string, 10)}
	box := outbox.New(outbox.Config{
		Pool: pool, Publisher: broker, Exchange: "banking.events", AppID: "shop", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	stopped := make(chan error, 1)
	go func() { stopped <- box.Run(ctx) }()

	m, err := outbox.NewMessage(outbox.Draft{
		ID: "order-3", Type: "Shop.Order.Placed", CorrelationID: "3", Data: []byte(`{"orderId":"3"}`),
		OccurredAt: time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	queued := box.Prepare([]outbox.Message{m})
	var id int64
	var messageID string
	err = pool.QueryRow(ctx, `
		with placed as (insert into orders values ($1))
		insert into outbox (message_id, type, routing_key, body, correlation_id, trace_parent, mandatory, occurred_at, next_attempt_at)
		values ($2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp() + $10::interval)
		returning id, message_id`,
		"3", m.ID, m.Type, m.RoutingKey, string(m.Body), m.CorrelationID, m.TraceParent, m.Mandatory, m.OccurredAt, queued.Hold(),
	).Scan(&id, &messageID)
	if err != nil {
		fmt.Println(err)
		return
	}
	queued.Keep(id, messageID)
	queued.Committed() // a statement outside a transaction commits by itself
	fmt.Println("sent:", <-broker.sent)
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// sent: order-3 under shop.order.placed: {"messageId":"order-3","type":"Shop.Order.Placed","occurredAt":"2026-11-30T10:15:00.000Z","correlationId":"3","data":{"orderId":"3"}}
	// stopped: <nil>
}

// A draft that nobody could read, or that AMQP cannot carry, is refused before it is in the database.
func ExampleNewMessage() {
	m, err := outbox.NewMessage(outbox.Draft{
		ID: "m-1", Type: "Shop.Order.Placed", Data: []byte(`{"orderId":"7"}`), OccurredAt: time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC),
	})
	fmt.Println(m.RoutingKey, string(m.Body), err)

	_, err = outbox.NewMessage(outbox.Draft{Type: "Shop.Order.Placed", Data: []byte(`[]`), OccurredAt: time.Now()})
	fmt.Println(err)
	// Output:
	// shop.order.placed {"messageId":"m-1","type":"Shop.Order.Placed","occurredAt":"2026-11-30T10:15:00.000Z","data":{"orderId":"7"}} <nil>
	// outgoing message "Shop.Order.Placed": its data is not a JSON object
}

// A message that the broker refuses whatever else it takes, here because of its size, is set aside after some attempts. Somebody looks at it, raises
// the broker's limit, and lets it be sent again.
func ExampleRetrySetAside() {
	t, end := testenv.Example()
	defer end()
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, outbox.Schema+`
		insert into outbox (message_id, type, routing_key, body, correlation_id, mandatory, occurred_at, attempts, last_error, set_aside_at)
		values ('order-4', 'Shop.Order.Placed', 'shop.order.placed', '{}', '4', true, now(), 5, 'message size 2048 is larger than configured max size 1024', now())`); err != nil {
		fmt.Println(err)
		return
	}
	aside, err := outbox.ListSetAside(ctx, pool, 10)
	for _, m := range aside {
		fmt.Printf("%s after %d attempts: %s\n", m.MessageID, m.Attempts, m.Error)
	}
	fmt.Println(err)
	fmt.Println(outbox.RetrySetAside(ctx, pool, "order-4"))
	waiting, all, err := outbox.ListWaiting(ctx, pool, "4") // what is still to be sent about order 4
	for _, m := range waiting {
		fmt.Println(m.MessageID, m.Attempts, m.SetAside)
	}
	fmt.Println(all, err)
	// Output:
	// order-4 after 5 attempts: message size 2048 is larger than configured max size 1024
	// <nil>
	// 1 <nil>
	// order-4 0 false
	// true <nil>
}
