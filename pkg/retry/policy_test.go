package retry_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
)

var policy = retry.Policy{
	MaxAttempts:    4,
	Delays:         []time.Duration{time.Second, 5 * time.Second, 25 * time.Second},
	MaxAge:         24 * time.Hour,
	NotFoundMaxAge: 5 * time.Minute,
	Classify:       true,
}

func unclassified() retry.Policy {
	p := policy
	p.Classify = false
	return p
}

func wait(d time.Duration) retry.Decision { return retry.Decision{Action: retry.Retry, Delay: d} }

func park(reason string) retry.Decision {
	return retry.Decision{Action: retry.Quarantine, Reason: reason}
}

// Each row of the decision table has its cases: rule is the row that must have decided.
var decisions = []struct {
	rule int
	name string
	p    retry.Policy
	f    retry.Failure
	want retry.Decision
}{
	{0, "our shutdown spends nothing", policy, retry.Failure{Class: retry.Cancelled, Attempt: 1}, retry.Decision{Action: retry.LeaveAlone}},
	{0, "not even at the last attempt", policy, retry.Failure{Class: retry.Cancelled, Attempt: 4, Age: 25 * time.Hour}, retry.Decision{Action: retry.LeaveAlone}},
	{0, "nor unclassified", unclassified(), retry.Failure{Class: retry.Cancelled, Attempt: 1}, retry.Decision{Action: retry.LeaveAlone}},
	{1, "a wrong message never gets better", policy, retry.Failure{Class: retry.Validation, Attempt: 1}, park(retry.ReasonValidation)},
	{1, "however old", policy, retry.Failure{Class: retry.Validation, Attempt: 1, Age: 25 * time.Hour}, park(retry.ReasonValidation)},
	{2, "a contradiction stays one", policy, retry.Failure{Class: retry.Invariant, Attempt: 1}, park(retry.ReasonInvariant)},
	{3, "not found and no longer young", policy, retry.Failure{Class: retry.NotFound, Attempt: 1, Age: 5 * time.Minute}, park(retry.ReasonNotFoundAged)},
	{3, "too old in every way", policy, retry.Failure{Class: retry.NotFound, Attempt: 4, Age: 25 * time.Hour}, park(retry.ReasonNotFoundAged)},
	{4, "past the age", policy, retry.Failure{Class: retry.Unknown, Attempt: 1, Age: 24*time.Hour + 1}, park(retry.ReasonMaxAge)},
	{4, "past the age, unclassified", unclassified(), retry.Failure{Class: retry.NotFound, Attempt: 1, Age: 25 * time.Hour}, park(retry.ReasonMaxAge)},
	{5, "the last attempt", policy, retry.Failure{Class: retry.Unknown, Attempt: 4}, park(retry.ReasonMaxAttempts)},
	{5, "beyond the last attempt", policy, retry.Failure{Class: retry.Timeout, Attempt: 99}, park(retry.ReasonMaxAttempts)},
	{5, "a wrong message, unclassified", unclassified(), retry.Failure{Class: retry.Validation, Attempt: 4}, park(retry.ReasonMaxAttempts)},
	{6, "a conflict waits the shortest delay", policy, retry.Failure{Class: retry.Conflict, Attempt: 3}, wait(time.Second)},
	{7, "asked for less: one tier up", policy, retry.Failure{Class: retry.RateLimited, Attempt: 1}, wait(5 * time.Second)},
	{7, "there is no tier above the last", policy, retry.Failure{Class: retry.RateLimited, Attempt: 3}, wait(25 * time.Second)},
	{7, "a given delay wins", policy, retry.Failure{Class: retry.RateLimited, Attempt: 1, After: 3 * time.Second}, wait(3 * time.Second)},
	{7, "up to the longest", policy, retry.Failure{Class: retry.RateLimited, Attempt: 1, After: time.Hour}, wait(25 * time.Second)},
	{8, "the first retry", policy, retry.Failure{Class: retry.Unknown, Attempt: 1}, wait(time.Second)},
	{8, "the second retry", policy, retry.Failure{Class: retry.Timeout, Attempt: 2}, wait(5 * time.Second)},
	{8, "the third retry", policy, retry.Failure{Class: retry.NotFound, Attempt: 3, Age: 5*time.Minute - 1}, wait(25 * time.Second)},
	{8, "just not too old", policy, retry.Failure{Class: retry.Unknown, Attempt: 1, Age: 24 * time.Hour}, wait(time.Second)},
	{8, "a nonsensical attempt counts as the first", policy, retry.Failure{Class: retry.Unknown, Attempt: -7}, wait(time.Second)},
	{8, "a class from elsewhere", policy, retry.Failure{Class: "OTHER", Attempt: 1}, wait(time.Second)},
	{8, "a wrong message, unclassified", unclassified(), retry.Failure{Class: retry.Validation, Attempt: 2}, wait(5 * time.Second)},
	{8, "rate limited, unclassified", unclassified(), retry.Failure{Class: retry.RateLimited, Attempt: 1}, wait(time.Second)},
	{8, "the last delay repeats", retry.Policy{MaxAttempts: 9, Delays: policy.Delays}, retry.Failure{Class: retry.Unknown, Attempt: 8}, wait(25 * time.Second)},
	{8, "no limits of age", retry.Policy{MaxAttempts: 9, Delays: policy.Delays, Classify: true}, retry.Failure{Class: retry.NotFound, Attempt: 1, Age: 1e6 * time.Hour}, wait(time.Second)},
	{8, "no delays", retry.Policy{MaxAttempts: 2}, retry.Failure{Class: retry.Unknown, Attempt: 1}, wait(0)},
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range decisions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.p.Decide(c.f, nil); got != c.want {
				t.Errorf("Decide(%+v) = %+v, want %+v", c.f, got, c.want)
			}
		})
	}
}

func TestEveryRuleHasCases(t *testing.T) {
	t.Parallel()
	covered := map[int]bool{}
	for _, c := range decisions {
		covered[c.rule] = true
		rule := retry.Rules()[c.rule]
		if rule.Action != c.want.Action || rule.Reason != c.want.Reason || rule.Class != "" && rule.Class != c.f.Class {
			t.Errorf("%s: row %d (%+v) cannot lead to %+v", c.name, c.rule, rule, c.want)
		}
	}
	for i, rule := range retry.Rules() {
		if !covered[i] {
			t.Errorf("row %d has no case: %+v", i, rule)
		}
	}
}

func TestDecideJitters(t *testing.T) {
	t.Parallel()
	p := policy
	p.Jitter = 0.2
	f := retry.Failure{Class: retry.Unknown, Attempt: 2}
	for u, want := range map[float64]time.Duration{0: 4 * time.Second, 0.5: 5 * time.Second, 0.75: 5500 * time.Millisecond} {
		if got := p.Decide(f, func() float64 { return u }).Delay; got != want {
			t.Errorf("with %v: delay %v, want %v", u, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	lines := strings.Split(strings.TrimSpace(retry.Table()), "\n")
	if len(lines) != 2+len(retry.Rules()) {
		t.Fatalf("%d lines for %d rules:\n%s", len(lines), len(retry.Rules()), retry.Table())
	}
	for _, line := range lines {
		if strings.Count(line, "|") != 6 {
			t.Errorf("not five columns: %s", line)
		}
	}
	if want := "| NOT_FOUND | not younger than NOT_FOUND_MAX_AGE | quarantine | NOT_FOUND_AGED | skipped |"; lines[5] != want {
		t.Errorf("got  %s\nwant %s", lines[5], want)
	}
}

func TestPackageDocumentationHasTheTable(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for line := range strings.Lines(string(doc)) {
		if row, ok := strings.CutPrefix(line, "//\t"); ok {
			table.WriteString(row)
		}
	}
	if table.String() != retry.Table() {
		t.Errorf("doc.go has\n%s\nthe table is\n%s", table.String(), retry.Table())
	}
}
