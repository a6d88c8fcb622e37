package messaging

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"example.com/banking/pkg/retry"
)

const (
	probeTimeout = 2 * time.Second
	probeEvery   = time.Second // while the breaker is open, and for how long an answer of "down" is believed
)

// dampers are what keeps one consumer from making the trouble of a dependency worse, or its own messages suffer for it: a
// breaker that stops it, a budget for its retries, and a limit to its rate. Each may be missing. They outlive the attachments,
// and everything here may be called by anybody.
type dampers struct {
	m       sync.Mutex
	breaker *retry.Breaker
	budget  *retry.Budget
	rate    *retry.RateLimit
	limit   float64 // of the rate, as configured

	probe   func(context.Context) error // is the dependency there; nil: cannot tell
	downAt  time.Time                   // when it was last found not to be
	opened  chan struct{}               // gets a token when the breaker opens
	changed chan struct{}               // when its state is another

	state   retry.BreakerState // as it was logged last
	cause   string             // the last failure that counted
	broke   bool               // the budget was used up, and has not recovered since
	slowed  bool               // the rate is below the configured limit
	metrics damperMetrics
	log     *slog.Logger
}

func newDampers(c ConsumerConfig, s *Session) *dampers {
	d := &dampers{probe: c.Probe, opened: make(chan struct{}, 1), changed: make(chan struct{}, 1), log: s.Logger.With("queue", c.Queue)}
	if c.Breaker != nil {
		d.breaker = retry.NewBreaker(*c.Breaker)
	}
	if c.Budget {
		d.budget = retry.NewBudget(retry.BudgetConfig{})
	}
	if c.RateLimit > 0 {
		d.rate, d.limit = retry.NewRateLimit(c.RateLimit), c.RateLimit
	}
	s.Metrics.damped(c.Queue, d)
	return d
}

// breakerState is the breaker's state at now, and when it ends by itself, if it does.
func (d *dampers) breakerState(now time.Time) (state retry.BreakerState, until time.Time) {
	if d.breaker == nil {
		return retry.Closed, time.Time{}
	}
	d.m.Lock()
	defer d.m.Unlock()
	return d.observe(now), d.breaker.RetryAt()
}

// observe is the breaker's state, and tells everybody when that is another than before.
func (d *dampers) observe(now time.Time) retry.BreakerState {
	state := d.breaker.State(now)
	if state == d.state {
		return state
	}
	d.state = state
	switch state {
	case retry.Open:
		d.metrics.opened.Inc()
		d.log.Warn("breaker opened, nothing is taken", "until", d.breaker.RetryAt(), "error", d.cause)
		signal(d.opened)
	case retry.HalfOpen:
		d.log.Info("breaker half-open, messages are taken one at a time")
	case retry.Closed:
		d.log.Info("breaker closed")
	}
	signal(d.changed)
	return state
}

// maxCause bounds what is said of the failure that opened a breaker.
const maxCause = 500

// causeOf is a failure as readiness and the log name it: its first line. /readyz asks nobody for a token, and the rest of a panic's text is
// the stack, which the log has at the attempt itself.
func causeOf(err error) string {
	first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
	return plainText(first, maxCause)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// paused says why the consumer takes nothing, nil when it does.
func (d *dampers) paused(now time.Time) error {
	if d.breaker == nil {
		return nil
	}
	d.m.Lock()
	defer d.m.Unlock()
	if d.observe(now) != retry.Open {
		return nil
	}
	return fmt.Errorf("the breaker is open until %s: %s", stamp(d.breaker.RetryAt()), d.cause)
}

// dependencyDown asks whether the dependency behind the handler is there, and opens the breaker when it is not: there is
// nothing to learn from more failures. Without a breaker or a probe nobody knows, and the answer is no.
func (d *dampers) dependencyDown(ctx context.Context) bool {
	if d.breaker == nil || d.probe == nil {
		return false
	}
	d.m.Lock()
	if now := time.Now(); now.Sub(d.downAt) < probeEvery {
		defer d.m.Unlock()
		d.breaker.Trip(now)
		d.observe(now)
		return true
	}
	d.m.Unlock()
	return !d.ask(ctx)
}

// ask probes the dependency.
func (d *dampers) ask(ctx context.Context) (up bool) {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := d.probe(bounded)
	if ctx.Err() != nil {
		return true // we were interrupted, that says nothing
	}
	d.m.Lock()
	defer d.m.Unlock()
	now := time.Now()
	d.downAt = time.Time{}
	if err != nil {
		d.downAt, d.cause = now, causeOf(err)
		d.breaker.Trip(now)
	}
	d.breaker.Probed(now, err == nil)
	d.observe(now)
	return err == nil
}

// watch looks for the dependency as long as the breaker is open: it may be back long before the pause is over.
func (d *dampers) watch(ctx context.Context) {
	if d.breaker == nil || d.probe == nil {
		return
	}
	for {
		select {
		case <-d.opened:
		case <-ctx.Done():
			return
		}
		for state, _ := d.breakerState(time.Now()); state == retry.Open; state, _ = d.breakerState(time.Now()) {
			select {
			case <-time.After(retry.Jitter(probeEvery, 0.2, rand.Float64())):
			case <-ctx.Done():
				return
			}
			d.ask(ctx)
		}
	}
}

// record takes note of how a batch went. When the dependency is down the breaker knows already, and what failed for that
// reason is not a message that failed.
func (d *dampers) record(now time.Time, ds []*delivery, down bool) {
	if d.breaker == nil && d.budget == nil && d.rate == nil {
		return
	}
	d.m.Lock()
	defer d.m.Unlock()
	succeeded, limited := 0, false
	for _, one := range ds {
		counts := one.class.CountsForBreaker()
		switch {
		case one.err == nil:
			succeeded++
		case one.class == retry.Cancelled, one.class == retry.Validation, one.err == errCrashLoop, one.untried:
			continue // the dependency was not asked
		case counts:
			d.cause = causeOf(one.err)
			limited = limited || one.class == retry.RateLimited
		}
		if d.breaker != nil && !(down && unanswered(one.class)) {
			d.breaker.Record(now, counts)
		}
	}
	if d.breaker != nil {
		d.observe(now)
	}
	if d.budget != nil {
		d.budget.Success(now, succeeded)
	}
	if d.rate != nil {
		d.adapt(now, limited, succeeded > 0)
	}
}

// collect brings the gauges up to date. The dampers change with time alone, so it is done when somebody looks.
func (d *dampers) collect(now time.Time) {
	d.m.Lock()
	defer d.m.Unlock()
	paused := false
	if d.breaker != nil {
		state := d.observe(now)
		paused = state == retry.Open
		d.metrics.state.Set(float64(state))
	}
	if d.budget != nil {
		tokens := d.budget.Tokens(now)
		paused = paused || tokens < 1
		d.metrics.tokens.Set(tokens)
	}
	if d.rate != nil {
		d.metrics.rate.Set(d.rate.Rate())
	}
	if d.metrics.paused.Set(0); paused {
		d.metrics.paused.Set(1)
	}
}
