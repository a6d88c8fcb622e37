package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// dependency is what a handler needs: well, or failing with an error.
type dependency struct {
	m       sync.Mutex
	failing error
	down    atomic.Bool // what a probe finds

	running atomic.Int32
	crowd   atomic.Bool // more than one message was handled at once, or in one batch
}

func (d *dependency) fails(err error) {
	d.m.Lock()
	defer d.m.Unlock()
	d.failing = err
}

func (d *dependency) state() error {
	d.m.Lock()
	defer d.m.Unlock()
	return d.failing
}

func (d *dependency) probe(context.Context) error {
	if d.down.Load() {
		return errors.New("nobody answers")
	}
	return nil
}

func (d *dependency) handle(_ context.Context, batch []*messaging.Message) ([]error, error) {
	if n := d.running.Add(1); n > 1 || len(batch) > 1 {
		d.crowd.Store(true)
	}
	defer d.running.Add(-1)
	errs := make([]error, len(batch))
	for i := range errs {
		errs[i] = d.state()
	}
	return errs, nil
}

var (
	errOdd  = errors.New("nobody knows what")
	errSlow = retry.Errorf(retry.Timeout, "no answer")
)

// consumers waits until the broker knows so many of a queue. A quorum queue counts one that was cancelled for as long as it holds
// messages, so none says also that none are held.
func (f *fixture) consumers(queue string, want int) {
	f.Helper()
	f.eventually(fmt.Sprint(want, " consumers of ", queue), func() error {
		q, err := f.client.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			f.Fatal(err)
		}
		if q.Consumers != want {
			return fmt.Errorf("%d", q.Consumers)
		}
		return nil
	})
}

// ready is how many messages wait in a queue.
func (f *fixture) ready(queue string, want int) {
	f.Helper()
	f.eventually(fmt.Sprint(want, " messages to wait in ", queue), func() error {
		q, err := f.client.QueueDeclarePassive(queue, true, false, false, false, nil)
		if err != nil {
			f.Fatal(err)
		}
		if q.Messages != want {
			return fmt.Errorf("%d", q.Messages)
		}
		return nil
	})
}

func (f *fixture) paused() {
	f.Helper()
	f.eventually("the pause", func() error {
		err := f.session.Ready(f.Context())
		if err == nil || !strings.Contains(err.Error(), "paused: the breaker is open until ") {
			return fmt.Errorf("ready says %v", err)
		}
		return nil
	})
}

func TestBreakerOpensAfterFiveFailuresAndClosesAfterThreeSuccesses(t *testing.T) {
	t.Parallel()
	sick := &dependency{}
	sick.fails(errOdd)
	s, c := account(succeed, time.Millisecond, time.Hour)
	c.Handler, c.Prefetch, c.Concurrency, c.BatchSize = sick.handle, 20, 1, 1
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Second}
	f := start(t, s, c)
	for i := range 3 {
		f.publishBody(requested, body(fmt.Sprint("held-", i)))
	}
	for range 5 { // three first attempts and two second ones
		f.next()
	}
	f.paused()
	f.notHandled()
	f.consumers(requestQueue, 0)
	for i := range 10 {
		f.publishBody(requested, body(fmt.Sprint("new-", i)))
	}
	f.ready(requestQueue, 13)
	sick.fails(nil)
	third := 0
	for range 13 {
		m := f.next()
		if m.Attempt != 1 != strings.HasPrefix(m.MessageID, "held-") {
			t.Errorf("%s at attempt %d", m.MessageID, m.Attempt)
		}
		if m.Attempt == 3 {
			third++
		}
	}
	if third != 2 {
		t.Errorf("%d messages at their third attempt, two had made their second", third)
	}
	f.becomesReady()
	f.empty(requestQueue, errorQueue)
}

func TestClosedBreakerTakesTheWholePrefetchAgain(t *testing.T) {
	t.Parallel()
	var block atomic.Bool
	finish := make(chan struct{})
	sick := &dependency{}
	sick.fails(errOdd)
	s, c := transfer(succeed)
	c.Prefetch, c.BatchSize, c.Breaker = 20, 20, &retry.BreakerConfig{OpenFor: 200 * time.Millisecond}
	c.Policy.MaxAttempts = 1
	c.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		if block.Load() {
			<-finish
		}
		return sick.handle(ctx, batch)
	}
	f := start(t, s, c)
	for i := range 5 {
		f.publishBody(debited, body(fmt.Sprint("failing-", i)))
	}
	f.paused()
	sick.fails(nil)
	sick.crowd.Store(false)
	for i := range 3 {
		f.publishBody(debited, body(fmt.Sprint("probing-", i)))
	}
	f.becomesReady()
	f.empty(contract.AccountEventsQueue)
	if sick.crowd.Load() {
		t.Error("a half-open breaker let more than one through at once")
	}
	block.Store(true)
	for i := range 50 {
		f.publishBody(debited, body(fmt.Sprint("blocked-", i)))
	}
	f.ready(contract.AccountEventsQueue, 30)
	close(finish)
	f.empty(contract.AccountEventsQueue)
}

func TestBreakerOpensByTheShareOfFailures(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s, c := account(func(context.Context, *messaging.Message) error {
		if calls.Add(1)%2 == 0 {
			return errSlow
		}
		return nil
	}, time.Hour)
	c.Concurrency, c.BatchSize = 1, 1
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Hour}
	f := start(t, s, c)
	for i := range 30 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	f.paused()
	f.ready(requestQueue, 20)
	if n := calls.Load(); n != 20 {
		t.Errorf("it opened after %d messages", n)
	}
}

// A breaker that opens again and again must not keep a message that is itself to blame from its end.
func TestPoisonReachesTheQuarantineThroughTheBreaker(t *testing.T) {
	t.Parallel()
	poison := func(_ context.Context, m *messaging.Message) error {
		if strings.HasPrefix(m.MessageID, "poison") {
			return errOdd
		}
		return nil
	}
	for name, prepare := range map[string]func() (messaging.SessionConfig, messaging.ConsumerConfig, string, string, string){
		"in process": func() (messaging.SessionConfig, messaging.ConsumerConfig, string, string, string) {
			s, c := account(poison, time.Millisecond, time.Millisecond)
			return s, c, requested, requestQueue, errorQueue
		},
		"lap": func() (messaging.SessionConfig, messaging.ConsumerConfig, string, string, string) {
			s, c := transfer(poison)
			return s, c, debited, contract.AccountEventsQueue, contract.ParkingLot
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, key, queue, quarantine := prepare()
			c.Breaker = &retry.BreakerConfig{OpenFor: 20 * time.Millisecond, OpenMax: 50 * time.Millisecond}
			c.Probe = (&dependency{}).probe
			f := start(t, s, c)
			for i := range 6 {
				f.publishBody(key, body(fmt.Sprint("poison-", i)))
			}
			for range 6 {
				f.checkQuarantined(f.take(quarantine), s.Name, queue, 3, retry.ReasonMaxAttempts, retry.Unknown)
			}
			f.publishBody(key, body("good"))
			f.empty(queue, quarantine)
		})
	}
}

// One message that times out while its dependency is down, at its last attempt: no breaker could have opened by counting.
func TestNoAttemptIsSpentWhileTheDependencyIsKnownToBeDown(t *testing.T) {
	t.Parallel()
	down := &dependency{}
	down.fails(errSlow)
	down.down.Store(true)
	s, c := transfer(succeed)
	c.Handler, c.Probe = down.handle, down.probe
	c.Policy.MaxAttempts = 1
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Hour}
	f := start(t, s, c)
	for i := range 10 {
		f.publishBody(debited, body(fmt.Sprint(i)))
	}
	f.next()
	f.paused()
	f.consumers(contract.AccountEventsQueue, 0)
	f.ready(contract.AccountEventsQueue, 10)
	down.fails(nil)
	began := time.Now()
	down.down.Store(false)
	f.becomesReady()
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v to go on", took)
	}
}

func TestWaitingMessageKeepsItsAttemptsThroughAnOutage(t *testing.T) {
	t.Parallel()
	sick := &dependency{}
	s, c := account(succeed, 300*time.Millisecond)
	c.Probe = sick.probe
	// By its number: the test hears of a call before its answer is made, and must not change it.
	c.Handler = func(_ context.Context, batch []*messaging.Message) ([]error, error) {
		switch {
		case batch[0].Attempt == 1:
			return []error{errOdd}, nil
		case sick.down.Load():
			return []error{errSlow}, nil
		}
		return []error{nil}, nil
	}
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Hour}
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	if m := f.next(); m.Attempt != 1 {
		t.Errorf("attempt %d", m.Attempt)
	}
	sick.down.Store(true)
	if m := f.next(); m.Attempt != 2 {
		t.Errorf("attempt %d", m.Attempt)
	}
	f.paused()
	f.consumers(requestQueue, 0)
	f.ready(requestQueue, 1)
	sick.down.Store(false)
	if m := f.next(); m.Attempt != 2 || m.Redelivered {
		t.Errorf("attempt %d, redelivered %v; its last one was not spent", m.Attempt, m.Redelivered)
	}
	f.empty(requestQueue, errorQueue)
}

// A dependency that is there while messages fail is not what they fail of: finding it there must not end the pause.
func TestBreakerDoesNotFlapWhenTheProbeFindsNothing(t *testing.T) {
	t.Parallel()
	sick := &dependency{}
	sick.fails(errSlow)
	asked := make(chan struct{}, 1000)
	s, c := account(succeed, time.Hour)
	c.Handler, c.Concurrency, c.BatchSize = sick.handle, 1, 1
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Hour}
	c.Probe = func(context.Context) error {
		asked <- struct{}{}
		return nil
	}
	f := start(t, s, c)
	for i := range 20 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	for range 5 {
		f.next()
		<-asked
	}
	f.paused()
	for range 2 {
		<-asked
	}
	f.paused()
	f.ready(requestQueue, 20)
	f.notHandled()
}

func TestBreakerStaysOpenAcrossSessions(t *testing.T) {
	t.Parallel()
	down := &dependency{}
	down.fails(errSlow)
	down.down.Store(true)
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s, c := transfer(succeed)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	c.Handler, c.Probe = down.handle, down.probe
	c.Breaker = &retry.BreakerConfig{OpenFor: time.Hour}
	f := startOn(t, env, s, c)
	f.becomesReady()
	f.publishBody(debited, body("m"))
	f.next()
	f.paused()
	proxy.Cut()
	f.paused()
	f.consumers(contract.AccountEventsQueue, 0)
	f.notHandled()
	down.fails(nil)
	down.down.Store(false)
	if m := f.next(); m.Attempt != 1 {
		t.Errorf("attempt %d", m.Attempt)
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
}

func TestHalfOpenBreakerSurvivesTheLossOfItsSession(t *testing.T) {
	t.Parallel()
	sick := &dependency{}
	sick.fails(errOdd)
	var trial atomic.Bool
	trying, finish := make(chan struct{}, 100), make(chan struct{})
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s, c := transfer(succeed)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	c.Breaker = &retry.BreakerConfig{OpenFor: 100 * time.Millisecond}
	c.Policy.MaxAttempts = 1
	c.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		if trial.Load() {
			trying <- struct{}{}
			<-finish
		}
		return sick.handle(ctx, batch)
	}
	f := startOn(t, env, s, c)
	f.becomesReady()
	for i := range 5 {
		f.publishBody(debited, body(fmt.Sprint("failing-", i)))
	}
	for range 5 {
		f.take(contract.ParkingLot)
	}
	trial.Store(true)
	sick.fails(nil)
	sick.crowd.Store(false)
	for i := range 20 {
		f.publishBody(debited, body(fmt.Sprint("trying-", i)))
	}
	<-trying
	proxy.Cut()
	f.consumers(contract.AccountEventsQueue, 1)
	trial.Store(false)
	close(finish)
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	f.becomesReady()
}

func TestStopWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	sick := &dependency{}
	sick.fails(errOdd)
	s, c := account(succeed, time.Hour)
	c.Handler, c.Breaker, c.Starts = sick.handle, &retry.BreakerConfig{OpenFor: time.Hour}, newNotebook()
	f := start(t, s, c)
	for i := range 5 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	f.paused()
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := errors.Join(<-f.consumed, <-f.ended); err != nil {
		t.Error(err)
	}
	f.ready(requestQueue, 5)
}
