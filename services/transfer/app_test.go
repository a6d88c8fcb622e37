package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"go.uber.org/goleak"
)

// Not parallel: it counts the goroutines of the process. Tests that are parallel wait until it is done.
func TestStartingAndStoppingLeavesNothingBehind(t *testing.T) {
	b := newBank(t)
	before := goleak.IgnoreCurrent()
	for range 20 {
		url, stop := b.replica()
		b.url = url
		b.awaitReady()
		response, err := http.Post(url+"/transfers", "application/json", strings.NewReader(newOrder().body()))
		b.must(err)
		if read(t, response).StatusCode != http.StatusAccepted {
			t.Fatalf("answer %d", response.StatusCode)
		}
		http.DefaultClient.CloseIdleConnections()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	testenv.NoneLeft(t, before)
	if n := b.count(`select count(*) from transfers`); n != 20 {
		t.Errorf("%d transfers, want 20", n)
	}
}

// Replicas that start at once on an empty database all come up, and share the work.
func TestReplicasStartTogether(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	var urls []string
	for range 3 {
		url, _ := b.replica()
		urls = append(urls, url)
	}
	b.client = http.DefaultClient
	var accepted []transferView
	for _, url := range urls {
		b.url = url
		b.awaitReady()
		accepted = append(accepted, b.request(newOrder()))
	}
	for _, transfer := range accepted {
		b.twice(tells(transfer, contract.AccountDebited))
		b.awaitSent(transfer.ID, 2) // three consumers: told both at once, one might hear of the credit first
		b.twice(tells(transfer, contract.AccountCredited))
	}
	for _, transfer := range accepted {
		b.awaitStatus(transfer.ID, "COMPLETED")
		want := []string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferCompleted}
		got := b.awaitSent(transfer.ID, 3)
		types := make([]string, 0, 3)
		for _, m := range got {
			types = append(types, m.Type)
		}
		slices.Sort(types) // three relays share the sending, so the order is nobody's
		slices.Sort(want)
		if !slices.Equal(types, want) {
			t.Errorf("sent %v, want %v", types, want)
		}
	}
}

func TestSweeperRunsInTheService(t *testing.T) {
	t.Parallel()
	b := startBank(t, "SAGA_TIMEOUT=1s")
	accepted := b.request(newOrder())
	got := b.awaitStatus(accepted.ID, "REFUNDING")
	if pointee(got.Reason) != contract.TimedOut || got.UpdatedAt.Sub(got.CreatedAt).Seconds() < 1 {
		t.Errorf("turned back for %q after %s", pointee(got.Reason), got.UpdatedAt.Sub(got.CreatedAt))
	}
	refund := b.awaitSent(accepted.ID, 2)[1]
	if refund.Type != contract.TransferRefundRequested || !strings.Contains(string(refund.Data), `"reason":"TIMEOUT"`) {
		t.Errorf("sent %s %s", refund.Type, refund.Data)
	}
	cancelled := tells(accepted, contract.AccountDebitRejected)
	cancelled.Data = strings.Replace(cancelled.Data, "INSUFFICIENT_FUNDS", contract.Cancelled, 1)
	b.twice(cancelled)
	b.awaitStatus(accepted.ID, "REJECTED")
	b.awaitSent(accepted.ID, 3)
	b.settled()
	b.nothingParked()
}

func TestEveryWrongVariableIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := service.Load[config]([]string{
		"HTTP_ADDR=nowhere", "AMQP_URL=http://x", "RETRY_DELAY=0s", "MAX_ATTEMPTS=0", "SAGA_TIMEOUT=-1s", "BATCH_SIZE=many",
		"RETRY_PROFILE=Tiered", "RETRY_TIERS=5s,1s", "RETRY_JITTER=1",
	}, defaults)
	var wrong *service.ConfigError
	if !errors.As(err, &wrong) {
		t.Fatalf("error is %v", err)
	}
	for _, name := range []string{"HTTP_ADDR", "DATABASE_URL", "AMQP_URL", "RETRY_DELAY", "MAX_ATTEMPTS", "SAGA_TIMEOUT", "BATCH_SIZE", "RETRY_PROFILE", "RETRY_TIERS", "RETRY_JITTER"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in %v", name, err)
		}
	}
}

func TestSagaTimeoutIsBounded(t *testing.T) {
	t.Parallel()
	for value, ok := range map[string]bool{"0": true, "8760h": true, "8760h1ms": false, "500000h": false, "-1s": false, "1us": false} {
		_, err := service.Load[config]([]string{"DATABASE_URL=postgres://h/d", "AMQP_URL=amqp://h", "SAGA_TIMEOUT=" + value}, defaults)
		if (err == nil) != ok {
			t.Errorf("SAGA_TIMEOUT=%s: %v", value, err)
		}
	}
}

func TestDefaultConfiguration(t *testing.T) {
	t.Parallel()
	cfg, err := service.Load[config]([]string{"DATABASE_URL=postgres://h/d", "AMQP_URL=amqp://h"}, defaults)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.HTTPAddr != "127.0.0.1:8082" || cfg.RetryDelay.String() != "5s" || cfg.RetryProfile != "lap" || cfg.policy().MaxAttempts != 3 || cfg.SagaTimeout.String() != "15m0s" {
		t.Errorf("defaults are %+v", cfg)
	}
}

// load is the configuration with the settings beside what is required.
func load(settings ...string) (config, error) {
	return service.Load[config](append([]string{"DATABASE_URL=postgres://h/d", "AMQP_URL=amqp://h"}, settings...), defaults)
}

func TestRetryProfilesHaveTheirOwnAttempts(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]struct {
		attempts int
		delays   string
	}{
		"":                                     {3, "[5s]"},
		"RETRY_PROFILE=lap":                    {3, "[5s]"},
		"RETRY_PROFILE=lap MAX_ATTEMPTS=4":     {4, "[5s]"},
		"RETRY_PROFILE=tiered":                 {5, "[5s 30s 5m0s]"},
		"RETRY_PROFILE=tiered MAX_ATTEMPTS=":   {5, "[5s 30s 5m0s]"},
		"RETRY_PROFILE=tiered MAX_ATTEMPTS=3":  {3, "[5s 30s 5m0s]"},
		"RETRY_PROFILE=tiered RETRY_TIERS=10s": {5, "[10s]"},
	} {
		cfg, err := load(strings.Fields(settings)...)
		if err != nil {
			t.Errorf("%q: %v", settings, err)
			continue
		}
		if p := cfg.policy(); p.MaxAttempts != want.attempts || fmt.Sprint(p.Delays) != want.delays || p.Jitter != 0 {
			t.Errorf("%q: %+v, want %+v", settings, p, want)
		}
		lapping := cfg.RetryProfile == "lap"
		if road := cfg.road(); (road.RetryQueue == "") == lapping || (len(road.Tiers) == 0) != lapping {
			t.Errorf("%q: %+v", settings, road)
		}
	}
}

func TestWrongRetrySettingsSayWhatIsWanted(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		"RETRY_PROFILE=LAP":  `RETRY_PROFILE="LAP": wanted lap or tiered`,
		"RETRY_TIERS=0s":     "1 to 10 durations from 1ms to 24h",
		"RETRY_TIERS=1500us": "in whole milliseconds",
		"RETRY_TIERS=25h":    "from 1ms to 24h",
		"RETRY_TIERS=5s,5s":  "each longer than the one before",
		"RETRY_TIERS=30s,5s": "each longer than the one before",
		"RETRY_TIERS=5,30":   "durations separated by commas",
		"RETRY_TIERS=5s,":    "durations separated by commas",
		"RETRY_TIERS=1s,2s,3s,4s,5s,6s,7s,8s,9s,10s,11s": "1 to 10 durations",
		"RETRY_JITTER=-0.1":                   `RETRY_JITTER="-0.1": wanted a number from 0 to 0.9`,
		"RETRY_JITTER=1":                      "a number from 0 to 0.9",
		"RETRY_JITTER=NaN":                    "a number from 0 to 0.9",
		"RETRY_JITTER=20%":                    "a number",
		"MAX_ATTEMPTS=0":                      "1 to 100",
		"MAX_ATTEMPTS=101":                    "1 to 100",
		"MAX_ATTEMPTS=many":                   `MAX_ATTEMPTS="many": wanted a whole number`,
		"RETRY_PROFILE=tiered MAX_ATTEMPTS=0": "1 to 100",
		"RETRY_PROFILE=lap RETRY_TIERS=now":   "durations separated by commas",
	} {
		if _, err := load(strings.Fields(settings)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		}
	}
	for _, settings := range []string{"RETRY_TIERS=1ms", "RETRY_TIERS=1s,24h", "RETRY_JITTER=0", "RETRY_JITTER=0.9", "MAX_ATTEMPTS=1", "MAX_ATTEMPTS=100"} {
		if _, err := load(settings); err != nil {
			t.Errorf("%s: %v", settings, err)
		}
	}
}

// The reference page says what an operator who changes nothing gets.
func TestReferencePageHasTheDefaults(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/failure-policy.md")
	if err != nil {
		t.Fatal(err)
	}
	lapping, err := load()
	if err != nil {
		t.Fatal(err)
	}
	rising, err := load("RETRY_PROFILE=tiered")
	if err != nil {
		t.Fatal(err)
	}
	short := func(d time.Duration) string {
		return strings.TrimPrefix(contract.RetryTierQueue(d), contract.AccountEventsRetry+".")
	}
	var waits, boxes []string
	for _, delay := range rising.RetryTiers {
		waits = append(waits, short(delay))
	}
	for _, tier := range rising.road().Tiers {
		box := strings.ReplaceAll(strings.Join(tier.Queues, " · "), contract.AccountEventsRetry, "")
		boxes = append(boxes, fmt.Sprintf(`[".retry%s"]`, box))
	}
	last := waits[len(waits)-1]
	for _, want := range append(boxes,
		fmt.Sprintf("| transfer, `lap` | %s each | %d |", short(lapping.RetryDelay), lapping.policy().MaxAttempts),
		fmt.Sprintf("| transfer, `tiered` | %s and then %s each, spread by ±%.0f %% | %d |", strings.Join(waits, ", "), last, 100*rising.RetryJitter, rising.policy().MaxAttempts),
	) {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page does not say %s", want)
		}
	}
}
