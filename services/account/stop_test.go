package main

import (
	"net/http"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
)

// A service that is told to stop while its database hangs, with a request, a batch and the relay all waiting for an answer, still ends
// cleanly within its grace: the orchestrator kills what does not, and reads the exit code as a fault.
func TestStopWithADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	database := testenv.NewProxy(t, url)
	b := bankAt(t, url)
	const grace = 6 * time.Second
	i := start(t, "DATABASE_URL="+database.URL(url), "AMQP_URL="+env.AMQPURL, "SHUTDOWN_GRACE="+grace.String())
	i.awaitReady(t)
	w := newWire(t, env)
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)

	database.Pause()
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get(i.url + "/accounts")
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	w.request(t, ledger.Requested, newTransfer(from, to, 1), 1)
	await(t, "a request and a batch to wait for the database", func() bool {
		ready, _ := env.QueueDepth(t, contract.TransferRequestedQueue)
		return ready == 0 && i.metric(t, "http_requests_running") == 2 // that call is one itself
	})

	began := time.Now()
	i.stop(t)
	if took := time.Since(began); took > killedAfter(grace) {
		t.Errorf("stopping took %s with a grace of %s", took, grace)
	}
	if status := <-answered; status != http.StatusServiceUnavailable {
		t.Errorf("the waiting call was answered with %d", status)
	}
	if ready, _ := env.QueueDepth(t, contract.ErrorQueue(contract.TransferRequestedQueue)); ready != 0 {
		t.Error("the waiting message was given up instead of given back")
	}
}

// The same while the service still waits for its schema.
func TestStopWithADatabaseThatHasNeverAnswered(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	database := testenv.NewProxy(t, url)
	database.Pause()
	const grace = 3 * time.Second
	i := start(t, "DATABASE_URL="+database.URL(url), "AMQP_URL="+env.AMQPURL, "SHUTDOWN_GRACE="+grace.String())
	if alive := i.get(t, "/healthz"); alive.status != http.StatusOK {
		t.Errorf("alive: %d", alive.status)
	}
	began := time.Now()
	i.stop(t)
	if took := time.Since(began); took > killedAfter(grace) {
		t.Errorf("stopping took %s with a grace of %s", took, grace)
	}
}

// killedAfter is how long the orchestrator of a service with this grace waits before it kills: the composition's waits a third longer.
func killedAfter(grace time.Duration) time.Duration { return grace * 4 / 3 }
