package messaging_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
)

// So many messages fail for a reason of their own that they open the breaker, and are half of what the consumer may hold. The good
// ones behind them must not wait for their end, and no loss of a channel may take attempts from them.
func TestGoodMessagesFlowBehindPoisonThatOpensTheBreaker(t *testing.T) {
	t.Parallel()
	const good, attempts = 20, 4
	for _, c := range []struct {
		queues          messaging.QueueType
		poison          int
		prefetch, batch int
		cut             bool
	}{
		{queues: messaging.Quorum, poison: 10, prefetch: 20, batch: 10},
		{queues: messaging.Quorum, poison: 5, prefetch: 10, batch: 1, cut: true},
		{queues: messaging.Classic, poison: 10, prefetch: 20, batch: 10, cut: true},
		{queues: messaging.Classic, poison: 5, prefetch: 10, batch: 1},
	} {
		t.Run(fmt.Sprintf("%s queue, %d of %d, batches of %d, cut %v", c.queues, c.poison, c.prefetch, c.batch, c.cut), func(t *testing.T) {
			t.Parallel()
			s, consumer := account(func(_ context.Context, m *messaging.Message) error {
				if strings.HasPrefix(m.MessageID, "poison") {
					return errOdd
				}
				return nil
			}, time.Millisecond, time.Millisecond, time.Millisecond)
			s.Topology = topology.Account(c.queues)
			consumer.Prefetch, consumer.BatchSize, consumer.Concurrency, consumer.BatchWait = c.prefetch, c.batch, 1, 200*time.Millisecond
			consumer.Breaker = &retry.BreakerConfig{OpenFor: 200 * time.Millisecond, OpenMax: 200 * time.Millisecond}
			consumer.Probe, consumer.Starts = (&dependency{}).probe, newNotebook()
			env := testenv.New(t)
			before := startOn(t, env, s, messaging.ConsumerConfig{})
			for i := range c.poison {
				before.publishBody(requested, body(fmt.Sprint("poison-", i)))
			}
			for i := range good {
				before.publishBody(requested, body(fmt.Sprint("good-", i)))
			}
			before.stop()

			proxy := testenv.NewProxy(t, env.AMQPURL)
			s.URLs = []string{proxy.URL(env.AMQPURL)}
			f := startOn(t, env, s, consumer)
			f.paused()
			f.eventually("the copies", func() error { // and what was given back as it is: all that it held
				if n := f.givenBack(); n < float64(c.prefetch) {
					return fmt.Errorf("%v messages have been given back", n)
				}
				return nil
			})
			f.consumers(requestQueue, 0)
			if c.cut {
				proxy.Cut()
			}
			tries := map[string]int{}
			for succeeded := 0; succeeded < good; {
				m := f.next()
				if strings.HasPrefix(m.MessageID, "good") {
					succeeded++
					continue
				}
				if tries[m.MessageID]++; tries[m.MessageID] > 2 {
					t.Errorf("%s is at attempt %d, and %d good messages wait", m.MessageID, m.Attempt, good-succeeded)
				}
			}
			copies, given := 0, map[string]bool{}
			for len(given) < c.poison {
				d := f.take(errorQueue)
				f.checkQuarantined(d, "account", requestQueue, attempts, retry.ReasonMaxAttempts, retry.Unknown)
				given[string(d.Body)] = true
				copies++
			}
			f.empty(requestQueue, errorQueue)
			f.stop()
			close(f.handled)
			executed := 0
			for m := range f.handled {
				if strings.HasPrefix(m.MessageID, "poison") {
					executed++
				}
			}
			for _, n := range tries {
				executed += n
			}
			// The loss of a channel may come between a confirm and an ack, and then there are two; and when one is under way.
			if spare := executed - attempts*copies; spare > 1 || spare != 0 && !c.cut || executed < attempts*c.poison {
				t.Errorf("%d executions of %d messages that are in quarantine %d times", executed, c.poison, copies)
			}
		})
	}
}

// givenBack is how many deliveries the consumer has given back, as they were or as copies.
func (f *fixture) givenBack() float64 {
	f.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.session.Metrics)
	families, err := registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == "messaging_deliveries_total" && label.GetValue() == "given_back" {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	f.Fatal("nobody counts what is given back")
	return 0
}
