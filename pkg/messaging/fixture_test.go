package messaging_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	patience = 60 * time.Second // for what must happen, on a machine that has much else to do
	lapDelay = 200 * time.Millisecond
)

// fixture is one service with one consumer on a virtual host of its own, and a client that looks on.
type fixture struct {
	*testing.T
	env      *testenv.Env
	session  *messaging.Session
	client   *amqp.Channel
	handled  chan messaging.Message // each message of each call of the handler
	stop     func()                 // the consumer first, then the session, as a service does
	ended    chan error             // what Session.Run returned
	consumed chan error             // what Consumer.Run returned
}

// script is a handler's answer to one message.
type script func(ctx context.Context, m *messaging.Message) error

func lapPolicy() retry.Policy {
	return retry.Policy{MaxAttempts: 3, Delays: []time.Duration{lapDelay}, MaxAge: 24 * time.Hour, NotFoundMaxAge: 5 * time.Minute, Classify: true}
}

func processPolicy(delays ...time.Duration) retry.Policy {
	p := lapPolicy()
	p.MaxAttempts, p.Delays = len(delays)+1, delays
	return p
}

// transfer is a consumer on the lap road with the real topology of the transfer service.
func transfer(answer script) (messaging.SessionConfig, messaging.ConsumerConfig) {
	return messaging.SessionConfig{Name: "transfer", Topology: topology.Transfer(messaging.Quorum, lapDelay)},
		messaging.ConsumerConfig{
			Queue:   contract.AccountEventsQueue,
			Policy:  lapPolicy(),
			Road:    messaging.Lap(contract.AccountEventsRetry, contract.DeadLetterExchange),
			Handler: one(answer),
		}
}

// account is a consumer on the road in process with the real topology of the account service.
func account(answer script, delays ...time.Duration) (messaging.SessionConfig, messaging.ConsumerConfig) {
	queue := contract.TransferRequestedQueue
	return messaging.SessionConfig{Name: "account", Topology: topology.Account(messaging.Quorum)},
		messaging.ConsumerConfig{
			Queue:   queue,
			Policy:  processPolicy(delays...),
			Road:    messaging.InProcess(contract.ErrorQueue(queue)),
			Handler: one(answer),
		}
}

// road is a way that a message may go: who takes it, by which key it comes to which queue, and where it is given up.
type road struct {
	service           func() (messaging.SessionConfig, messaging.ConsumerConfig)
	key               string
	queue, quarantine string
}

// roads are all of them, each with a handler that succeeds.
func roads() map[string]road {
	type config = messaging.ConsumerConfig
	return map[string]road{
		"lap":        {func() (messaging.SessionConfig, config) { return transfer(succeed) }, debited, contract.AccountEventsQueue, contract.ParkingLot},
		"tiered":     {func() (messaging.SessionConfig, config) { return tiered(succeed, 0, lapDelay) }, debited, contract.AccountEventsQueue, contract.ParkingLot},
		"in process": {func() (messaging.SessionConfig, config) { return account(succeed, lapDelay) }, requested, requestQueue, errorQueue},
	}
}

// one makes a handler that answers each message for itself.
func one(answer script) messaging.Handler {
	return func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		errs := make([]error, len(batch))
		for i, m := range batch {
			errs[i] = answer(ctx, m)
		}
		return errs, nil
	}
}

// start runs the service until the test ends and waits until it is ready. Without a handler only the session runs.
func start(t *testing.T, s messaging.SessionConfig, c messaging.ConsumerConfig) *fixture {
	t.Helper()
	return startOn(t, testenv.New(t), s, c)
}

func startOn(t *testing.T, env *testenv.Env, s messaging.SessionConfig, c messaging.ConsumerConfig) *fixture {
	t.Helper()
	if s.URLs == nil {
		s.URLs = []string{env.AMQPURL}
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	f := &fixture{T: t, env: env, session: messaging.NewSession(s), handled: make(chan messaging.Message, 10000),
		ended: make(chan error, 1), consumed: make(chan error, 1)}
	sessionCtx, endSession := context.WithCancel(context.Background())
	consumerCtx, endConsumer := context.WithCancel(context.Background())
	var consumers sync.WaitGroup
	if c.Handler != nil {
		handler := c.Handler
		c.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
			for _, m := range batch {
				f.handled <- *m
			}
			return handler(ctx, batch)
		}
		consumer, err := f.session.NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		consumers.Go(func() { f.consumed <- consumer.Run(consumerCtx) })
	}
	var sessions sync.WaitGroup
	sessions.Go(func() { f.ended <- f.session.Run(sessionCtx) })
	f.stop = sync.OnceFunc(func() {
		endConsumer()
		consumers.Wait()
		endSession()
		sessions.Wait()
	})
	t.Cleanup(f.stop)
	if s.URLs[0] == env.AMQPURL {
		f.becomesReady()
	}
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if f.client, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) becomesReady() {
	f.Helper()
	f.eventually("readiness", func() error { return f.session.Ready(f.Context()) })
}

// eventually waits until the condition holds.
func (f *fixture) eventually(what string, condition func() error) {
	f.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("waited for %s: %v", what, err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-f.Context().Done():
			f.Fatal(f.Context().Err())
		}
	}
}

// publish sends a raw message.
func (f *fixture) publish(exchange, key string, p amqp.Publishing) {
	f.Helper()
	p.DeliveryMode = amqp.Persistent
	if err := f.client.PublishWithContext(f.Context(), exchange, key, false, false, p); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) publishBody(key, body string) {
	f.Helper()
	f.publish(contract.EventsExchange, key, amqp.Publishing{Body: []byte(body), ContentType: "application/json"})
}

// next is the next message that the handler was called with.
func (f *fixture) next() messaging.Message {
	f.Helper()
	select {
	case m := <-f.handled:
		return m
	case <-time.After(patience):
		f.Fatal("the handler is not called")
		panic("unreachable")
	}
}

// take takes one message out of a queue, waiting for it.
func (f *fixture) take(queue string) amqp.Delivery {
	f.Helper()
	var d amqp.Delivery
	f.eventually("a message in "+queue, func() error {
		var ok bool
		var err error
		if d, ok, err = f.client.Get(queue, true); err != nil {
			f.Fatal(err)
		}
		if !ok {
			return errors.New("it is empty")
		}
		return nil
	})
	return d
}

// empty waits until nothing is in the queues, unacked messages included.
func (f *fixture) empty(queues ...string) {
	f.Helper()
	for _, queue := range queues {
		f.eventually(queue+" to be empty", func() error {
			if ready, unacked := f.env.QueueDepth(f, queue); ready+unacked > 0 {
				return errors.New("it is not")
			}
			return nil
		})
	}
}

// notHandled says that the handler has not been called again.
func (f *fixture) notHandled() {
	f.Helper()
	select {
	case m := <-f.handled:
		f.Errorf("the handler was called with %s, attempt %d", m.MessageID, m.Attempt)
	default:
	}
}
