package retry_test

import (
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
)

// A consumer asks what to do about each failure. The numbers are those of a consumer that retries in process.
func ExamplePolicy_Decide() {
	policy := retry.Policy{
		MaxAttempts:    4,
		Delays:         []time.Duration{time.Second, 5 * time.Second, 25 * time.Second},
		MaxAge:         24 * time.Hour,
		NotFoundMaxAge: 5 * time.Minute,
		Classify:       true,
	}
	err := retry.Errorf(retry.NotFound, "no transfer 7")
	for _, failure := range []retry.Failure{
		{Class: retry.ClassOf(err), Attempt: 1, Age: time.Second},
		{Class: retry.ClassOf(err), Attempt: 2, Age: time.Hour},
		{Class: retry.Timeout, Attempt: 3},
		{Class: retry.Timeout, Attempt: 4},
		{Class: retry.Validation, Attempt: 1},
		{Class: retry.RateLimited, Attempt: 1, After: 7 * time.Second},
		{Class: retry.Cancelled, Attempt: 1},
	} {
		d := policy.Decide(failure, nil) // nil: no jitter
		fmt.Printf("%-12s attempt %d: %v", failure.Class, failure.Attempt, d.Action)
		switch d.Action {
		case retry.Retry:
			fmt.Printf(" after %v", d.Delay)
		case retry.Quarantine:
			fmt.Printf(", %s", d.Reason)
		}
		fmt.Println()
	}
	// Output:
	// NOT_FOUND    attempt 1: retry after 1s
	// NOT_FOUND    attempt 2: quarantine, NOT_FOUND_AGED
	// TIMEOUT      attempt 3: retry after 25s
	// TIMEOUT      attempt 4: quarantine, MAX_ATTEMPTS
	// VALIDATION   attempt 1: quarantine, VALIDATION
	// RATE_LIMITED attempt 1: retry after 7s
	// CANCELLED    attempt 1: leave alone
}

// The table in the documentation is printed from the rules that decide, so it cannot be out of date.
func ExampleTable() {
	fmt.Print(retry.Table())
	// Output:
	// | class | when | action | delay or reason | with `RETRY_CLASSIFY=off` |
	// | --- | --- | --- | --- | --- |
	// | CANCELLED | always | leave alone | no attempt spent | the same |
	// | VALIDATION | always | quarantine | VALIDATION | skipped |
	// | INVARIANT | always | quarantine | INVARIANT | skipped |
	// | NOT_FOUND | not younger than NOT_FOUND_MAX_AGE | quarantine | NOT_FOUND_AGED | skipped |
	// | any | older than MAX_AGE | quarantine | MAX_AGE | the same |
	// | any | attempt MAX_ATTEMPTS or later | quarantine | MAX_ATTEMPTS | the same |
	// | CONFLICT | always | retry | shortest delay | skipped |
	// | RATE_LIMITED | always | retry | the given delay, else one tier longer | skipped |
	// | any | always | retry | delay n | the same |
}

// The nearest code knows best what an error means; what is above adds only where it happened.
func ExampleClassOf() {
	answer := errors.New("429 Too Many Requests")
	err := fmt.Errorf("convert currency: %w", retry.LimitedFor(30*time.Second, answer))
	fmt.Println(err)
	fmt.Println(retry.ClassOf(err), retry.AfterOf(err), retry.ClassOf(err).CountsForBreaker())
	// Output:
	// convert currency: 429 Too Many Requests
	// RATE_LIMITED 30s true
}

// A database goes down, is found to be down, and comes back.
func ExampleBreaker() {
	b := retry.NewBreaker(retry.BreakerConfig{})
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for range 5 {
		b.Record(now, true)
	}
	fmt.Println(b.State(now), "until", b.RetryAt().Format(time.TimeOnly))

	now = now.Add(15 * time.Second)
	fmt.Println(b.State(now)) // one message is tried
	b.Record(now, true)
	fmt.Println(b.State(now), "until", b.RetryAt().Format(time.TimeOnly)) // twice as long

	b.Probed(now, false)
	b.Probed(now.Add(4*time.Second), true) // no need to wait for the end
	now = now.Add(5 * time.Second)
	fmt.Println(b.State(now))
	for range 3 {
		b.Record(now, false)
	}
	fmt.Println(b.State(now))
	// Output:
	// open until 12:00:15
	// half-open
	// open until 12:00:45
	// half-open
	// closed
}

// Every message fails. The budget lets the first hundred retries through, then one in ten seconds; when messages go well
// again, five of them earn a retry.
func ExampleBudget() {
	b := retry.NewBudget(retry.BudgetConfig{})
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	b.Spend(now, 100)
	fmt.Println(b.Tokens(now), "tokens, the next one at", b.NextAt(now).Format(time.TimeOnly))
	now = b.NextAt(now)
	fmt.Println(b.Tokens(now), "token")
	b.Success(now, 10)
	fmt.Println(b.Tokens(now), "tokens")
	// Output:
	// 0 tokens, the next one at 12:00:10
	// 1 token
	// 3 tokens
}

// The dependency bears less than the limit that was set.
func ExampleRateLimit() {
	r := retry.NewRateLimit(100)
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	fmt.Println(r.Take(now, 50), "may start")
	now = now.Add(time.Second)
	fmt.Println(r.Take(now, 50), "may start,", r.Rate(), "per second")

	r.PushBack(now) // "429 Too Many Requests"
	fmt.Println(r.Rate(), "per second")
	for range 3 {
		now = now.Add(time.Second)
		r.Calm(now) // a message went well
	}
	fmt.Println(r.Rate(), "per second")
	// Output:
	// 1 may start
	// 50 may start, 100 per second
	// 50 per second
	// 65 per second
}

// Calls that failed together must not come back together. Here every caller draws 0.5.
func ExampleBackoff() {
	b := retry.Backoff{Base: time.Second, Factor: 2, Cap: 10 * time.Second}
	u, previous := 0.5, time.Duration(0)
	for n := 1; n <= 5; n++ {
		d := b.Delay(n)
		previous = retry.Decorrelated(previous, b.Base, b.Cap, u)
		fmt.Println(d, retry.FullJitter(d, u), retry.EqualJitter(d, u), retry.Jitter(d, 0.2, u), previous)
	}
	// Output:
	// 1s 500ms 750ms 1s 2s
	// 2s 1s 1.5s 2s 3.5s
	// 4s 2s 3s 4s 5.75s
	// 8s 4s 6s 8s 9.125s
	// 10s 5s 7.5s 10s 10s
}

// Three layers that make three attempts each do not make nine.
func ExampleAmplification() {
	fmt.Println(retry.Amplification(3, 3, 3))
	// Output: 27
}

// Whoever is nearest to a failure gives it its class; a caller that knows less cannot take it away, nor make a failure of what is none.
func ExampleWrap() {
	nearest := retry.Errorf(retry.NotFound, "no transfer 7")
	fmt.Println(retry.ClassOf(retry.Wrap(retry.Unknown, fmt.Errorf("refund: %w", nearest))))
	fmt.Println(retry.ClassOf(retry.Wrap(retry.Conflict, errors.New("somebody was faster"))))
	fmt.Println(retry.Wrap(retry.Conflict, nil))
	// Output:
	// NOT_FOUND
	// CONFLICT
	// <nil>
}

// A breaker asks whether a failure may be about something that all messages need.
func ExampleClasses() {
	for _, class := range retry.Classes() {
		if class.CountsForBreaker() {
			fmt.Println(class)
		}
	}
	// Output:
	// TIMEOUT
	// RATE_LIMITED
	// UNKNOWN
}

// The rules are data and can be asked: which reasons for a quarantine are not theirs? Those that a consumer finds out by itself (a message
// that ends its process), and what the broker does with messages.
func ExampleRules() {
	decided := map[string]bool{}
	for _, rule := range retry.Rules() {
		decided[rule.Reason] = true
	}
	for _, reason := range retry.Reasons() {
		if !decided[reason] {
			fmt.Println(reason)
		}
	}
	// Output:
	// CRASH_LOOP
	// EXPIRED
	// OVERFLOW
	// DELIVERY_LIMIT
	// REJECTED
}
