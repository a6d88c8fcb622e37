package outbox

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
)

// An outage resets connections, which the client library reports as errors with AMQP codes of their own. One attempt is
// allowed here, so whatever is blamed on a row sets it aside for good.
func TestOutageOfARealBrokerBlamesNoRow(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	proxy := testenv.NewProxy(t, env.AMQPURL)
	pool := connect(t, env.Database(t, "outbox"))
	session := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{proxy.URL(env.AMQPURL)}, Name: "account", Logger: slog.New(slog.DiscardHandler), ReconnectMax: 200 * time.Millisecond,
		Topology: messaging.Topology{
			Exchanges: []messaging.Exchange{{Name: contract.EventsExchange, Kind: "topic"}},
			Queues:    []messaging.Queue{messaging.NewQueue("readers", messaging.Quorum)},
			Bindings:  []messaging.Binding{{Queue: "readers", Exchange: contract.EventsExchange, Key: "#"}},
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- session.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("session: %v", err)
		}
	})
	eventually(t, "connected", func() bool { return session.Ready(t.Context()) == nil })

	underWay := make(chan struct{}, 1)
	var failures atomic.Int64
	publisher := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		select {
		case underWay <- struct{}{}:
		default:
		}
		outcomes, err := session.Publish(ctx, batch)
		if err != nil {
			failures.Add(1)
		}
		return outcomes, err
	})
	proxy.Pause() // nothing arrives, so the first batch is under way when the connection is reset
	o := start(t, Config{Pool: pool, Publisher: publisher, Poll: 20 * time.Millisecond, PublishTimeout: 500 * time.Millisecond,
		BatchSize: 16, MaxAttempts: 1})
	const rows = 100
	send(t, o, newMessages(t, rows)...)
	<-underWay
	proxy.Refuse()
	proxy.Cut()
	proxy.Resume()
	eventually(t, "several failures", func() bool { return failures.Load() >= 4 })
	if n := rowCount(t, pool, "attempts = 0 and set_aside_at is null"); n != rows {
		t.Errorf("%d of %d rows wait without blame", n, rows)
	}
	proxy.Accept()
	awaitEmpty(t, pool)
	if ready, _ := env.QueueDepth(t, "readers"); ready < rows {
		t.Errorf("%d of %d messages arrived", ready, rows)
	}
}
