package retry

import (
	"math"
	"time"
)

// Backoff is an exponential series of delays: Base, Base·Factor, Base·Factor², … up to Cap.
type Backoff struct {
	Base   time.Duration
	Factor float64 // 1 or more
	Cap    time.Duration
}

// Delay is the pause before retry n, counted from 1: min(Cap, Base·Factor^(n−1)), for any n. It never falls as n grows.
//
// The power is a float and compared with Cap before it becomes a duration: an int64 that is doubled some 37 times and capped
// afterwards has wrapped to zero by then, which turns the pause into a hot loop.
func (b Backoff) Delay(n int) time.Duration {
	if b.Base <= 0 || b.Cap <= 0 {
		return 0
	}
	d := float64(b.Base) * math.Pow(max(b.Factor, 1), float64(max(n, 1)-1))
	if !(d < float64(b.Cap)) { // written so that it holds for +Inf and NaN too
		return b.Cap
	}
	return time.Duration(d)
}

// FullJitter picks a delay in [0, d) by u in [0, 1). It is for calls of our own: callers that failed together come back
// spread over the whole interval.
func FullJitter(d time.Duration, u float64) time.Duration {
	return scale(d, u)
}

// EqualJitter picks a delay in [d/2, d) by u in [0, 1): spread like FullJitter, but never soon, for a dependency that needs
// some rest at any rate.
func EqualJitter(d time.Duration, u float64) time.Duration {
	return scale(d, 0.5+u/2)
}

// Decorrelated picks the delay after the previous one in [base, 3·previous), at most limit, by u in [0, 1). The series grows
// by chance, so that callers that failed together drift apart more with every try. The first one has no previous: pass 0.
func Decorrelated(previous, base, limit time.Duration, u float64) time.Duration {
	base = max(base, 0)
	span := 3*float64(max(previous, base)) - float64(base)
	return min(scale(1, float64(base)+u*span), max(limit, 0))
}

// Jitter spreads d by ± share of it, by u in [0, 1). It is for messages: a delay stays near what the policy says.
func Jitter(d time.Duration, share, u float64) time.Duration {
	return scale(d, 1+share*(2*u-1))
}

func scale(d time.Duration, by float64) time.Duration {
	scaled := float64(max(d, 0)) * max(by, 0)
	if !(scaled < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(scaled)
}
