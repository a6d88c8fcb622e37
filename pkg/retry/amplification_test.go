package retry_test

import (
	"math"
	"testing"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

func TestAmplification(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attempts []int
		want     int
	}{
		{nil, 1},
		{[]int{1}, 1},
		{[]int{3, 3, 3}, 27},
		{[]int{4, 3}, 12},
		{[]int{1, 1, 5}, 5},
		{[]int{0, 3, -2}, 3},
		{[]int{math.MaxInt, 1}, math.MaxInt},
		{[]int{math.MaxInt/2 + 1, 2}, math.MaxInt},
		{[]int{math.MaxInt / 2, 2}, math.MaxInt - 1},
		{[]int{math.MaxInt, math.MaxInt, math.MaxInt}, math.MaxInt},
	} {
		if got := retry.Amplification(c.attempts...); got != c.want {
			t.Errorf("Amplification(%v) = %d, want %d", c.attempts, got, c.want)
		}
	}
}

func TestAmplificationNeverFallsWithMoreLayers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		layers := rapid.SliceOf(rapid.Int()).Draw(t, "layers")
		all := retry.Amplification(layers...)
		if all < 1 {
			t.Fatalf("Amplification(%v) = %d", layers, all)
		}
		for i, n := range layers {
			if part := retry.Amplification(layers[:i]...); all < part || all < n {
				t.Fatalf("Amplification(%v) = %d, less than a part of it", layers, all)
			}
		}
	})
}
