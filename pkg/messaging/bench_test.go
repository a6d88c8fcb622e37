package messaging_test

import (
	"context"
	"fmt"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
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
