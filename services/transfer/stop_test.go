package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
)

// A service that is told to stop while its database hangs, with a call, an event, the sweeper and the relay all waiting for an answer,
// still ends cleanly within its grace.
func TestStopWithADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	database := testenv.NewProxy(t, b.database)
	const grace = 6 * time.Second
	b.start("DATABASE_URL="+database.URL(b.database), "SHUTDOWN_GRACE="+grace.String(), "SAGA_TIMEOUT=1s")
	accepted := b.request(newOrder())
	b.awaitSent(accepted.ID, 1)

	database.Pause()
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get(b.url + "/transfers")
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	b.publish(tells(accepted, contract.AccountDebited))
	b.eventually("a call and an event wait for the database", func() bool {
		ready, _ := b.env.QueueDepth(t, contract.AccountEventsQueue)
		asking := string(b.call(http.MethodGet, "/metrics", "").body) // counts itself
		return ready == 0 && strings.Contains(asking, "\nhttp_requests_running 2\n")
	})

	began := time.Now()
	if err := b.stop(); err != nil {
		t.Errorf("stopped with %v", err)
	}
	if took := time.Since(began); took > killedAfter(grace) {
		t.Errorf("stopping took %s with a grace of %s", took, grace)
	}
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("the waiting call was answered with %d", status)
	}
	b.eventually("the event is given back", func() bool {
		ready, _ := b.env.QueueDepth(t, contract.AccountEventsQueue)
		return ready == 1
	})
	b.nothingParked()
}

// killedAfter is how long the orchestrator of a service with this grace waits before it kills: the composition's waits a third longer.
func killedAfter(grace time.Duration) time.Duration { return grace * 4 / 3 }
