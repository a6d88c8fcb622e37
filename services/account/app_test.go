package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"
)

// Twenty lives, each with work done, leave no goroutine behind. It does not run beside other tests, whose goroutines it would count.
func TestStartAndStopLeavesNothing(t *testing.T) {
	env := testenv.New(t)
	b := bankAt(t, env.Database(t, "account"))
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	before := goleak.IgnoreCurrent()
	for range 20 {
		liveOnce(t, env, b, newTransfer(from, to, 1))
		testenv.NoneLeft(t, before)
	}
	b.expectBalance(t, from, 80)
	expectInvariants(t, b.pool)
}

// liveOnce starts the service, lets it debit, and stops it.
func liveOnce(t *testing.T, env *testenv.Env, b *bank, tr transfer) {
	t.Helper()
	i := startReady(t, env, b.url)
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	wireOn(t, conn).request(t, ledger.Requested, tr, 2)
	b.awaitLeg(t, tr)
	b.awaitSent(t)
	i.stop(t)
	i.client.CloseIdleConnections()
}

func TestServersMissingAtStart(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	database, broker := testenv.NewProxy(t, url), testenv.NewProxy(t, env.AMQPURL)
	database.Refuse()
	broker.Refuse()
	i := start(t, "DATABASE_URL="+database.URL(url), "AMQP_URL="+broker.URL(env.AMQPURL))

	checks := func() map[string]string {
		return answered[struct{ Checks map[string]string }](t, i.get(t, "/readyz"), http.StatusServiceUnavailable).Checks
	}
	if got := checks(); got["database"] == "ok" || got["broker"] == "ok" {
		t.Errorf("checks %v", got)
	}
	if got := i.get(t, "/healthz"); got.status != http.StatusOK {
		t.Errorf("alive: %d", got.status)
	}
	a := i.get(t, "/accounts")
	answered[service.Problem](t, a, http.StatusServiceUnavailable)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}

	database.Accept()
	await(t, "the database to be used", func() bool { return i.get(t, "/accounts").status == http.StatusOK })
	if got := checks(); got["database"] != "ok" || got["broker"] == "ok" {
		t.Errorf("checks %v", got)
	}
	broker.Accept()
	i.awaitReady(t)
}

// A fault of either server while running is said by /readyz, and over by itself.
func TestServersAwayWhileRunning(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	database, broker := testenv.NewProxy(t, url), testenv.NewProxy(t, env.AMQPURL)
	b := bankAt(t, url)
	i := start(t, "DATABASE_URL="+database.URL(url), "AMQP_URL="+broker.URL(env.AMQPURL), "RETRY_INTERVALS=100ms,100ms,30s")
	i.awaitReady(t)
	w := newWire(t, env)
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	for name, proxy := range map[string]*testenv.Proxy{"database": database, "broker": broker} {
		proxy.Refuse()
		proxy.Cut()
		await(t, name+" to be missed", func() bool {
			a := i.get(t, "/readyz")
			return a.status == http.StatusServiceUnavailable &&
				answered[struct{ Checks map[string]string }](t, a, a.status).Checks[name] != "ok"
		})
		tr := newTransfer(from, to, 1)
		w.request(t, ledger.Requested, tr, 2)
		proxy.Accept()
		i.awaitReady(t)
		b.awaitLeg(t, tr)
		b.awaitSent(t)
	}
	b.expectBalance(t, from, 98)
	if ready, _ := env.QueueDepth(t, contract.ErrorQueue(contract.TransferRequestedQueue)); ready != 0 {
		t.Errorf("%d messages were given up", ready)
	}
}

// A queue that somebody declared otherwise ends the start with exit code 3 and in words that name it.
func TestQueueDeclaredOtherwise(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.QueueDeclare(contract.CreditRequestedQueue, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		t.Fatal(err)
	}
	cfg, err := service.Load[config]([]string{"HTTP_ADDR=127.0.0.1:0", "AMQP_URL=" + env.AMQPURL, "DATABASE_URL=" + env.Database(t, "account")}, defaults)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err = run(ctx, cfg, slog.New(slog.DiscardHandler))
	var coded interface{ ExitCode() int }
	if !errors.As(err, &coded) || coded.ExitCode() != 3 || !strings.Contains(err.Error(), contract.CreditRequestedQueue) {
		t.Errorf("ended with %v", err)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	required := []string{"DATABASE_URL=postgres://localhost/x", "AMQP_URL=amqp://localhost"}
	cfg, err := service.Load[config](required, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.HTTPAddr != "127.0.0.1:8081" || cfg.policy().MaxAttempts != 4 || len(cfg.policy().Delays) != 3 {
		t.Errorf("defaults %+v", cfg)
	}
	page, err := os.ReadFile("../../docs/reference/failure-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	waits := strings.ReplaceAll(strings.Trim(fmt.Sprint(cfg.RetryIntervals), "[]"), " ", ", ")
	if want := fmt.Sprintf("| account | %s | %d |", waits, cfg.policy().MaxAttempts); !strings.Contains(string(page), want) {
		t.Errorf("the reference page does not say %s", want)
	}
	for _, wrong := range []string{"1s,x", "-1s", "0s", "1s,0s", "999us", "1h", "15m,15m", "1s,,2s", strings.Repeat("1ms,", 99) + "1ms"} {
		_, err := service.Load[config](append(required, "RETRY_INTERVALS="+wrong), defaults)
		if err == nil || !strings.Contains(err.Error(), "RETRY_INTERVALS") {
			t.Errorf("RETRY_INTERVALS=%s: %v", wrong, err)
		}
	}
}
