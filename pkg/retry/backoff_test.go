package retry_test

import (
	"math"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

func TestBackoffDelay(t *testing.T) {
	t.Parallel()
	doubling := retry.Backoff{Base: time.Second, Factor: 2, Cap: 5 * time.Minute}
	for _, c := range []struct {
		b    retry.Backoff
		n    int
		want time.Duration
	}{
		{doubling, math.MinInt, time.Second},
		{doubling, -1, time.Second},
		{doubling, 0, time.Second},
		{doubling, 1, time.Second},
		{doubling, 2, 2 * time.Second},
		{doubling, 9, 256 * time.Second},
		{doubling, 10, 5 * time.Minute},
		{doubling, 37, 5 * time.Minute},
		{doubling, 40, 5 * time.Minute},
		{doubling, 63, 5 * time.Minute},
		{doubling, 64, 5 * time.Minute},
		{doubling, 1000, 5 * time.Minute},
		{doubling, math.MaxInt, 5 * time.Minute},
		{retry.Backoff{Base: 0, Factor: 2, Cap: time.Minute}, 1000, 0},
		{retry.Backoff{Base: -1, Factor: 2, Cap: time.Minute}, 1, 0},
		{retry.Backoff{Base: time.Minute, Factor: 2, Cap: time.Second}, 1, time.Second},
		{retry.Backoff{Base: time.Second, Factor: 2, Cap: 0}, 3, 0},
		{retry.Backoff{Base: time.Second, Factor: 0, Cap: time.Minute}, 5, time.Second},
		{retry.Backoff{Base: time.Second, Factor: math.NaN(), Cap: time.Minute}, 5, time.Minute},
		{retry.Backoff{Base: time.Second, Factor: 1, Cap: time.Minute}, math.MaxInt, time.Second},
		{retry.Backoff{Base: time.Second, Factor: 5, Cap: math.MaxInt64}, 1000, math.MaxInt64},
	} {
		if got := c.b.Delay(c.n); got != c.want {
			t.Errorf("%+v: Delay(%d) = %v, want %v", c.b, c.n, got, c.want)
		}
	}
}

func TestBackoffNeverFallsNorLeavesItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := retry.Backoff{
			Base:   time.Duration(rapid.Int64().Draw(t, "base")),
			Factor: rapid.Float64Range(0, 100).Draw(t, "factor"),
			Cap:    time.Duration(rapid.Int64().Draw(t, "cap")),
		}
		n := rapid.IntRange(-10, math.MaxInt-1).Draw(t, "n")
		d, next := b.Delay(n), b.Delay(n+1)
		if d < 0 || d > max(b.Cap, 0) {
			t.Fatalf("Delay(%d) = %d", n, d)
		}
		if next < d {
			t.Fatalf("Delay(%d) = %d, but Delay(%d) = %d", n, d, n+1, next)
		}
		share, u := rapid.Float64Range(0, 1).Draw(t, "share"), rapid.Float64Range(0, 0.999).Draw(t, "u")
		if j := retry.Jitter(d, share, u); j < 0 || float64(j) > float64(d)*(1+share)+1 {
			t.Fatalf("Jitter(%d, %v, %v) = %d", d, share, u, j)
		}
		if j := retry.FullJitter(d, u); j < 0 || j > d {
			t.Fatalf("FullJitter(%d, %v) = %d", d, u, j)
		}
		if j := retry.EqualJitter(d, u); j < 0 || float64(j) < float64(d)/2-1 || j > d {
			t.Fatalf("EqualJitter(%d, %v) = %d", d, u, j)
		}
	})
}

func TestJitters(t *testing.T) {
	t.Parallel()
	const d = 8 * time.Second
	for _, c := range []struct {
		name      string
		got, want time.Duration
	}{
		{"full, the least", retry.FullJitter(d, 0), 0},
		{"full, a quarter", retry.FullJitter(d, 0.25), 2 * time.Second},
		{"equal, the least", retry.EqualJitter(d, 0), 4 * time.Second},
		{"equal, a quarter", retry.EqualJitter(d, 0.25), 5 * time.Second},
		{"equal, of nothing", retry.EqualJitter(0, 0.9), 0},
		{"equal, of less", retry.EqualJitter(-d, 0.9), 0},
		{"a share, the least", retry.Jitter(d, 0.25, 0), 6 * time.Second},
		{"a share, the middle", retry.Jitter(d, 0.25, 0.5), d},
		{"decorrelated, the first, the least", retry.Decorrelated(0, time.Second, time.Minute, 0), time.Second},
		{"decorrelated, the first, the middle", retry.Decorrelated(0, time.Second, time.Minute, 0.5), 2 * time.Second},
		{"decorrelated, a later one", retry.Decorrelated(d, time.Second, time.Minute, 0.5), 12500 * time.Millisecond},
		{"decorrelated, up to the cap", retry.Decorrelated(d, time.Second, 10*time.Second, 0.9), 10 * time.Second},
		{"decorrelated, a base above the cap", retry.Decorrelated(0, time.Minute, time.Second, 0), time.Second},
		{"decorrelated, of nothing", retry.Decorrelated(0, 0, time.Second, 0.9), 0},
		{"decorrelated, of less", retry.Decorrelated(-1, -1, -1, 0.9), 0},
		{"decorrelated, of very much", retry.Decorrelated(math.MaxInt64, time.Second, math.MaxInt64, 0.9), math.MaxInt64},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestDecorrelatedStaysBetweenBaseAndCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "base"))
		cap := base + time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "more"))
		previous := time.Duration(0)
		for range 30 {
			d := retry.Decorrelated(previous, base, cap, rapid.Float64Range(0, 0.999).Draw(t, "u"))
			if d < base || d > cap || d > 3*max(previous, base) {
				t.Fatalf("after %d: %d, not in [%d, %d]", previous, d, base, cap)
			}
			previous = d
		}
	})
}
