package retry

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

const (
	// lowest is the share of the configured limit below which pushing back does not go: some message must go through for
	// anybody to find out that the dependency is well again.
	lowest = 1.0 / 64
	// step is the share of the configured limit that a calm second gives back. Falling fast and rising slowly is what lets
	// several consumers find a rate that their dependency bears.
	step = 1.0 / 20
	// adaptEvery is how often the rate moves in either direction: the failures of one batch are one sign, not fifty.
	adaptEvery = time.Second
)

// RateLimit bounds how many messages a consumer starts per second, and lowers the bound while a dependency asks for less.
// What was not used is kept for a second. The time is passed in; it is not safe for concurrent use.
type RateLimit struct {
	limiter  *rate.Limiter
	limit    float64 // as configured
	started  bool
	pushedAt time.Time
	movedAt  time.Time
}

// NewRateLimit makes a limit of so many messages per second. Zero or less is no limit.
func NewRateLimit(perSecond float64) *RateLimit {
	if !(perSecond > 0) || perSecond > math.MaxInt32 {
		perSecond = math.Inf(1)
	}
	return &RateLimit{limiter: rate.NewLimiter(rate.Limit(perSecond), burst(perSecond)), limit: perSecond}
}

// burst is one second's worth, so that a handler that takes its time does not lower the rate.
func burst(perSecond float64) int {
	return int(min(max(perSecond, 1), math.MaxInt32))
}

// Take takes as many messages as may start now, upTo at most, and answers how many.
func (r *RateLimit) Take(now time.Time, upTo int) int {
	n := int(min(float64(max(upTo, 0)), r.tokens(now)))
	r.limiter.AllowN(now, n)
	return n
}

// NextAt is when the next message may start; now if one may. It is a little late, by a millisecond at most: a timer is no
// more exact, and one that is early finds nothing to take.
func (r *RateLimit) NextAt(now time.Time) time.Time {
	missing := 1 - r.tokens(now)
	if missing <= 0 {
		return now
	}
	return now.Add(max(scale(time.Second, missing/r.Rate()), time.Millisecond-1).Truncate(time.Millisecond) + time.Millisecond)
}

// PushBack halves the rate, at most once a second and not below a 64th of the limit: the dependency asked for less.
func (r *RateLimit) PushBack(now time.Time) {
	if !due(now, r.pushedAt) {
		return
	}
	r.pushedAt = now
	r.move(now, max(r.Rate()/2, r.limit*lowest))
}

// Calm gives a twentieth of the limit back, at most once a second: a message went well.
func (r *RateLimit) Calm(now time.Time) {
	if r.Rate() < r.limit && due(now, r.movedAt) {
		r.move(now, min(r.Rate()+r.limit*step, r.limit))
	}
}

// Rate is how many messages per second may start at present; infinite without a limit.
func (r *RateLimit) Rate() float64 {
	if math.IsInf(r.limit, 1) {
		return r.limit // the library's "infinite" is a large number
	}
	return float64(r.limiter.Limit())
}

func due(now, last time.Time) bool { return last.IsZero() || now.Sub(last) >= adaptEvery }

func (r *RateLimit) move(now time.Time, to float64) {
	r.movedAt = now
	if math.IsInf(r.limit, 1) {
		return
	}
	r.limiter.SetLimitAt(now, rate.Limit(to))
	r.limiter.SetBurstAt(now, burst(to))
}

// tokens is how many messages may start now. The library's bucket is full at first; ours holds one message then, so that a
// service that has just started does not begin with a burst.
func (r *RateLimit) tokens(now time.Time) float64 {
	if math.IsInf(r.limit, 1) {
		return math.Inf(1)
	}
	if !r.started {
		r.started = true
		r.limiter.AllowN(now, r.limiter.Burst()-1)
	}
	return r.limiter.TokensAt(now)
}
