package quarantine

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	patience = 60 * time.Second
	token    = "operators only"
	lap      = 150 * time.Millisecond
	lot      = contract.ParkingLot
	work0    = contract.AccountEventsQueue
)

// baseDocument is as much of a service's document as the fragment refers to.
const baseDocument = `openapi: 3.0.3
info: {title: test, version: "1"}
paths: {}
components:
  schemas:
    Problem:
      type: object
      required: [type, title, status]
      properties: {errors: {type: array, items: {type: object, required: [field, message]}}}
`

// bench is the quarantine of transfer on servers of its own, behind HTTP, with a client that looks on.
type bench struct {
	*testing.T
	env       *testenv.Env
	url       string // of the database
	pool      *pgxpool.Pool
	session   *messaging.Session
	q         *Quarantine
	server    string
	transport http.RoundTripper // holds every answer against the document
	ch        *amqp.Channel     // in confirm mode
}

func newBench(t *testing.T, change ...func(*Config)) *bench {
	t.Helper()
	b := &bench{T: t, env: testenv.New(t)}
	b.url = b.env.Database(t, "quarantine")
	b.pool = b.connect()
	if _, err := b.pool.Exec(t.Context(), Schema+inbox.Schema); err != nil {
		t.Fatal(err)
	}
	b.session = b.newSession()
	b.q, b.server = b.serve(b.session, b.pool, change...)
	document, err := service.MergeOpenAPI([]byte(baseDocument), OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	b.transport = openapitest.New(t, document, nil)
	conn, err := amqp.Dial(b.env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if b.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	if err := b.ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) connect() *pgxpool.Pool {
	b.Helper()
	pool, err := service.OpenPool(context.Background(), b.url, "quarantine", slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return pool
}

// newSession runs a session until the test ends, and waits until it is ready.
func (b *bench) newSession() *messaging.Session {
	b.Helper()
	s := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{b.env.AMQPURL}, Name: "transfer", Topology: topology.Transfer(messaging.Quorum, lap), Logger: b.log(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	b.eventually("readiness", func() error { return s.Ready(b.Context()) })
	return s
}

func (b *bench) log() *slog.Logger { return slog.New(slog.NewTextHandler(b.Output(), nil)) }

// serve is one replica of the service.
func (b *bench) serve(session *messaging.Session, pool *pgxpool.Pool, change ...func(*Config)) (*Quarantine, string) {
	b.Helper()
	config := Config{
		Session: session, Pool: pool, Queues: []string{lot}, Targets: []string{work0, contract.TransferRequestedQueue}, Consumed: []string{work0},
		Exchanges: []string{contract.EventsExchange}, LongestRoad: time.Second, Logger: b.log(), LockWait: time.Second,
	}
	for _, f := range change {
		f(&config)
	}
	q := New(config)
	q.poll, q.margin = 20*time.Millisecond, 2*time.Second
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", AdminToken: token, Logger: b.log()})
	if err != nil {
		b.Fatal(err)
	}
	q.Register(server.Admin)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = server.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return q, "http://" + server.Addr()
}

// eventually waits until the condition holds.
func (b *bench) eventually(what string, condition func() error) {
	b.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited for %s: %v", what, err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
	}
}

// publish puts messages into a queue and waits for the confirms.
func (b *bench) publish(exchange, key string, messages ...amqp.Publishing) {
	b.Helper()
	confirms := make([]*amqp.DeferredConfirmation, len(messages))
	for i, m := range messages {
		m.DeliveryMode = amqp.Persistent
		var err error
		if confirms[i], err = b.ch.PublishWithDeferredConfirm(exchange, key, true, false, m); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range confirms {
		if acked, err := c.WaitContext(b.Context()); err != nil || !acked {
			b.Fatalf("publish: %v %v", acked, err)
		}
	}
}

// park puts messages into the parking lot.
func (b *bench) park(messages ...amqp.Publishing) {
	b.Helper()
	b.publish("", lot, messages...)
}

// parkedEvent is a message as a consumer gives it up.
func parkedEvent(id string, change ...func(amqp.Table)) amqp.Publishing {
	now := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	headers := amqp.Table{
		messaging.HeaderLastError: "transfer not-a-real-id is not known", messaging.HeaderErrorClass: string(retry.NotFound),
		messaging.HeaderParkReason: retry.ReasonMaxAttempts, messaging.HeaderAttempts: int64(3), messaging.HeaderOriginQueue: work0,
		messaging.HeaderOriginExchange: contract.EventsExchange, messaging.HeaderOriginRoutingKey: "accounts.account.debited",
		messaging.HeaderFirstFailedAt: now, messaging.HeaderParkedAt: now, messaging.HeaderService: "transfer",
		"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	for _, f := range change {
		f(headers)
	}
	return amqp.Publishing{Headers: headers, ContentType: "application/json", MessageId: id, AppId: "account", Body: []byte(event(id))}
}

func event(id string) string {
	return fmt.Sprintf(`{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":"t-%s"}}`, id, id)
}

func (b *bench) depth(queue string) int {
	b.Helper()
	state, err := b.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	return state.Messages
}

func (b *bench) hasDepth(queue string, depth int) {
	b.Helper()
	b.eventually(fmt.Sprintf("%d messages in %s", depth, queue), func() error {
		if got := b.depth(queue); got != depth {
			return fmt.Errorf("there are %d", got)
		}
		return nil
	})
}

// contents are the messages of a queue in their order; they go back.
func (b *bench) contents(queue string) (all []amqp.Delivery) {
	b.Helper()
	conn, err := amqp.Dial(b.env.AMQPURL)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		b.Fatal(err)
	}
	for {
		d, ok, err := ch.Get(queue, false)
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			_ = conn.Close()
			b.hasDepth(queue, len(all))
			return all
		}
		all = append(all, d)
	}
}

// consumer is a consumer of transfer's queue on the lap road, whose inbox is the table.
func (b *bench) consume(fail func(*messaging.Message) error) chan messaging.Message {
	b.Helper()
	handled := make(chan messaging.Message, 1000)
	s := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{b.env.AMQPURL}, Name: "transfer", Topology: topology.Transfer(messaging.Quorum, lap), Logger: b.log(),
	})
	c, err := s.NewConsumer(messaging.ConsumerConfig{
		Queue:  work0,
		Policy: retry.Policy{MaxAttempts: 3, Delays: []time.Duration{lap}, MaxAge: 24 * time.Hour, NotFoundMaxAge: 5 * time.Minute, Classify: true},
		Road:   messaging.Lap(contract.AccountEventsRetry, contract.DeadLetterExchange),
		Handler: func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
			errs := make([]error, len(batch))
			for i, m := range batch {
				handled <- *m
				if errs[i] = fail(m); errs[i] != nil {
					continue
				}
				hash, err := m.PayloadHash()
				if err != nil {
					return nil, err
				}
				if _, err := b.pool.Exec(ctx, `insert into inbox values ($1, $2, $3, now()) on conflict do nothing`, work0, m.MessageID, hash[:]); err != nil {
					return nil, err
				}
			}
			return errs, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.Run(ctx) })
	running.Go(func() { _ = c.Run(ctx) })
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	b.eventually("a consumer", func() error { return s.Ready(b.Context()) })
	return handled
}
