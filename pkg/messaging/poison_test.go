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
			consumer.Breaker = &retry.BreakerConfig{OpenFor: 500 * time.Millisecond, OpenMax: 500 * time.Millisecond}
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
			f.eventually("nothing to be held", func() error {
				if _, unacked := env.QueueDepth(t, requestQueue); unacked != 0 {
					return fmt.Errorf("%d are", unacked)
				}
				return nil
			})
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
			quarantined := map[string]bool{}
			for range c.poison {
				d := f.take(errorQueue)
				f.checkQuarantined(d, "account", requestQueue, attempts, retry.ReasonMaxAttempts, retry.Unknown)
				if quarantined[string(d.Body)] {
					t.Errorf("%s is in quarantine twice", d.Body)
				}
				quarantined[string(d.Body)] = true
			}
			f.empty(requestQueue, errorQueue)
			f.stop()
			close(f.handled)
			for m := range f.handled {
				tries[m.MessageID]++
			}
			executed := 0
			for _, n := range tries {
				executed += n
			}
			most := attempts * c.poison
			if c.cut {
				most++ // the one that was under way, if the breaker was half-open by then
			}
			if executed < attempts*c.poison || executed > most {
				t.Errorf("%d executions of %d messages", executed, c.poison)
			}
		})
	}
}
