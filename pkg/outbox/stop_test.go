package outbox

import (
	"context"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
)

// A database that hangs holds up the stop of the relay for its StopGrace and no longer, whether the batch under way is being claimed
// or settled.
func TestStopWithADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	const grace = 500 * time.Millisecond
	stopsSoon := func(t *testing.T, stop func()) {
		t.Helper()
		began := time.Now()
		stop()
		if took := time.Since(began); took > grace+2*time.Second { // the rest is for a busy machine
			t.Errorf("stopping took %s", took)
		}
	}

	t.Run("while claiming", func(t *testing.T) {
		t.Parallel()
		url := testenv.New(t).Database(t, "outbox")
		proxy := testenv.NewProxy(t, url)
		pool := connect(t, proxy.URL(url))
		o := newOutbox(Config{Pool: pool, Publisher: &broker{}, StopGrace: grace})
		stop := run(t, o)
		proxy.Pause()
		for range 2 { // more than the connection that the first sweep may still hold
			o.Wake()
		}
		eventually(t, "a claim has a connection", func() bool { return pool.Stat().AcquiredConns() > 0 })
		stopsSoon(t, stop)
	})

	t.Run("while settling", func(t *testing.T) {
		t.Parallel()
		url := testenv.New(t).Database(t, "outbox")
		proxy := testenv.NewProxy(t, url)
		published := make(chan struct{})
		hangs := publisherFunc(func(_ context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
			proxy.Pause()
			close(published)
			return ackAll(batch)
		})
		o := newOutbox(Config{Pool: connect(t, proxy.URL(url)), Publisher: hangs, StopGrace: grace})
		insert(t, o, newMessage(t, "sent"))
		stop := run(t, o) // its first sweep finds the message
		<-published
		stopsSoon(t, stop)
	})
}
