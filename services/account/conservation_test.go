package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/banking/services/account/ledger"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestConservationIsMeasured(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	from, to := b.open(t, "EUR", 1000), b.open(t, "EUR", 0)
	b.open(t, "USD", 5)
	var logged strings.Builder
	registry := prometheus.NewRegistry()
	c := newConservation(b.store, registry, slog.New(slog.NewTextHandler(&logged, nil)))
	looks := func(what, want string) {
		t.Helper()
		if err := c.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		const head = "# HELP ledger_imbalance_minor Sum of customers, transit and funding in minor units, at the last look; anything but 0 is an error.\n" +
			"# TYPE ledger_imbalance_minor gauge\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(head+want), "ledger_imbalance_minor"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	const even = `ledger_imbalance_minor{currency="EUR"} 0
ledger_imbalance_minor{currency="USD"} 0
`
	looks("at rest", even)
	tr := newTransfer(from, to, 400)
	b.ask(t, ledger.Requested, tr)
	looks("with money in transit", even)
	b.ask(t, ledger.CreditRequested, tr)
	looks("when it has arrived", even)
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
	if _, err := b.pool.Exec(t.Context(), `update accounts set balance_minor = balance_minor - 7 where id = $1`, to); err != nil {
		t.Fatal(err)
	}
	looks("with money gone", `ledger_imbalance_minor{currency="EUR"} -7
ledger_imbalance_minor{currency="USD"} 0
`)
	if text := logged.String(); !strings.Contains(text, "money is not conserved") || !strings.Contains(text, "currency=EUR sum_minor=-7") {
		t.Errorf("logged: %s", text)
	}
	if at := testutil.ToFloat64(c.checked); time.Since(time.Unix(int64(at), 0)) > time.Hour {
		t.Errorf("checked at %v", at)
	}
}

// A ledger that cannot be read must not look like one that is in order.
func TestConservationSaysWhenItCannotLook(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := newConservation(&store{}, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	c.interval = time.Millisecond
	looks := 0
	c.sums = func(context.Context) ([]currencySums, error) {
		if looks++; looks == 3 {
			cancel()
		}
		return nil, errors.New("database is away")
	}
	if err := c.run(ctx); err != nil || looks != 3 {
		t.Errorf("%d looks, %v", looks, err)
	}
	if at := testutil.ToFloat64(c.checked); at != 0 {
		t.Errorf("checked at %v", at)
	}
}

func TestConservationTakesATwentiethOfAConnection(t *testing.T) {
	t.Parallel()
	c := &conservation{interval: conservationInterval}
	for took, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: 30 * time.Second, 10 * time.Second: 200 * time.Second} {
		if got := c.pause(took); got != want {
			t.Errorf("after %v: %v, want %v", took, got, want)
		}
	}
}
