package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
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

func TestStopCutsHandlersAfterTheGraceAndSpendsNoAttempt(t *testing.T) {
	t.Parallel()
	s, c := transfer(func(ctx context.Context, m *messaging.Message) error {
		<-ctx.Done()
		return errors.New("conn closed") // what a library makes of it
	})
	c.Grace = 100 * time.Millisecond
	f := start(t, s, c)
	f.publishBody(debited, body("m"))
	f.next()
	f.stop()
	if err := errors.Join(<-f.consumed, <-f.ended); err != nil {
		t.Error(err)
	}
	second, c2 := transfer(succeed)
	g := startOn(t, f.env, second, c2)
	if m := g.next(); m.Attempt != 1 {
		t.Errorf("attempt %d", m.Attempt)
	}
	g.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
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
