package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
)

func (f *fixture) notReady(because string) {
	f.Helper()
	f.eventually("not being ready because of "+because, func() error {
		err := f.session.Ready(f.Context())
		if err == nil || !strings.Contains(err.Error(), because) {
			return fmt.Errorf("Ready says %w", err)
		}
		return nil
	})
}

func TestSessionComesBackWhenTheBrokerClosesItsConnections(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	f := start(t, s, c)
	for i := range 3 {
		f.env.CloseConnections(t)
		conn, err := amqp.Dial(f.env.AMQPURL) // the client's connection has been closed too
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if f.client, err = conn.Channel(); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("m-", i)
		f.publishBody(debited, body(id))
		f.eventually("message "+id, func() error {
			if m := f.next(); m.MessageID != id {
				return fmt.Errorf("got %s", m.MessageID)
			}
			return nil
		})
		outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event("p")})
		if err != nil || outcomes[0] != messaging.Acked {
			t.Errorf("publish: %v, %v", outcomes, err)
		}
		f.next()
	}
	f.becomesReady()
	f.empty(contract.AccountEventsQueue, contract.ParkingLot)
}

func TestMessageIsHandledAgainWhenTheSessionBreaksBeforeItsAck(t *testing.T) {
	t.Parallel()
	broken := make(chan struct{})
	s, c := transfer(func(_ context.Context, m *messaging.Message) error {
		if !m.Redelivered {
			<-broken
		}
		return nil
	})
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	f := startOn(t, env, s, c)
	f.becomesReady()
	f.publishBody(debited, body("m"))
	f.next()
	proxy.Cut()
	f.notReady("not connected")
	close(broken)
	if m := f.next(); m.MessageID != "m" || !m.Redelivered || m.Attempt != 1 {
		t.Errorf("got %+v", m)
	}
	f.becomesReady()
	f.empty(contract.AccountEventsQueue)
}

func TestSessionWaitsForAMissingBroker(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	proxy.Refuse()
	s, c := transfer(succeed)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	f := startOn(t, env, s, c)
	f.notReady("not connected")
	short, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	outcomes, err := f.session.Publish(short, []messaging.Publishing{event("p")})
	if outcomes[0] != messaging.Unknown || retry.ClassOf(err) != retry.Timeout {
		t.Errorf("publish without a session: %v, %v", outcomes, err)
	}
	proxy.Accept()
	f.becomesReady()
	if outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event("p")}); err != nil || outcomes[0] != messaging.Acked {
		t.Errorf("publish: %v, %v", outcomes, err)
	}
	f.next()
}

func TestSessionTriesSeveralBrokers(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s, _ := transfer(nil)
	s.URLs = []string{"amqp://guest:guest@127.0.0.1:1/", env.AMQPURL}
	f := startOn(t, env, s, messaging.ConsumerConfig{})
	f.becomesReady()
}

func TestSessionRefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	for _, urls := range [][]string{nil, {"127.0.0.1:5672"}, {"amqp://u:secret@h:port/"}} {
		err := messaging.NewSession(messaging.SessionConfig{URLs: urls}).Run(t.Context())
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", urls, err)
		}
	}
}

func TestPeerThatStopsReadingHoldsNobody(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s, c := transfer(succeed)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	s.WriteTimeout, s.CloseTimeout, s.Heartbeat = time.Second, time.Second, time.Second
	s.PublishTimeout = 2 * time.Second
	f := startOn(t, env, s, c)
	f.becomesReady()
	proxy.Pause()
	large := event("large")
	large.Body = make([]byte, 8<<20) // more than the buffers on the way hold
	began := time.Now()
	outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{large, event("small")})
	if took := time.Since(began); outcomes[0] != messaging.Unknown || outcomes[1] != messaging.Unknown || err == nil || took > 15*time.Second {
		t.Errorf("publish: %v, %v after %v", outcomes, err, took)
	}
	f.notReady("not connected")
	proxy.Resume()
	f.becomesReady()
	proxy.Pause()
	began = time.Now()
	f.stop()
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if err := errors.Join(<-f.consumed, <-f.ended); err != nil {
		t.Error(err)
	}
}

// Whatever breaks each connection as soon as it is used must not be tried a thousand times a second.
func TestLinksThatBreakAtOnceAreNoHotLoop(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s, c := transfer(succeed)
	s.URLs, s.ReconnectMax, s.Metrics = []string{proxy.URL(env.AMQPURL)}, time.Second, messaging.NewMetrics()
	f := startOn(t, env, s, c)
	f.becomesReady()
	began := time.Now()
	f.eventually("being called broken", func() error {
		err := f.session.Ready(t.Context())
		if err == nil {
			proxy.Cut()
		}
		if err == nil || !strings.Contains(err.Error(), "broken") {
			return fmt.Errorf("Ready says %w", err)
		}
		return nil
	})
	for range 5 {
		proxy.Cut()
		f.eventually("the next link", func() error { return f.session.Ready(t.Context()) })
	}
	if took := time.Since(began); took < 2*time.Second { // 0.1 + 0.2 + 0.4 + 0.8 + 1 … s, less jitter of a half
		t.Errorf("seven links broke within %v", took)
	}
	f.publishBody(debited, body("m"))
	if m := f.next(); m.MessageID != "m" {
		t.Errorf("got %s", m.MessageID)
	}
}

// Not parallel: it counts goroutines.
func TestSessionsLeaveNoGoroutineBehind(t *testing.T) {
	env := testenv.New(t)
	before := goleak.IgnoreCurrent()
	for i := range 20 {
		s, c := transfer(unknownTransfer)
		s.URLs = []string{env.AMQPURL}
		session := messaging.NewSession(s)
		consumer, err := session.NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- session.Run(ctx) }()
		go func() { ended <- consumer.Run(ctx) }()
		if outcomes, err := session.Publish(ctx, []messaging.Publishing{event(fmt.Sprint(i))}); err != nil || outcomes[0] != messaging.Acked {
			t.Fatalf("publish: %v, %v", outcomes, err)
		}
		cancel()
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Fatal(err)
		}
	}
	goleak.VerifyNone(t, before)
}

func TestNothingIsLostWhenTheBrokerIsKilled(t *testing.T) {
	t.Parallel()
	servers := testenv.Own(t)
	s, c := transfer(succeed)
	s.ReconnectMax, s.PublishTimeout = time.Second, patience
	f := startOn(t, servers.Env(t), s, c)
	if err := servers.KillBroker(); err != nil {
		t.Fatal(err)
	}
	f.notReady("not connected")
	published := make(chan error, 1)
	go func() {
		outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event("waited")})
		if err == nil && outcomes[0] != messaging.Acked {
			err = errors.New(outcomes[0].String())
		}
		published <- err
	}()
	if err := servers.StartBroker(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.becomesReady()
	if err := <-published; err != nil {
		t.Errorf("publish: %v", err)
	}
	if m := f.next(); m.MessageID != "waited" {
		t.Errorf("got %s", m.MessageID)
	}
}
