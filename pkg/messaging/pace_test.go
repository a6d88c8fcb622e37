package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
)

// gauge is what the session's metrics say.
func (f *fixture) gauge(name string) float64 {
	f.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(f.session.Metrics)
	families, err := registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	f.Fatalf("there is no %s", name)
	return 0
}

// Messages that fail again and again use up the budget within a second. They are not given up for that, and go on by themselves.
func TestUsedUpBudgetFailsNothing(t *testing.T) {
	t.Parallel()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if strings.HasPrefix(m.MessageID, "failing") {
			return errors.New("later")
		}
		return nil
	})
	c.Budget = true
	c.Policy.MaxAttempts, c.Policy.Delays = 100, []time.Duration{time.Millisecond}
	f := start(t, s, c)
	f.publishBody(requested, body("failing 1"))
	f.publishBody(requested, body("failing 2"))
	attempts := map[string]int{}
	for range 100 {
		m := f.next()
		if attempts[m.MessageID]++; m.Attempt != attempts[m.MessageID] {
			t.Fatalf("attempt %d, want %d", m.Attempt, attempts[m.MessageID])
		}
	}
	f.eventually("the pause", func() error {
		if f.gauge("messaging_paused") != 1 || f.gauge("messaging_retry_budget_tokens") >= 1 {
			return fmt.Errorf("%v tokens are left", f.gauge("messaging_retry_budget_tokens"))
		}
		return nil
	})
	for len(f.handled) > 0 {
		m := <-f.handled
		attempts[m.MessageID]++
	}
	if err := f.session.Ready(t.Context()); err != nil {
		t.Errorf("a consumer that slows down is not ready: %v", err)
	}
	began := time.Now()
	if m := f.next(); m.Attempt <= attempts[m.MessageID] {
		t.Errorf("attempt %d after %d", m.Attempt, attempts[m.MessageID])
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v to go on", took)
	}
	f.empty(errorQueue)
}

func TestRateLimitIsKept(t *testing.T) {
	t.Parallel()
	const limit, messages = 100, 200
	s, c := transfer(succeed)
	c.RateLimit = limit
	f := start(t, s, c)
	for i := range messages {
		f.publishBody(debited, body(fmt.Sprint(i)))
	}
	f.next()
	began := time.Now()
	for range messages - 1 {
		f.next()
	}
	if rate := (messages - 1) / time.Since(began).Seconds(); rate > 1.1*limit || rate < limit/4 {
		t.Errorf("%.0f messages per second", rate)
	} else {
		t.Logf("%.1f messages per second", rate)
	}
}

func TestRateLimitedMessagesLowerTheRate(t *testing.T) {
	t.Parallel()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.Attempt == 1 && m.MessageID == "too much" {
			return retry.LimitedFor(time.Millisecond, errors.New("too many"))
		}
		return nil
	}, time.Millisecond)
	c.RateLimit = 1000
	f := start(t, s, c)
	f.publishBody(requested, body("too much"))
	f.next()
	f.next()
	if rate := f.gauge("messaging_rate_limit_per_second"); rate != 500 {
		t.Errorf("the rate is %v, want half of it", rate)
	}
	f.eventually("the recovery to begin", func() error {
		f.publishBody(requested, body("well"))
		if rate := f.gauge("messaging_rate_limit_per_second"); rate <= 500 {
			return fmt.Errorf("the rate is %v", rate)
		}
		return nil
	})
}

// Five hundred good messages behind one that waits for its next attempt are done long before that.
func TestWaitingMessageDelaysNobody(t *testing.T) {
	t.Parallel()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "poison" {
			return errors.New("later")
		}
		return nil
	}, time.Hour)
	c.Breaker, c.Budget, c.Starts = &retry.BreakerConfig{}, true, newNotebook()
	f := start(t, s, c)
	f.publishBody(requested, body("poison"))
	for i := range 500 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	for range 501 {
		if m := f.next(); m.Attempt != 1 {
			t.Errorf("%s at attempt %d", m.MessageID, m.Attempt)
		}
	}
}
