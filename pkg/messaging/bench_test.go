package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// BenchmarkPublishAndConsume sends messages in batches of 100 through the broker to a handler that does nothing.
func BenchmarkPublishAndConsume(b *testing.B) {
	env := testenv.New(b)
	session := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{env.AMQPURL}, Name: "bench", Topology: topology.Transfer(messaging.Quorum, lapDelay),
	})
	_, config := transfer(succeed)
	handled := make(chan struct{}, 1<<20)
	handler := config.Handler
	config.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		for range batch {
			handled <- struct{}{}
		}
		return handler(ctx, batch)
	}
	consumer, err := session.NewConsumer(config)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	consuming, stopConsuming := context.WithCancel(ctx)
	go func() { _ = session.Run(ctx) }()
	consumed := make(chan error, 1)
	go func() { consumed <- consumer.Run(consuming) }()
	const size = 100
	messages := make([]messaging.Publishing, size)
	for i := range messages {
		messages[i] = event(fmt.Sprint("m-", i))
	}
	b.ReportAllocs()
	b.ResetTimer()
	sent := 0
	for sent < b.N {
		n := min(size, b.N-sent)
		outcomes, err := session.Publish(ctx, messages[:n])
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range outcomes {
			if o != messaging.Acked {
				b.Fatal(o)
			}
		}
		sent += n
	}
	for range b.N {
		<-handled
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	stopConsuming()
	if err := <-consumed; err != nil {
		b.Error(err)
	}
	if ready, _ := env.QueueDepth(b, contract.AccountEventsQueue); ready != 0 {
		b.Errorf("%d messages are left", ready)
	}
}

// BenchmarkBehindPoison compares two consumers on the road in process, one of which holds a message that waits for its next attempt.
// Rounds of 100 messages alternate between them, and which of the two begins alternates too, so that whatever else the machine
// does, and whatever the one leaves to the other, falls on both. The ratio is that of their median throughputs, over at least
// 30,000 messages each; and the middle half of the ratios round by round says how far to believe it.
func BenchmarkBehindPoison(b *testing.B) {
	const size, rounds = 100, 300
	free, behind := benchAccount(b, ""), benchAccount(b, "poison")
	var without, with, ratios []float64 // the first two in messages per second
	round := func(behindFirst bool) {
		turns := []*benchConsumer{free, behind}
		if behindFirst {
			slices.Reverse(turns)
		}
		var rate [2]float64
		for _, c := range turns {
			n := size / c.take(b, size).Seconds()
			if c == free {
				rate[0] = n
			} else {
				rate[1] = n
			}
		}
		without, with, ratios = append(without, rate[0]), append(with, rate[1]), append(ratios, rate[1]/rate[0])
	}
	for b.Loop() {
		for i := range rounds {
			round(i%2 == 1)
		}
	}
	for _, all := range [][]float64{without, with, ratios} {
		slices.Sort(all)
	}
	median := func(sorted []float64) float64 { return sorted[len(sorted)/2] }
	b.ReportMetric(median(with)/median(without), "ratio")
	b.ReportMetric(ratios[len(ratios)/4], "ratio-p25")
	b.ReportMetric(ratios[3*len(ratios)/4], "ratio-p75")
	b.ReportMetric(median(with), "msg/s")
	b.ReportMetric(median(without), "msg/s-free")
}

// benchConsumer is a consumer with everything that a service switches on.
type benchConsumer struct {
	session *messaging.Session
	handled chan struct{}
	good    []messaging.Publishing
}

func benchAccount(b *testing.B, poison string) *benchConsumer {
	b.Helper()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == poison {
			return errors.New("later")
		}
		return nil
	}, 20*time.Minute)
	s.URLs, s.Logger = []string{testenv.New(b).AMQPURL}, slog.New(slog.DiscardHandler)
	c.Breaker, c.Budget, c.Starts = &retry.BreakerConfig{}, true, newNotebook()
	bench := &benchConsumer{session: messaging.NewSession(s), handled: make(chan struct{}, 1<<20)}
	answer := c.Handler
	c.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		defer func() {
			for range batch {
				bench.handled <- struct{}{}
			}
		}()
		return answer(ctx, batch)
	}
	consumer, err := bench.session.NewConsumer(c)
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = bench.session.Run(ctx) })
	running.Go(func() { _ = consumer.Run(ctx) })
	b.Cleanup(func() {
		stop()
		running.Wait()
	})
	publish := func(id string) messaging.Publishing {
		p := messaging.Publishing{Exchange: contract.EventsExchange, RoutingKey: requested, Mandatory: true}
		p.Body = []byte(body(id))
		return p
	}
	if poison != "" {
		bench.publish(b, publish(poison))
	}
	for i := range 100 {
		bench.good = append(bench.good, publish(fmt.Sprint(i)))
	}
	bench.take(b, 100) // warm
	return bench
}

func (c *benchConsumer) publish(b *testing.B, messages ...messaging.Publishing) {
	b.Helper()
	outcomes, err := c.session.Publish(b.Context(), messages)
	if err != nil || slices.ContainsFunc(outcomes, func(o messaging.Outcome) bool { return o != messaging.Acked }) {
		b.Fatal(outcomes, err)
	}
	if len(messages) == 1 {
		<-c.handled
	}
}

// take publishes messages and says how long it took until they were handled.
func (c *benchConsumer) take(b *testing.B, n int) time.Duration {
	b.Helper()
	began := time.Now()
	c.publish(b, c.good[:n]...)
	for range n {
		<-c.handled
	}
	return time.Since(began)
}
