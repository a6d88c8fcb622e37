package messaging_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// notebook is messaging.Starts without a database.
type notebook struct {
	away  atomic.Bool // as a database that does not answer
	hangs bool        // for as long as it is waited for

	m       sync.Mutex
	starts  map[[32]byte]int
	begun   int
	excused map[[32]byte]bool
}

func newNotebook() *notebook {
	return &notebook{starts: map[[32]byte]int{}, excused: map[[32]byte]bool{}}
}

func (n *notebook) note(ctx context.Context, f func()) error {
	if n.away.Load() {
		if n.hangs {
			<-ctx.Done()
		}
		return context.DeadlineExceeded
	}
	n.m.Lock()
	defer n.m.Unlock()
	f()
	return nil
}

func (n *notebook) Begin(ctx context.Context, _ string, key [32]byte, first int) (starts int, err error) {
	err = n.note(ctx, func() {
		if _, known := n.starts[key]; !known {
			n.starts[key] = first
		}
		n.starts[key]++
		n.begun++
		starts = n.starts[key]
	})
	return starts, err
}

func (n *notebook) End(ctx context.Context, _ string, keys ...[32]byte) error {
	return n.note(ctx, func() {
		for _, key := range keys {
			delete(n.starts, key)
		}
	})
}

func (n *notebook) Excuse(ctx context.Context, _ string, begun, held [][32]byte) error {
	return n.note(ctx, func() {
		for _, key := range slices.Concat(begun, held) {
			n.excused[key] = true
		}
		for _, key := range begun {
			if n.starts[key] > 0 {
				n.starts[key]--
			}
		}
	})
}

// redeliver publishes messages and takes them once without an ack, as a process that ends does. The consumer starts after that.
func redeliver(t *testing.T, s messaging.SessionConfig, key string, ids ...string) *testenv.Env {
	t.Helper()
	f := start(t, s, messaging.ConsumerConfig{})
	for _, id := range ids {
		f.publishBody(key, body(id))
	}
	queue := contract.AccountEventsQueue
	if key == requested {
		queue = requestQueue
	}
	for range ids {
		f.eventually("the message to take", func() error {
			_, ok, err := f.client.Get(queue, false)
			if err == nil && !ok {
				err = errors.New("the queue is empty")
			}
			return err
		})
	}
	if err := f.client.Close(); err != nil {
		t.Fatal(err)
	}
	f.stop()
	return f.env
}

func TestSuspectIsNotStartedBeforeThatIsNoted(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	env := redeliver(t, s, debited, "m")
	starts := newNotebook()
	starts.away.Store(true)
	c.Starts, c.Breaker = starts, &retry.BreakerConfig{}
	c.Policy.MaxAttempts = 1                                             // any attempt that is spent is the last
	s.URLs = []string{testenv.NewProxy(t, env.AMQPURL).URL(env.AMQPURL)} // it is not ready at first
	asked := make(chan struct{}, 100)
	c.Probe = func(context.Context) error {
		asked <- struct{}{}
		if starts.away.Load() {
			return errors.New("away")
		}
		return nil
	}
	f := startOn(t, env, s, c)
	<-asked // the first note has failed
	<-asked
	f.notHandled()
	starts.away.Store(false)
	if m := f.next(); m.Attempt != 1 || !m.Redelivered {
		t.Errorf("attempt %d, redelivered %v", m.Attempt, m.Redelivered)
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
}

// Each attempt in this process may be the one that ends it, so each is noted; those that ended do not bring it nearer to the quarantine,
// of which there are more here than starts without an end are let pass.
func TestSuspectThatFailsIsOneUntilItIsDone(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int32
	s, c := account(func(context.Context, *messaging.Message) error {
		if attempts.Add(1) < 5 {
			return errors.New("later")
		}
		return nil
	}, time.Millisecond, time.Millisecond, time.Millisecond, time.Millisecond)
	env := redeliver(t, s, requested, "m")
	starts := newNotebook()
	c.Starts = starts
	f := startOn(t, env, s, c)
	for want := 1; want <= 5; want++ {
		if m := f.next(); m.Attempt != want {
			t.Errorf("attempt %d, want %d", m.Attempt, want)
		}
	}
	f.empty(requestQueue, errorQueue)
	f.stop()
	if starts.begun != 5 || len(starts.starts) != 0 {
		t.Errorf("%d starts were noted, %d messages have one without an end", starts.begun, len(starts.starts))
	}
}

// Two queues of one service: while a message that may end the process runs in one, nothing runs in the other.
func TestSuspectRunsAloneInItsProcess(t *testing.T) {
	t.Parallel()
	const each = 40
	_, c := account(succeed)
	s := messaging.SessionConfig{Name: "account", Topology: topology.Account(messaging.Quorum)}
	ids := make([]string, each)
	for i := range ids {
		ids[i] = fmt.Sprint("m-", i)
	}
	env := redeliver(t, s, requested, ids...)
	var running atomic.Int32
	var together atomic.Bool
	largest := make(chan int, 10*each)
	handler := func(alone bool) messaging.Handler {
		return func(_ context.Context, batch []*messaging.Message) ([]error, error) {
			n := running.Add(1)
			defer running.Add(-1)
			if alone {
				largest <- len(batch)
			}
			<-time.After(time.Millisecond) // time for somebody else to run beside it
			if alone && (n > 1 || running.Load() > 1) {
				together.Store(true)
			}
			return make([]error, len(batch)), nil
		}
	}
	c.Starts, c.Handler = newNotebook(), handler(true)
	f := &fixture{T: t, env: env}
	s.URLs = []string{env.AMQPURL}
	f.session = messaging.NewSession(s)
	first, err := f.session.NewConsumer(c)
	if err != nil {
		t.Fatal(err)
	}
	c.Queue, c.Road = contract.CreditRequestedQueue, messaging.InProcess(contract.ErrorQueue(contract.CreditRequestedQueue))
	c.Handler = handler(false)
	second, err := f.session.NewConsumer(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { _ = f.session.Run(ctx) })
	all.Go(func() { _ = second.Run(ctx) })
	f.eventually("the session", func() error {
		_, err := f.session.Publish(ctx, []messaging.Publishing{{RoutingKey: contract.CreditRequestedQueue}})
		return err
	})
	flood := make([]messaging.Publishing, 2000)
	for i := range flood {
		flood[i] = event(fmt.Sprint("other-", i))
		flood[i].Exchange, flood[i].RoutingKey = "", contract.CreditRequestedQueue
	}
	all.Go(func() { _, _ = f.session.Publish(ctx, flood) })
	all.Go(func() { _ = first.Run(ctx) })
	for range each {
		if n := <-largest; n != 1 {
			t.Errorf("a batch of %d", n)
		}
	}
	stop()
	all.Wait()
	if together.Load() {
		t.Error("somebody else ran beside a suspect")
	}
}

// The broker hands everything out again after a session was lost, although no process has ended.
func TestSessionLossMakesNobodyGuilty(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s, c := transfer(func(context.Context, *messaging.Message) error {
		<-release
		return nil
	})
	starts := newNotebook()
	c.Starts = starts
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	s.URLs = []string{proxy.URL(env.AMQPURL)}
	f := startOn(t, env, s, c)
	f.becomesReady()
	for i := range 10 {
		f.publishBody(debited, body(fmt.Sprint(i)))
	}
	f.next()
	proxy.Cut()
	f.becomesReady()
	close(release)
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	f.stop()
	if len(starts.starts) != 0 {
		t.Errorf("%d starts have no end", len(starts.starts))
	}
}

func TestStopExcusesWhatItGivesBack(t *testing.T) {
	t.Parallel()
	s, c := account(func(ctx context.Context, m *messaging.Message) error {
		if m.MessageID == "failed" {
			return errors.New("later")
		}
		<-ctx.Done()
		return ctx.Err()
	}, time.Hour)
	starts := newNotebook()
	c.Starts, c.Concurrency, c.BatchSize, c.Grace = starts, 1, 1, time.Second
	f := start(t, s, c)
	ids := []string{"failed", "running", "waiting-1", "waiting-2"}
	for _, id := range ids {
		f.publishBody(requested, body(id))
	}
	f.next()
	f.next()
	f.eventually("the prefetch", func() error {
		if ready, _ := f.env.QueueDepth(t, requestQueue); ready != 0 {
			return fmt.Errorf("%d ready", ready)
		}
		return nil
	})
	f.stop()
	for _, id := range ids {
		if !starts.excused[sha256.Sum256([]byte(body(id)))] {
			t.Errorf("%s is not excused", id)
		}
	}
}

func TestStopDoesNotWaitForNotesThatCannotBeTaken(t *testing.T) {
	t.Parallel()
	s, c := account(func(context.Context, *messaging.Message) error { return errors.New("later") }, time.Hour)
	starts := newNotebook()
	starts.away.Store(true)
	starts.hangs = true
	c.Starts = starts
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	f.next()
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if m := f.take(requestQueue); !m.Redelivered {
		t.Error("the message was not given back")
	}
}
