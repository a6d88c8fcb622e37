package messaging

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
)

// damped is dampers without a consumer, and what they log.
func damped(c ConsumerConfig) (*dampers, *strings.Builder) {
	var log strings.Builder
	return newDampers(c, NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.NewTextHandler(&log, nil))})), &log
}

// value is what a gauge of the dampers says at a time.
func (d *dampers) value(t *testing.T, m prometheus.Gauge, now time.Time) float64 {
	t.Helper()
	d.collect(now)
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// outcomes are deliveries that ended so.
func outcomes(n int, class retry.Class) (ds []*delivery) {
	for range n {
		d := &delivery{class: class}
		if class != "" {
			d.err = errors.New("failed")
		}
		ds = append(ds, d)
	}
	return ds
}

func TestBudgetNeverDelaysASingleRetry(t *testing.T) {
	t.Parallel()
	d, _ := damped(ConsumerConfig{Budget: true})
	now := time.Now()
	for range 1000 { // one retry for each ten messages that go well
		if n, _ := d.admit(now, 10); n != 10 {
			t.Fatalf("%d of 10 admitted", n)
		}
		d.record(now, outcomes(10, ""), false)
		d.spend(now, 1)
	}
}

func TestUsedUpBudgetPausesAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	d, log := damped(ConsumerConfig{Budget: true})
	now := time.Now()
	d.spend(now, 95)
	if n, _ := d.admit(now, 50); n != 5 {
		t.Errorf("%d admitted, more than there are tokens", n)
	}
	d.spend(now, 50)
	for range 3 {
		n, again := d.admit(now, 50)
		if n != 0 || !again.Equal(now.Add(10*time.Second)) {
			t.Errorf("%d admitted, again at %v", n, again.Sub(now))
		}
	}
	if paused, tokens := d.value(t, d.metrics.paused, now), d.value(t, d.metrics.tokens, now); paused != 1 || tokens != 0 {
		t.Errorf("paused %v, tokens %v", paused, tokens)
	}
	now = now.Add(10 * time.Second)
	if n, _ := d.admit(now, 50); n != 1 {
		t.Errorf("%d admitted after ten seconds", n)
	}
	for range 100 { // messages that go well earn more
		n, _ := d.admit(now, 50)
		d.record(now, outcomes(n, ""), false)
	}
	if n, _ := d.admit(now, 50); n != 50 {
		t.Errorf("%d admitted after the recovery", n)
	}
	if paused := d.value(t, d.metrics.paused, now); paused != 0 {
		t.Errorf("paused %v", paused)
	}
	if used, back := strings.Count(log.String(), "used up"), strings.Count(log.String(), "recovered"); used != 1 || back != 1 {
		t.Errorf("logged\n%s", log)
	}
}

func TestRateFallsOnRateLimitedAndRecovers(t *testing.T) {
	t.Parallel()
	d, log := damped(ConsumerConfig{RateLimit: 100})
	now := time.Now()
	started := func(d *dampers) (n int) { // within a second
		for end := now.Add(time.Second); now.Before(end); now = now.Add(10 * time.Millisecond) {
			admitted, _ := d.admit(now, 50)
			n += admitted
		}
		return n
	}
	started(d)
	if n := started(d); n < 95 || n > 105 {
		t.Errorf("%d started in a second, the limit is 100", n)
	}
	d.record(now, outcomes(20, retry.RateLimited), false)
	started(d)
	if n := started(d); n < 45 || n > 55 {
		t.Errorf("%d started in a second after RATE_LIMITED, want 50", n)
	}
	for range 9 {
		now = now.Add(time.Second)
		d.record(now, outcomes(1, ""), false)
	}
	if rate := d.value(t, d.metrics.rate, now); rate < 90 || strings.Contains(log.String(), "back at") {
		t.Errorf("the rate is %v after nine calm seconds\n%s", rate, log)
	}
	for range 2 {
		now = now.Add(time.Second)
		d.record(now, outcomes(1, ""), false)
	}
	if rate := d.value(t, d.metrics.rate, now); rate != 100 || strings.Count(log.String(), "asks for less") != 1 || strings.Count(log.String(), "back at its limit") != 1 {
		t.Errorf("the rate is %v\n%s", rate, log)
	}
}

func TestOnlyWhatMayBlameADependencyCounts(t *testing.T) {
	t.Parallel()
	for class, want := range map[retry.Class]retry.BreakerState{
		retry.Timeout: retry.Open, retry.RateLimited: retry.Open, retry.Unknown: retry.Open,
		retry.Validation: retry.Closed, retry.Invariant: retry.Closed, retry.NotFound: retry.Closed, retry.Conflict: retry.Closed, retry.Cancelled: retry.Closed, "": retry.Closed,
	} {
		d, _ := damped(ConsumerConfig{Breaker: &retry.BreakerConfig{}})
		now := time.Now()
		d.record(now, outcomes(5, class), false)
		if got, _ := d.breakerState(now); got != want {
			t.Errorf("after five %q it is %s", class, got)
		}
	}
	// A message that never reached its dependency says nothing about it, not even that it is well.
	d, _ := damped(ConsumerConfig{Breaker: &retry.BreakerConfig{}})
	now := time.Now()
	d.record(now, outcomes(4, retry.Timeout), false)
	d.record(now, outcomes(1, retry.Validation), false)
	d.record(now, outcomes(1, retry.Timeout), false)
	if got, _ := d.breakerState(now); got != retry.Open {
		t.Errorf("after five with a garbled one between them it is %s", got)
	}
}

// As many wait here as may while the breaker is closed: a half-open one tries a message all the same, or it would never close.
func TestHalfOpenBreakerTriesOneWhateverWaits(t *testing.T) {
	t.Parallel()
	c := &Consumer{ConsumerConfig: ConsumerConfig{Queue: mainQueue, Prefetch: 10}, metrics: NewMetrics().of(mainQueue)}
	a := &attachment{consumer: c}
	for !a.saturated() {
		a.wait(&delivery{due: time.Now().Add(time.Hour), verdict: retryHere})
	}
	if len(a.waiting) != 5 {
		t.Errorf("%d wait, half of the prefetch may", len(a.waiting))
	}
	if a.breaker = retry.HalfOpen; a.saturated() {
		t.Error("none is tried")
	}
}

// Anybody may ask /readyz. A panic's stack is in the log, and is neither shown there nor logged again with the breaker.
func TestCauseOfAnOpenBreakerIsOneLine(t *testing.T) {
	t.Parallel()
	d, log := damped(ConsumerConfig{Breaker: &retry.BreakerConfig{}})
	now := time.Now()
	ds := outcomes(30, retry.Unknown)
	for _, one := range ds {
		one.err = errors.New("panic: no such account\ngoroutine 7 [running]:\nledger.go:12")
	}
	d.record(now, ds, false)
	err := d.paused(now)
	if err == nil || !strings.HasSuffix(err.Error(), ": panic: no such account") {
		t.Errorf("paused: %v", err)
	}
	if text := log.String(); !strings.Contains(text, "panic: no such account") || strings.Contains(text, "goroutine") {
		t.Errorf("log: %s", text)
	}
}
