package retry_test

import (
	"math"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

func TestBudget(t *testing.T) {
	t.Parallel()
	b, now := retry.NewBudget(retry.BudgetConfig{}), start
	check := func(what string, want float64, next time.Duration) {
		t.Helper()
		if got := b.Tokens(now); math.Abs(got-want) > 1e-9 {
			t.Fatalf("%s: %v tokens, want %v", what, got, want)
		}
		if got := b.NextAt(now).Sub(now); got != next {
			t.Fatalf("%s: the next token in %v, want %v", what, got, next)
		}
	}
	check("at the start", 100, 0)
	b.Success(now, 1000)
	check("no more than its size", 100, 0)
	b.Spend(now, 30)
	check("a retry costs one", 70, 0)
	b.Success(now, 7)
	check("a success earns a fifth", 71.4, 0)
	b.Spend(now, 71)
	check("less than one", 0.4, 6*time.Second)
	b.Spend(now, 1)
	check("takes what is there", 0, 10*time.Second)
	b.Spend(now, math.MaxInt)
	check("and makes no debt", 0, 10*time.Second)
	b.Success(now, 4)
	check("four are not enough", 0.8, 2*time.Second)
	now = now.Add(2 * time.Second)
	check("the floor is one in ten seconds", 1, 0)
	now = now.Add(-time.Hour)
	check("a clock that was set back takes nothing", 1, 0)
	now = now.Add(time.Hour + 25*time.Second)
	check("nor does it give twice", 3.5, 0)
	b.Success(now, -5)
	b.Spend(now, -5)
	check("less than nothing is nothing", 3.5, 0)
	now = now.Add(math.MaxInt64)
	check("after an age", 100, 0)
	b.Spend(now, 100)
	b.Success(now, math.MaxInt)
	check("after very many successes", 100, 0)
}

func TestBudgetConfig(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config      retry.BudgetConfig
		size, after float64 // after a success and a second, from empty
		next        time.Duration
	}{
		"defaults":                 {retry.BudgetConfig{}, 100, 0.3, 10 * time.Second},
		"nonsense has defaults":    {retry.BudgetConfig{Size: -1, PerSuccess: math.NaN(), Every: -1}, 100, 0.3, 10 * time.Second},
		"its own":                  {retry.BudgetConfig{Size: 7, PerSuccess: 0.5, Every: 4 * time.Second}, 7, 0.75, 4 * time.Second},
		"a size that allows none":  {retry.BudgetConfig{Size: 0.1}, 1, 0.3, 10 * time.Second},
		"a success earns it all":   {retry.BudgetConfig{Size: 2, PerSuccess: 1e300}, 2, 2, 10 * time.Second},
		"without end, practically": {retry.BudgetConfig{Size: math.Inf(1)}, float64(math.MaxInt64) / 1e10, 0.3, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := retry.NewBudget(c.config)
			if got := b.Tokens(start); got != c.size {
				t.Errorf("starts with %v, want %v", got, c.size)
			}
			b.Spend(start, math.MaxInt)
			if got := b.NextAt(start).Sub(start); got != c.next {
				t.Errorf("the next one in %v, want %v", got, c.next)
			}
			b.Success(start, 1)
			if got := b.Tokens(start.Add(time.Second)); math.Abs(got-c.after) > 1e-9 {
				t.Errorf("%v after a success and a second, want %v", got, c.after)
			}
		})
	}
}

// Whatever happens, the retries stay within what was there, was earned and has come by itself; and who waits until NextAt
// finds a token.
func TestBudgetBoundsRetries(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := retry.BudgetConfig{
			Size: rapid.Float64Range(1, 200).Draw(t, "size"), PerSuccess: rapid.Float64Range(0.01, 2).Draw(t, "per success"),
			Every: time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "every")),
		}
		b, now := retry.NewBudget(c), start
		spent, earned := 0.0, 0.0
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(30*time.Second)).Draw(t, "passed")))
			n := rapid.IntRange(0, 60).Draw(t, "n")
			before := b.Tokens(now)
			if rapid.Bool().Draw(t, "success") {
				b.Success(now, n)
				earned += float64(n) * c.PerSuccess
			} else if affordable := min(n, int(before)); affordable > 0 {
				b.Spend(now, affordable)
				spent += float64(affordable)
				if after := b.Tokens(now); math.Abs(before-float64(affordable)-after) > 1e-6 {
					t.Fatalf("%v tokens less %d are %v", before, affordable, after)
				}
			}
			if tokens := b.Tokens(now); tokens < 0 || tokens > c.Size+1e-6 {
				t.Fatalf("%v tokens of %v", tokens, c.Size)
			}
			if limit := c.Size + earned + float64(now.Sub(start))/float64(c.Every); spent > limit+1e-3 {
				t.Fatalf("%v retries, of %v at most", spent, limit)
			}
			next := b.NextAt(now)
			if next.Before(now) || next.Sub(now) > c.Every {
				t.Fatalf("the next token in %v", next.Sub(now))
			}
		}
		next := b.NextAt(now)
		if next.After(now) && b.Tokens(next.Add(-1)) >= 1 {
			t.Fatal("there was one before NextAt")
		}
		if got := b.Tokens(next); got < 1 {
			t.Fatalf("%v tokens at NextAt", got)
		}
	})
}
