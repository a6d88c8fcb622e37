package retry_test

import (
	"math"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// breakerTest is a breaker and the time it is told.
type breakerTest struct {
	*testing.T
	b   *retry.Breaker
	now time.Time
}

func testBreaker(t *testing.T, c retry.BreakerConfig) *breakerTest {
	return &breakerTest{T: t, b: retry.NewBreaker(c), now: start}
}

func (t *breakerTest) after(d time.Duration) *breakerTest {
	t.now = t.now.Add(d)
	return t
}

func (t *breakerTest) fail(n int) *breakerTest {
	for range n {
		t.b.Record(t.now, true)
	}
	return t
}

func (t *breakerTest) succeed(n int) *breakerTest {
	for range n {
		t.b.Record(t.now, false)
	}
	return t
}

func (t *breakerTest) is(want retry.BreakerState) *breakerTest {
	t.Helper()
	if got := t.b.State(t.now); got != want {
		t.Fatalf("the breaker is %v, want %v", got, want)
	}
	if at := t.b.RetryAt(); at.IsZero() == (want == retry.Open) {
		t.Fatalf("the breaker is %v until %v", want, at)
	}
	return t
}

func (t *breakerTest) openFor(want time.Duration) *breakerTest {
	t.Helper()
	t.is(retry.Open)
	if got := t.b.RetryAt().Sub(t.now); got != want {
		t.Fatalf("it is open for %v more, want %v", got, want)
	}
	return t
}

func TestBreakerOpensOnFailuresInARow(t *testing.T) {
	t.Parallel()
	testBreaker(t, retry.BreakerConfig{}).fail(4).is(retry.Closed).fail(1).openFor(15 * time.Second)
	testBreaker(t, retry.BreakerConfig{}).fail(4).succeed(1).fail(4).is(retry.Closed)
	// With little traffic the five may be hours apart.
	slow := testBreaker(t, retry.BreakerConfig{})
	for range 4 {
		slow.fail(1).after(time.Hour)
	}
	slow.is(retry.Closed).fail(1).is(retry.Open)
}

func TestBreakerOpensOnAShareOfTheWindow(t *testing.T) {
	t.Parallel()
	alternating := func(t *breakerTest, n int) *breakerTest {
		for range n {
			t.succeed(1).fail(1)
		}
		return t
	}
	alternating(testBreaker(t, retry.BreakerConfig{}), 9).is(retry.Closed).succeed(1).is(retry.Closed).fail(1).is(retry.Open) // 10 of 20
	alternating(testBreaker(t, retry.BreakerConfig{}).succeed(2), 50).is(retry.Closed)                                        // never half of them
	// What is older than the window does not count, neither for nor against.
	alternating(testBreaker(t, retry.BreakerConfig{}), 9).after(30 * time.Second).succeed(1).fail(1).is(retry.Closed)
	alternating(testBreaker(t, retry.BreakerConfig{}).succeed(1000).after(30*time.Second), 10).is(retry.Open)
	// Only the old part of the window leaves.
	t2 := testBreaker(t, retry.BreakerConfig{}).succeed(11)
	alternating(t2.after(26*time.Second), 9).is(retry.Closed).after(5 * time.Second).succeed(1).fail(1).is(retry.Open)
}

func TestBreakerConfig(t *testing.T) {
	t.Parallel()
	testBreaker(t, retry.BreakerConfig{Consecutive: 1}).fail(1).is(retry.Open)
	testBreaker(t, retry.BreakerConfig{MinCalls: 2}).succeed(1).fail(1).is(retry.Open)
	testBreaker(t, retry.BreakerConfig{MinCalls: 2, FailureShare: 0.6}).succeed(1).fail(1).is(retry.Closed).fail(1).is(retry.Open)
	testBreaker(t, retry.BreakerConfig{MinCalls: 1, FailureShare: 2, Consecutive: 1000}).fail(999).is(retry.Closed)
	testBreaker(t, retry.BreakerConfig{OpenFor: 5 * time.Minute}).fail(5).openFor(5 * time.Minute)
	testBreaker(t, retry.BreakerConfig{OpenFor: 5 * time.Minute, OpenMax: time.Minute}).fail(5).openFor(time.Minute)
	testBreaker(t, retry.BreakerConfig{
		Window: -1, MinCalls: -1, FailureShare: math.NaN(), Consecutive: -1, OpenFor: -1, OpenMax: -1, Successes: -1,
	}).fail(4).is(retry.Closed).fail(1).openFor(15 * time.Second)
	testBreaker(t, retry.BreakerConfig{Window: 1, MinCalls: 2, Consecutive: 9}).succeed(1).fail(1).is(retry.Open)
	testBreaker(t, retry.BreakerConfig{Successes: 1}).fail(5).after(15 * time.Second).succeed(1).is(retry.Closed)
}

func TestBreakerPausesTwiceAsLongUntilItHasClosed(t *testing.T) {
	t.Parallel()
	b := testBreaker(t, retry.BreakerConfig{}).fail(5)
	for _, pause := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 2 * time.Minute} {
		b.openFor(pause).after(pause - 1).is(retry.Open).after(1).is(retry.HalfOpen).succeed(2).is(retry.HalfOpen).fail(1)
	}
	b.after(2 * time.Minute).is(retry.HalfOpen).succeed(3).is(retry.Closed)
	// It has closed: everything begins anew, also the five in a row.
	b.fail(4).is(retry.Closed).fail(1).openFor(15 * time.Second)
}

func TestBreakerHeedsNothingThatEndsWhileItIsOpen(t *testing.T) {
	t.Parallel()
	b := testBreaker(t, retry.BreakerConfig{}).fail(5).after(time.Second).fail(50).succeed(50).openFor(14 * time.Second)
	b.after(14 * time.Second).is(retry.HalfOpen).succeed(2).is(retry.HalfOpen)
}

func TestBreakerTrips(t *testing.T) {
	t.Parallel()
	b := testBreaker(t, retry.BreakerConfig{})
	b.b.Trip(b.now)
	b.openFor(15 * time.Second).after(time.Second)
	b.b.Trip(b.now) // open already: no longer for it
	b.openFor(14 * time.Second).after(14 * time.Second).is(retry.HalfOpen)
	b.b.Trip(b.now)
	b.openFor(30 * time.Second)
}

func TestBreakerProbed(t *testing.T) {
	t.Parallel()
	probe := func(b *breakerTest, up bool) *breakerTest {
		b.b.Probed(b.now, up)
		return b
	}
	t.Run("up all along says nothing", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{}).fail(5)
		probe(probe(b, true), true).is(retry.Open)
	})
	t.Run("up after down ends the pause", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{}).fail(5)
		probe(b, false).is(retry.Open)
		probe(b, true).is(retry.HalfOpen).succeed(3).is(retry.Closed)
	})
	t.Run("up after a trip too", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{})
		b.b.Trip(b.now)
		probe(b, true).is(retry.HalfOpen)
	})
	t.Run("and after failures that opened it before the trip", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{}).fail(5)
		b.b.Trip(b.now)
		probe(b, true).is(retry.HalfOpen)
	})
	t.Run("a pause knows nothing of the one before", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{}).fail(5)
		probe(probe(b, false), true).is(retry.HalfOpen).fail(1)
		probe(b, true).openFor(30 * time.Second)
	})
	t.Run("only a pause is ended", func(t *testing.T) {
		t.Parallel()
		b := testBreaker(t, retry.BreakerConfig{})
		probe(probe(b, false), true).is(retry.Closed).fail(5).is(retry.Open)
		probe(b, true).is(retry.Open).after(15 * time.Second)
		probe(probe(b, false), true).is(retry.HalfOpen).succeed(2).is(retry.HalfOpen)
	})
}

func TestBreakerStateString(t *testing.T) {
	t.Parallel()
	for state, want := range map[retry.BreakerState]string{retry.Closed: "closed", retry.HalfOpen: "half-open", retry.Open: "open"} {
		if got := state.String(); got != want {
			t.Errorf("%d is %q, want %q", state, got, want)
		}
	}
}

// call is one message of the model's history.
type call struct {
	at     time.Time
	failed bool
}

// The model keeps every message. Its time goes in tenths of the window, as the breaker tells them apart.
func TestBreakerAgreesWithAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := retry.BreakerConfig{
			Window: 10 * time.Second, MinCalls: rapid.IntRange(1, 10).Draw(t, "min calls"), FailureShare: rapid.Float64Range(0.1, 1).Draw(t, "share"),
			Consecutive: rapid.IntRange(1, 8).Draw(t, "consecutive"), OpenFor: 4 * time.Second, OpenMax: 10 * time.Second, Successes: rapid.IntRange(1, 3).Draw(t, "successes"),
		}
		b, now := retry.NewBreaker(c), start
		var history []call
		inARow, pauses, up := 0, 0, 0
		state, until, down := retry.Closed, time.Time{}, false
		open := func() {
			pauses++
			pause := []time.Duration{4 * time.Second, 8 * time.Second}
			until = now.Add(c.OpenMax)
			if pauses <= len(pause) {
				until = now.Add(pause[pauses-1])
			}
			state, down = retry.Open, false
		}
		exceeded := func() bool {
			calls, failures := 0, 0
			for _, h := range history {
				if now.Sub(h.at) < c.Window {
					calls++
					if h.failed {
						failures++
					}
				}
			}
			return calls >= c.MinCalls && float64(failures) >= c.FailureShare*float64(calls)
		}
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			now = now.Add(time.Duration(max(rapid.IntRange(-8, 4).Draw(t, "passed"), 0)) * time.Second)
			if state == retry.Open && !now.Before(until) {
				state, up = retry.HalfOpen, 0
			}
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0:
				b.Trip(now)
				if state != retry.Open {
					open()
				}
				down = true
			case 1, 2:
				found := rapid.Bool().Draw(t, "up")
				b.Probed(now, found)
				if state == retry.Open && found && down {
					state, up = retry.HalfOpen, 0
				}
				down = down || state == retry.Open && !found
			default:
				failed := rapid.Bool().Draw(t, "failed")
				b.Record(now, failed)
				switch {
				case state == retry.HalfOpen && failed:
					open()
				case state == retry.HalfOpen:
					if up++; up == c.Successes {
						state, pauses, inARow, history = retry.Closed, 0, 0, nil
					}
				case state == retry.Closed:
					history = append(history, call{now, failed})
					if inARow++; !failed {
						inARow = 0
					}
					if failed && (inARow >= c.Consecutive || exceeded()) {
						open()
					}
				}
			}
			if got := b.State(now); got != state {
				t.Fatalf("at %v the breaker is %v, want %v", now.Sub(start), got, state)
			}
			if state == retry.Open && !b.RetryAt().Equal(until) {
				t.Fatalf("open until %v, want %v", b.RetryAt().Sub(start), until.Sub(start))
			}
		}
	})
}
