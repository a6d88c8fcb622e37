package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	"golang.org/x/sync/errgroup"
)

// A session keeps the connections to the broker, whatever happens to them, and declares the topology. A consumer made of it takes the
// messages of a queue through a handler, and does with those that fail what the policy says: here one has another attempt, and one that can
// never be handled is given up at once into the error queue.
func ExampleSession() {
	t, end := testenv.Example()
	defer end()
	env := testenv.New(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	session := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{env.AMQPURL}, Name: "shop", Logger: quiet,
		Topology: messaging.Topology{
			Exchanges: []messaging.Exchange{{Name: "banking.events", Kind: "topic"}},
			Queues:    []messaging.Queue{messaging.NewQueue("shop.orders", messaging.Quorum), messaging.NewQueue("shop.orders_error", messaging.Quorum)},
			Bindings:  []messaging.Binding{{Queue: "shop.orders", Exchange: "banking.events", Key: "shop.order.*"}},
		},
	})
	handled := make(chan string, 3)
	consumer, err := session.NewConsumer(messaging.ConsumerConfig{
		Queue:     "shop.orders",
		Policy:    retry.Policy{MaxAttempts: 3, Delays: []time.Duration{time.Millisecond}, Classify: true},
		Road:      messaging.InProcess("shop.orders_error"),
		BatchSize: 1,
		Handler: func(_ context.Context, batch []*messaging.Message) ([]error, error) {
			results := make([]error, len(batch))
			for i, m := range batch {
				switch {
				case m.Type != "Shop.Order.Placed":
					results[i] = retry.Errorf(retry.Validation, "nobody knows %s", m.Type)
				case m.Attempt == 1:
					results[i] = retry.Errorf(retry.Timeout, "the warehouse does not answer")
				default:
					handled <- fmt.Sprintf("%s at attempt %d", m.MessageID, m.Attempt)
				}
			}
			return results, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(t.Context())
	var running errgroup.Group
	running.Go(func() error { return session.Run(ctx) })
	running.Go(func() error { return consumer.Run(ctx) })

	message := func(id, messageType string) messaging.Publishing {
		body, _ := messaging.Envelope{MessageID: id, Type: messageType, OccurredAt: time.Now()}.Encode()
		return messaging.Publishing{Exchange: "banking.events", RoutingKey: "shop.order.any", Mandatory: true, Publishing: amqp.Publishing{Body: body}}
	}
	fmt.Println(session.Publish(ctx, []messaging.Publishing{message("m-1", "Shop.Order.Burnt"), message("m-2", "Shop.Order.Placed")}))
	fmt.Println(<-handled)
	for ready := 0; ready == 0; { // until the other has been given up
		ready, _ = env.QueueDepth(t, "shop.orders_error")
	}
	stop()
	fmt.Println(running.Wait())
	// Output:
	// [acked acked] <nil>
	// m-2 at attempt 2
	// <nil>
}

// A body is read strictly, because two readers that understand one message differently move money differently.
func ExampleDecode() {
	for _, body := range []string{
		`{"messageId":"m-1","type":"Orders.Order.Paid","data":{"amountMinor":2500}}`,
		`{"messageId":"m-2","type":"Orders.Order.Paid","type":"Orders.Order.Cancelled"}`,
		`{"messageId":"m-3","Type":"Orders.Order.Paid"}`,
	} {
		envelope, err := messaging.Decode([]byte(body))
		if err != nil {
			fmt.Println(envelope.MessageID, retry.ClassOf(err), err)
			continue
		}
		fmt.Println(envelope.MessageID, envelope.Type, envelope.Data)
	}
	// Output:
	// m-1 Orders.Order.Paid {"amountMinor":2500}
	// m-2 VALIDATION decode: jsontext: duplicate object member name "type"
	// m-3 VALIDATION decode: type is missing
}

// An outcome said again is the same payload, whatever the spelling, the time and the cause; another amount is another.
func ExampleEnvelope_PayloadHash() {
	hash := func(body string) string {
		envelope, err := messaging.Decode([]byte(body))
		if err != nil {
			return err.Error()
		}
		sum, err := envelope.PayloadHash()
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%x", sum[:4])
	}
	first := hash(`{"messageId":"m-1","type":"Orders.Order.Paid","data":{"orderId":"7","amountMinor":2500}}`)
	again := hash(`{"type":"Orders.Order.Paid","data":{ "amountMinor": 2500, "orderId": "7" },"messageId":"m-1","occurredAt":"2026-11-30T10:15:00Z"}`)
	other := hash(`{"messageId":"m-1","type":"Orders.Order.Paid","data":{"orderId":"7","amountMinor":2501}}`)
	fmt.Println(first == again, first == other)
	// Output:
	// true false
}

// What a service says is encoded from the same type that it reads.
func ExampleEnvelope_Encode() {
	body, err := messaging.Envelope{
		MessageID: "m-1", Type: "Orders.Order.Paid", OccurredAt: time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC), CorrelationID: "7",
		Data: []byte(`{"amountMinor":2500}`),
	}.Encode()
	fmt.Println(string(body), err)
	// Output:
	// {"messageId":"m-1","type":"Orders.Order.Paid","occurredAt":"2026-11-30T10:15:00.000Z","correlationId":"7","data":{"amountMinor":2500}} <nil>
}

// A queue whose rejected messages wait five seconds in another one: the lap. Everything that has to be right about the arguments is in the
// constructors.
func ExampleNewQueue() {
	for _, q := range []messaging.Queue{
		messaging.NewQueue("orders.events", messaging.Quorum).DeadLetterTo("orders.retry", ""),
		messaging.NewQueue("orders.events.retry", messaging.Quorum).ExpireAfter(5*time.Second).DeadLetterTo("", "orders.events"),
		messaging.NewQueue("orders.events_error", messaging.Classic),
	} {
		fmt.Println(q.Name, q.Args)
	}
	// Output:
	// orders.events map[x-dead-letter-exchange:orders.retry x-dead-letter-strategy:at-least-once x-delivery-limit:2147483647 x-overflow:reject-publish x-queue-type:quorum]
	// orders.events.retry map[x-dead-letter-exchange: x-dead-letter-routing-key:orders.events x-dead-letter-strategy:at-least-once x-delivery-limit:2147483647 x-message-ttl:5000 x-overflow:reject-publish x-queue-type:quorum]
	// orders.events_error map[x-queue-type:classic]
}

// The three roads of a failed message.
func ExampleRoad() {
	for _, road := range []messaging.Road{
		messaging.InProcess("orders.events_error"),
		messaging.Lap("orders.events.retry", "orders.dlx"),
		messaging.Tiered([]messaging.Tier{{Delay: 5 * time.Second, Queues: []string{"orders.events.retry.5s"}}}, "orders.dlx"),
	} {
		fmt.Printf("waits in %q or %d tiers, given up to exchange %q, key %q\n", road.RetryQueue, len(road.Tiers), road.QuarantineExchange, road.QuarantineKey)
	}
	// Output:
	// waits in "" or 0 tiers, given up to exchange "", key "orders.events_error"
	// waits in "orders.events.retry" or 0 tiers, given up to exchange "orders.dlx", key ""
	// waits in "" or 1 tiers, given up to exchange "orders.dlx", key ""
}

// How often a message was rejected by its own queue is in x-death. The order of the entries says nothing, so look for queue and reason.
func ExampleReadDeaths() {
	headers := amqp.Table{"x-death": []any{
		amqp.Table{"queue": "orders.events.retry", "reason": "expired", "count": int64(2), "exchange": "", "routing-keys": []any{"orders.events.retry"}},
		amqp.Table{"queue": "orders.events", "reason": "rejected", "count": int64(2), "exchange": "banking.events", "routing-keys": []any{"orders.order.paid"}},
	}}
	deaths, err := messaging.ReadDeaths(headers)
	for _, d := range deaths {
		if d.Queue == "orders.events" && d.Reason == "rejected" {
			fmt.Printf("%d attempts, first sent to %s with %v\n", d.Count, d.Exchange, d.RoutingKeys)
		}
	}
	fmt.Println(err)
	// Output:
	// 2 attempts, first sent to banking.events with [orders.order.paid]
	// <nil>
}

// What a parked message tells about its end, and what remains of that when it is sent on its way again.
func ExampleReadParked() {
	parked := amqp.Delivery{Headers: amqp.Table{
		messaging.HeaderParkReason: "MAX_ATTEMPTS", messaging.HeaderErrorClass: "TIMEOUT", messaging.HeaderAttempts: int64(3),
		messaging.HeaderOriginQueue: "orders.events", messaging.HeaderOriginExchange: "banking.events",
		messaging.HeaderOriginRoutingKey: "orders.order.paid", messaging.HeaderLastError: "the bank does not answer",
		messaging.HeaderParkedAt: "2026-11-30T10:15:00Z",
	}}
	p := messaging.ReadParked(parked.Headers)
	fmt.Printf("%s after %d attempts in %s, %s: %s\n", p.Reason, p.Attempts, p.OriginQueue, p.Class, p.Error)

	again := messaging.ReadParked(messaging.Replayed(&parked, time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)).Headers)
	fmt.Printf("replayed: %q after %d attempts, replay %d at %s\n", again.Reason, again.Attempts, again.ReplayCount, again.ReplayedAt.Format(time.TimeOnly))
	// Output:
	// MAX_ATTEMPTS after 3 attempts in orders.events, TIMEOUT: the bank does not answer
	// replayed: "" after 0 attempts, replay 1 at 12:00:00
}

// A handler that calls a broker by itself learns the class of what went wrong there.
func ExampleClassify() {
	for _, err := range []error{
		amqp.ErrClosed,
		&amqp.Error{Code: amqp.AccessRefused, Reason: "no access"},
		errors.New("something else"),
	} {
		class, known := messaging.Classify(err)
		fmt.Printf("%q %v\n", class, known)
	}
	// Output:
	// "TIMEOUT" true
	// "TIMEOUT" true
	// "" false
}

// A process has one set of metrics for all its sessions. How a consumer retries can be seen there from the moment it is made.
func ExampleNewMetrics() {
	metrics := messaging.NewMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	session := messaging.NewSession(messaging.SessionConfig{URLs: []string{"amqp://localhost"}, Name: "shop", Metrics: metrics})
	_, err := session.NewConsumer(messaging.ConsumerConfig{
		Queue: "shop.orders", Road: messaging.InProcess("shop.orders_error"),
		Policy: retry.Policy{MaxAttempts: 3, Delays: []time.Duration{time.Second, 5 * time.Second}, Classify: true},
		Handler: func(_ context.Context, batch []*messaging.Message) ([]error, error) {
			return make([]error, len(batch)), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	families, err := registry.Gather()
	for _, family := range families {
		if family.GetName() != "messaging_retry_policy_info" {
			continue
		}
		for _, label := range family.GetMetric()[0].GetLabel() {
			fmt.Println(label.GetName(), label.GetValue())
		}
	}
	fmt.Println(err)
	// Output:
	// attempts 3
	// classify on
	// queue shop.orders
	// road in-process
	// waits 1s,5s
	// <nil>
}
