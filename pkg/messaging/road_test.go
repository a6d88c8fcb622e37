package messaging

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestTierIsTheShortestThatIsLongEnough(t *testing.T) {
	t.Parallel()
	road := Tiered([]Tier{{5 * time.Minute, []string{"5m"}}, {5 * time.Second, []string{"5s"}}, {30 * time.Second, []string{"30s"}}}, "dlx")
	for delay, want := range map[time.Duration]string{
		0: "5s", time.Millisecond: "5s", 5 * time.Second: "5s", 5*time.Second + 1: "30s", 7 * time.Second: "30s", 30 * time.Second: "30s",
		31 * time.Second: "5m", 5 * time.Minute: "5m", time.Hour: "5m",
	} {
		if got := road.copyTo(delay, 0.5); got != want {
			t.Errorf("%v waits in %s, want %s", delay, got, want)
		}
	}
	if got := Lap("retry", "dlx").copyTo(time.Hour, 0.5); got != "retry" {
		t.Errorf("on the lap a copy waits in %q", got)
	}
}

// The labels are compared with settings, letter for letter, by who wants to know how a service runs.
func TestAConsumerTellsHowItRetries(t *testing.T) {
	t.Parallel()
	s := NewSession(SessionConfig{})
	for queue, c := range map[string]ConsumerConfig{
		"held":   {Road: InProcess("held_error"), Policy: retry.Policy{MaxAttempts: 4, Delays: []time.Duration{time.Second, 5 * time.Second}, Classify: true}},
		"lapped": {Road: Lap("retry", "dlx"), Policy: retry.Policy{MaxAttempts: 3, Delays: []time.Duration{1500 * time.Millisecond}}},
		"tiered": {Road: Tiered([]Tier{{time.Minute, []string{"1m"}}}, "dlx"), Policy: retry.Policy{MaxAttempts: 5, Delays: []time.Duration{time.Minute}, Classify: true}},
	} {
		c.Queue, c.Handler = queue, func(context.Context, []*Message) ([]error, error) { return nil, nil }
		if _, err := s.NewConsumer(c); err != nil {
			t.Fatal(err)
		}
	}
	want := `# HELP messaging_retry_policy_info 1 for each consumer; its labels are how it retries: on which road, how often, after which waits, by class or all alike.
# TYPE messaging_retry_policy_info gauge
messaging_retry_policy_info{attempts="4",classify="on",queue="held",road="in-process",waits="1s,5s"} 1
messaging_retry_policy_info{attempts="3",classify="off",queue="lapped",road="lap",waits="1.5s"} 1
messaging_retry_policy_info{attempts="5",classify="on",queue="tiered",road="tiered",waits="1m0s"} 1
`
	if err := testutil.CollectAndCompare(s.Metrics, strings.NewReader(want), "messaging_retry_policy_info"); err != nil {
		t.Error(err)
	}
}

func TestQueueOfATierIsPickedAtRandom(t *testing.T) {
	t.Parallel()
	road := Tiered([]Tier{{time.Second, []string{"a", "b", "c"}}}, "dlx")
	for u, want := range map[float64]string{0: "a", 0.33: "a", 0.34: "b", 0.66: "b", 0.67: "c", 0.999: "c", 1: "c"} {
		if got := road.copyTo(time.Second, u); got != want {
			t.Errorf("%v picks %s, want %s", u, got, want)
		}
	}
}

func TestRoadsThatLeadNowhereAreRefused(t *testing.T) {
	t.Parallel()
	for want, road := range map[string]Road{
		"no quarantine":        {RetryQueue: "retry"},
		"tier without a queue": Tiered([]Tier{{Delay: time.Second}}, "dlx"),
		"name is empty":        Tiered([]Tier{{time.Second, []string{"a", ""}}}, "dlx"),
		"or over 255 bytes":    Tiered([]Tier{{time.Second, []string{strings.Repeat("q", 256)}}}, "dlx"),
	} {
		_, err := NewSession(SessionConfig{}).NewConsumer(ConsumerConfig{
			Queue: mainQueue, Road: road, Policy: retry.Policy{MaxAttempts: 3},
			Handler: func(context.Context, []*Message) ([]error, error) { return nil, nil },
		})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), mainQueue) {
			t.Errorf("%+v: %v, want %q", road, err, want)
		}
	}
}

// What the policy decides and what the road makes of it, with the delays of the tiered profile.
func TestFailuresAndTheirTiers(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}
	policy := retry.Policy{MaxAttempts: 5, Delays: delays, Classify: true}
	road := Tiered([]Tier{{delays[0], []string{"5s"}}, {delays[1], []string{"30s"}}, {delays[2], []string{"5m"}}}, "dlx")
	for _, c := range []struct {
		failure retry.Failure
		want    string
	}{
		{retry.Failure{Class: retry.Timeout, Attempt: 1}, "5s"},
		{retry.Failure{Class: retry.Unknown, Attempt: 2}, "30s"},
		{retry.Failure{Class: retry.NotFound, Attempt: 3}, "5m"},
		{retry.Failure{Class: retry.Timeout, Attempt: 4}, "5m"},
		{retry.Failure{Class: retry.Conflict, Attempt: 3}, "5s"},
		{retry.Failure{Class: retry.RateLimited, Attempt: 1}, "30s"},
		{retry.Failure{Class: retry.RateLimited, Attempt: 4}, "5m"},
		{retry.Failure{Class: retry.RateLimited, Attempt: 3, After: time.Second}, "5s"},
		{retry.Failure{Class: retry.RateLimited, Attempt: 1, After: 7 * time.Second}, "30s"},
		{retry.Failure{Class: retry.RateLimited, Attempt: 1, After: time.Hour}, "5m"},
	} {
		decision := policy.Decide(c.failure, func() float64 { return 0.5 })
		if got := road.copyTo(decision.Delay, 0.5); decision.Action != retry.Retry || got != c.want {
			t.Errorf("%+v waits in %s, want %s", c.failure, got, c.want)
		}
	}
}
