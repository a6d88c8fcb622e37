package retry_test

import (
	"math"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

func TestRateLimitTakes(t *testing.T) {
	t.Parallel()
	r := retry.NewRateLimit(10)
	for _, c := range []struct {
		what     string
		at       time.Duration
		upTo     int
		want     int
		nextFrom time.Duration // from then, within a millisecond
	}{
		{"no burst at the start", 0, 50, 1, 100 * time.Millisecond},
		{"nothing yet", 99 * time.Millisecond, 50, 0, time.Millisecond},
		{"one in a tenth of a second", 101 * time.Millisecond, 50, 1, 99 * time.Millisecond},
		{"a second's worth is kept", time.Hour, 50, 10, 100 * time.Millisecond},
		{"no more than asked for", time.Hour + time.Second, 3, 3, 0},
		{"the rest is still there", time.Hour + time.Second, 50, 7, 100 * time.Millisecond},
		{"none asked for", time.Hour + 2*time.Second, 0, 0, 0},
		{"less than none asked for", time.Hour + 2*time.Second, math.MinInt, 0, 0},
		{"a clock that was set back gives none", time.Hour, 50, 10, 100 * time.Millisecond},
	} {
		now := start.Add(c.at)
		if got := r.Take(now, c.upTo); got != c.want {
			t.Fatalf("%s: took %d, want %d", c.what, got, c.want)
		}
		if got := r.NextAt(now).Sub(now); got < c.nextFrom || got > c.nextFrom+time.Millisecond {
			t.Fatalf("%s: the next in %v, want %v", c.what, got, c.nextFrom)
		}
	}
}

func TestRateLimitAdapts(t *testing.T) {
	t.Parallel()
	const limit = 64
	r, now := retry.NewRateLimit(limit), start
	rate := func(what string, want float64) {
		t.Helper()
		if got := r.Rate(); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%s: %v per second, want %v", what, got, want)
		}
	}
	r.Calm(now)
	rate("never above the limit", limit)
	r.PushBack(now)
	rate("halved", limit/2)
	r.PushBack(now.Add(999 * time.Millisecond))
	rate("once in a second", limit/2)
	now = now.Add(time.Second)
	r.PushBack(now)
	rate("and again", limit/4)
	r.Calm(now.Add(999 * time.Millisecond))
	rate("calm within that second", limit/4)
	for range 10 {
		now = now.Add(time.Second)
		r.PushBack(now)
	}
	rate("a message goes through in any case", 1)
	for second := 1; second <= 19; second++ {
		now = now.Add(time.Second)
		r.Calm(now)
		r.Calm(now.Add(time.Second / 2))
		rate("step by step", 1+float64(second)*limit/20)
	}
	r.PushBack(now.Add(time.Millisecond))
	rate("pushed back just after a step up", (1+19.0*limit/20)/2)
	now = now.Add(time.Hour)
	for range 100 {
		now = now.Add(time.Second)
		r.Calm(now)
	}
	rate("back at the limit", limit)
}

func TestRateLimitKeepsNoMoreThanTheLoweredRate(t *testing.T) {
	t.Parallel()
	r, now := retry.NewRateLimit(100), start
	r.Take(now, 1)
	now = now.Add(time.Minute) // a hundred are kept
	r.PushBack(now)
	if got := r.Take(now, 1000); got != 50 {
		t.Errorf("took %d after it was halved", got)
	}
	r = retry.NewRateLimit(0.5)
	for n := range 10 {
		r.PushBack(start.Add(time.Duration(n) * time.Second))
	}
	if got := r.Rate(); got != 0.5/64 {
		t.Errorf("the least is %v", got)
	}
	if r.Take(start.Add(time.Hour), 9) != 1 || r.NextAt(start.Add(time.Hour)).Sub(start) > time.Hour+129*time.Second {
		t.Error("a rate below one lets one through at a time")
	}
}

func TestNoRateLimit(t *testing.T) {
	t.Parallel()
	for _, limit := range []float64{0, -1, math.Inf(1), math.NaN(), math.MaxFloat64} {
		r := retry.NewRateLimit(limit)
		r.PushBack(start)
		r.Calm(start.Add(time.Minute))
		if got := r.Take(start, math.MaxInt32); got != math.MaxInt32 {
			t.Errorf("%v: took %d", limit, got)
		}
		if got := r.NextAt(start); !got.Equal(start) {
			t.Errorf("%v: the next at %v", limit, got)
		}
		if got := r.Rate(); !math.IsInf(got, 1) {
			t.Errorf("%v: a rate of %v", limit, got)
		}
	}
}

// In no stretch of time do more start than the configured rate allows, with a second's worth kept; the rate stays within
// its bounds; and who waits until NextAt may start one.
func TestRateLimitBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := math.Exp(rapid.Float64Range(math.Log(0.01), math.Log(10_000)).Draw(t, "log limit"))
		r, now := retry.NewRateLimit(limit), start
		type taken struct {
			at time.Time
			n  int
		}
		var all []taken
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*time.Second)).Draw(t, "passed")))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				r.PushBack(now)
			case 1:
				r.Calm(now)
			case 2:
				now = r.NextAt(now)
				if r.Take(now, 1) != 1 {
					t.Fatalf("at %v per second there was none at NextAt", r.Rate())
				}
				all = append(all, taken{now, 1})
			default:
				n := rapid.IntRange(0, 100).Draw(t, "n")
				got := r.Take(now, n)
				if got < 0 || got > n {
					t.Fatalf("took %d of %d", got, n)
				}
				all = append(all, taken{now, got})
			}
			if rate := r.Rate(); rate < limit/64*(1-1e-12) || rate > limit {
				t.Fatalf("a rate of %v with a limit of %v", rate, limit)
			}
		}
		for i := range all {
			sum := 0
			for _, later := range all[i:] {
				sum += later.n
				if most := later.at.Sub(all[i].at).Seconds()*limit + max(limit, 1); float64(sum) > most+1e-3 {
					t.Fatalf("%d started in %v at %v per second", sum, later.at.Sub(all[i].at), limit)
				}
			}
		}
	})
}
