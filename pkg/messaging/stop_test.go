package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestStopLetsRunningHandlersFinishAndGivesTheRestBack(t *testing.T) {
	t.Parallel()
	finish, running := make(chan struct{}), make(chan struct{}, 1)
	s, c := transfer(func(ctx context.Context, m *messaging.Message) error {
		running <- struct{}{}
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	c.Concurrency, c.BatchSize = 1, 1
	f := start(t, s, c)
	for i := range 10 {
		f.publishBody(debited, body(fmt.Sprint(i)))
	}
	<-running
	f.eventually("the prefetch", func() error {
		if ready, unacked := f.env.QueueDepth(t, contract.AccountEventsQueue); ready != 0 || unacked != 10 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
	stopped := make(chan struct{})
	go func() {
		f.stop()
		close(stopped)
	}()
	f.eventually("the waiting messages to be given back", func() error {
		if ready, unacked := f.env.QueueDepth(t, contract.AccountEventsQueue); ready != 9 || unacked != 1 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
	close(finish)
	<-stopped
	if err := errors.Join(<-f.consumed, <-f.ended); err != nil {
		t.Error(err)
	}
	second, c2 := transfer(succeed)
	g := startOn(t, f.env, second, c2)
	for range 9 {
		if m := g.next(); m.Attempt != 1 || m.MessageID == f.firstHandled() {
			t.Errorf("%s at attempt %d", m.MessageID, m.Attempt)
		}
	}
	g.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	g.notHandled()
}

// firstHandled is the id of the first message that the handler was called with; it stays to be asked for again.
func (f *fixture) firstHandled() string {
	m := f.next()
	f.handled <- m
	return m.MessageID
}

// A handler that is cut is no failure, on any road: the next instance has the message at the attempt it was at.
func TestStopCutsHandlersAfterTheGraceAndSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	for road, c := range map[string]struct {
		service func(script) (messaging.SessionConfig, messaging.ConsumerConfig)
		key     string
		queues  []string
	}{
		"lap": {transfer, debited, []string{contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot}},
		"tiered": {func(answer script) (messaging.SessionConfig, messaging.ConsumerConfig) {
			return tiered(answer, 0, lapDelay)
		}, debited,
			[]string{contract.AccountEventsQueue, contract.AccountEventsRetry, contract.RetryTierQueue(lapDelay), contract.ParkingLot}},
		"in process": {func(answer script) (messaging.SessionConfig, messaging.ConsumerConfig) {
			return account(answer, lapDelay, lapDelay)
		}, requested,
			[]string{requestQueue, errorQueue}},
	} {
		t.Run(road, func(t *testing.T) {
			t.Parallel()
			s, consumer := c.service(func(ctx context.Context, m *messaging.Message) error {
				<-ctx.Done()
				return errors.New("conn closed") // what a library makes of it
			})
			consumer.Grace = 100 * time.Millisecond
			f := start(t, s, consumer)
			f.publish(contract.EventsExchange, c.key, amqp.Publishing{Body: []byte(body("m")), Headers: amqp.Table{"Banking-Attempts": int64(1)}})
			if m := f.next(); m.Attempt != 2 {
				t.Errorf("attempt %d", m.Attempt)
			}
			f.stop()
			if err := errors.Join(<-f.consumed, <-f.ended); err != nil {
				t.Error(err)
			}
			for _, queue := range c.queues[1:] {
				if ready, _ := f.env.QueueDepth(t, queue); ready != 0 {
					t.Errorf("%d messages in %s", ready, queue)
				}
			}
			second, consumer2 := c.service(succeed)
			g := startOn(t, f.env, second, consumer2)
			if m := g.next(); m.Attempt != 2 {
				t.Errorf("then at attempt %d", m.Attempt)
			}
			g.empty(c.queues...)
			g.notHandled()
		})
	}
}

func TestStopEndsWithAHandlerThatIgnoresIt(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s, c := transfer(func(context.Context, *messaging.Message) error {
		<-release
		return nil
	})
	c.Grace = 100 * time.Millisecond
	f := start(t, s, c)
	f.publishBody(debited, body("m"))
	f.next()
	began := time.Now()
	f.stop()
	if err := <-f.consumed; err == nil {
		t.Error("nothing says that a handler still runs")
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestStopEndsWaitsAtOnce(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "slow" {
			<-finish
			return nil
		}
		return errors.New("later")
	}, time.Hour)
	c.BatchSize = 1
	f := start(t, s, c)
	f.publishBody(requested, body("slow"))
	f.publishBody(requested, body("waiting"))
	f.next()
	f.next()
	stopped := make(chan struct{})
	go func() {
		f.stop()
		close(stopped)
	}()
	f.eventually("the waiting message to be given back before the slow one is done", func() error {
		if ready, unacked := f.env.QueueDepth(t, requestQueue); ready != 1 || unacked != 1 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
	close(finish)
	<-stopped
	second, c2 := account(succeed)
	g := startOn(t, f.env, second, c2)
	if m := g.next(); m.MessageID != "waiting" || m.Attempt != 1 || !m.Redelivered {
		t.Errorf("%s at attempt %d, redelivered %v", m.MessageID, m.Attempt, m.Redelivered)
	}
	g.empty(requestQueue, errorQueue)
}
