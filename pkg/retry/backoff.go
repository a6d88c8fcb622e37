package retry

import "time"

// Backoff is an exponential series of delays: Base, Base·Factor, Base·Factor², … up to Cap.
type Backoff struct {
	Base   time.Duration
	Factor float64
	Cap    time.Duration
}

// Delay is the pause before retry n, counted from 1: min(Cap, Base·Factor^(n−1)), for any n.
func (b Backoff) Delay(n int) time.Duration { return 0 }

// FullJitter picks a delay in [0, d) by u in [0, 1).
func FullJitter(d time.Duration, u float64) time.Duration { return 0 }

// Jitter spreads d by ± share of it, by u in [0, 1).
func Jitter(d time.Duration, share, u float64) time.Duration { return 0 }
