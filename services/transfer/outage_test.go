package main

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service/openapitest"
)

// With the broker away transfers are accepted all the same; they go on when it is back.
func TestTransfersAreAcceptedWithoutTheBroker(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	broker := testenv.NewProxy(t, b.env.AMQPURL)
	b.start("AMQP_URL=" + broker.URL(b.env.AMQPURL))
	broker.Refuse()
	broker.Cut()
	var accepted []transferView
	for range 5 {
		began := time.Now()
		accepted = append(accepted, b.request(newOrder()))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the answer took %s", took)
		}
	}
	b.eventually("readyz is red", func() bool { return b.call(http.MethodGet, "/readyz", "").StatusCode == http.StatusServiceUnavailable })
	broker.Accept()
	for _, transfer := range accepted {
		b.awaitSent(transfer.ID, 1)
		b.twice(tells(transfer, contract.AccountDebited), tells(transfer, contract.AccountCredited))
	}
	for _, transfer := range accepted {
		b.awaitStatus(transfer.ID, "COMPLETED")
		if types := b.sent.types(transfer.ID); !slices.Contains(types, contract.TransferRequested) {
			t.Errorf("sent %v", types)
		}
	}
	b.awaitReady()
	b.nothingParked()
}

func TestReadinessSaysWhyNot(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.url, b.stop = b.replica("AMQP_URL=amqp://guest:guest@127.0.0.1:1/")
	b.client = &http.Client{Transport: openapitest.New(t, documented(t), nil)}
	b.eventually("transfers are accepted", func() bool { return b.call(http.MethodGet, "/transfers/summary", "").StatusCode == http.StatusOK })
	a := b.call(http.MethodGet, "/readyz", "")
	if a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(a.body), `"broker"`) || !strings.Contains(string(a.body), `"database":"ok"`) {
		t.Errorf("readyz answers %d %s", a.StatusCode, a.body)
	}
}

// With the database away, whether it refuses or just says nothing, every call gets its 503 within ten seconds, and afterwards
// all is as before. Events wait in their queue meanwhile. A transfer that may have been stored without an answer is not to be asked for
// again, unless it has a key.
func TestCallsAreRefusedWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ break_, mend func(*testenv.Proxy) }{
		"refusing": {func(p *testenv.Proxy) { p.Refuse(); p.Cut() }, (*testenv.Proxy).Accept},
		"silent":   {(*testenv.Proxy).Pause, (*testenv.Proxy).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBank(t)
			database := testenv.NewProxy(t, b.database)
			b.start("DATABASE_URL=" + database.URL(b.database))
			accepted := b.request(newOrder())
			b.awaitSent(accepted.ID, 1)
			c.break_(database)
			for _, call := range [][]string{
				{http.MethodPost, "/transfers", newOrder().body()},
				{http.MethodPost, "/transfers", newOrder().body(), "Idempotency-Key: again"},
				{http.MethodGet, "/transfers", ""},
				{http.MethodGet, "/transfers/summary", ""},
				{http.MethodGet, "/transfers/" + accepted.ID.String(), ""},
			} {
				began := time.Now()
				a := b.call(call[0], call[1], call[2], call[3:]...)
				b.problemOf(a, http.StatusServiceUnavailable)
				if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || seconds < 1 {
					t.Errorf("Retry-After is %q", a.Header.Get("Retry-After"))
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%s %s took %s", call[0], call[1], took)
				}
				harmless := call[0] == http.MethodGet || len(call) > 3
				if again := strings.Contains(string(a.body), "the same call may be made again"); harmless && !again || name == "silent" && again != harmless {
					t.Errorf("%s answers %s", call, a.body)
				}
			}
			b.publish(tells(accepted, contract.AccountDebited))
			c.mend(database)
			b.awaitReady()
			b.awaitStatus(accepted.ID, "DEBITED")
			b.settled()
			b.nothingParked()
		})
	}
}

// The database is away for a while with a thousand events in the queue. The service stops taking them, so that not one attempt
// is spent (the first would be the last here), and takes them all soon after it is back. Nobody helps.
func TestEventsWaitOutTheDatabase(t *testing.T) {
	t.Parallel()
	const transfers = 250 // two events of each, and each twice
	b := newBank(t)
	database := testenv.NewProxy(t, b.database)
	b.start("DATABASE_URL="+database.URL(b.database), "MAX_ATTEMPTS=1")
	var accepted []transferView
	for range transfers {
		accepted = append(accepted, b.request(newOrder()))
	}
	b.awaitSent(accepted[transfers-1].ID, 1)
	database.Refuse()
	database.Cut()
	for _, transfer := range accepted {
		b.twice(tells(transfer, contract.AccountDebited), tells(transfer, contract.AccountCredited))
	}
	b.eventually("the service takes nothing", func() bool {
		queue, err := b.broker.QueueDeclarePassive(contract.AccountEventsQueue, true, false, false, false, nil)
		b.must(err)
		return queue.Consumers == 0 && queue.Messages == 4*transfers
	})
	a := b.call(http.MethodGet, "/readyz", "")
	if a.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "breaker is open") {
		t.Errorf("readyz answers %d %s", a.StatusCode, a.body)
	}
	began := time.Now()
	database.Accept()
	b.eventually("all transfers are completed", func() bool {
		return b.count("select count(*) from transfers where status = 'COMPLETED'") == transfers
	})
	t.Logf("%d events were done %v after the database was back", 4*transfers, time.Since(began).Round(time.Millisecond))
	b.awaitReady()
	b.settled()
	b.nothingParked()
}

// A broker that cuts its connections in the middle of the traffic costs time and nothing else.
func TestBrokerCutsConnections(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	broker := testenv.NewProxy(t, b.env.AMQPURL)
	b.start("AMQP_URL="+broker.URL(b.env.AMQPURL), "RETRY_DELAY=200ms")
	var accepted []transferView
	for i := range 40 {
		transfer := b.request(newOrder())
		accepted = append(accepted, transfer)
		b.twice(tells(transfer, contract.AccountDebited), tells(transfer, contract.AccountCredited))
		if i%10 == 9 {
			broker.Cut()
		}
	}
	for _, transfer := range accepted {
		b.awaitStatus(transfer.ID, "COMPLETED")
		b.eventually("all its messages are sent", func() bool { return slices.Contains(b.sent.types(transfer.ID), contract.TransferCompleted) })
	}
	b.settled()
	b.nothingParked()
}
