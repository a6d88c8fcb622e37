package retry

import "time"

// BreakerState is what a circuit breaker lets through.
type BreakerState int

const (
	Closed   BreakerState = iota // everything
	HalfOpen                     // one message at a time, to see whether the rest would fare better
	Open                         // nothing, until the pause is over
)

func (s BreakerState) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half-open"
	}
	return "open"
}

// BreakerConfig says when a breaker opens and how it closes again. A field that is not above zero has its default.
type BreakerConfig struct {
	Window       time.Duration // how far back it looks; default 30 s, told apart in tenths
	MinCalls     int           // fewer messages than this in the window say nothing about a share; default 20
	FailureShare float64       // of the window's messages, from which it opens; default 0.5, above 1 never
	Consecutive  int           // so many failures in a row open it too, for queues with little traffic; default 5
	OpenFor      time.Duration // the first pause; each further one in a row is twice as long; default 15 s
	OpenMax      time.Duration // the longest pause; default 2 min, or OpenFor if that is longer
	Successes    int           // so many in a row close it when it is half-open; default 3
}

func (c BreakerConfig) withDefaults() BreakerConfig {
	c.Window = positive(c.Window, 30*time.Second)
	c.MinCalls = positive(c.MinCalls, 20)
	c.FailureShare = positive(c.FailureShare, 0.5)
	c.Consecutive = positive(c.Consecutive, 5)
	c.OpenFor = positive(c.OpenFor, 15*time.Second)
	c.OpenMax = positive(c.OpenMax, max(2*time.Minute, c.OpenFor))
	c.Successes = positive(c.Successes, 3)
	return c
}

// positive is value, or its default where it is not above zero (a NaN is not).
func positive[N ~int | ~int64 | ~float64](value, otherwise N) N {
	if value > 0 {
		return value
	}
	return otherwise
}

// Breaker stops a consumer whose messages fail because of something they all need. Going on would spend the attempts of
// every message in the queue on a dependency that is down, and quarantine them all for nothing.
//
// Record only what Class.CountsForBreaker says; a message that is itself wrong says nothing about a dependency. It is not
// safe for concurrent use, and does not mind a time that is earlier than the last one it was given.
type Breaker struct {
	config  BreakerConfig
	state   BreakerState
	retryAt time.Time // end of the pause, when open
	pauses  int       // in a row, without having closed in between
	foundUp int       // successes since it is half-open
	down    bool      // the dependency was found to be down during this pause
	inARow  int       // failures, when closed
	window  window
}

// NewBreaker makes a closed breaker.
func NewBreaker(config BreakerConfig) *Breaker {
	b := &Breaker{config: config.withDefaults()}
	b.window.tenth = max(b.config.Window/tenths, 1)
	return b
}

// Record takes note of one handled message. What ends while the breaker is open was begun before that, and changes nothing.
func (b *Breaker) Record(now time.Time, failed bool) {
	switch b.State(now) {
	case Closed:
		b.recordClosed(now, failed)
	case HalfOpen:
		if failed {
			b.open(now)
			return
		}
		if b.foundUp++; b.foundUp >= b.config.Successes {
			b.close()
		}
	}
}

func (b *Breaker) recordClosed(now time.Time, failed bool) {
	b.window.record(now, failed)
	if !failed {
		b.inARow = 0
		return
	}
	b.inARow++
	calls, failures := b.window.sums()
	if b.inARow >= b.config.Consecutive || calls >= b.config.MinCalls && float64(failures) >= b.config.FailureShare*float64(calls) {
		b.open(now)
	}
}

// Trip opens the breaker at once: the dependency is known to be down, there is nothing to find out by further failures. A
// breaker that is open already stays open no longer for it, and only takes note that the dependency is down.
func (b *Breaker) Trip(now time.Time) {
	if b.State(now) != Open {
		b.open(now)
	}
	b.down = true
}

// Probed takes note of what a look at the dependency found, which matters while the breaker is open: a dependency that was
// down (Trip says so too) and is up again ends the pause. One that was up all along does not: then it is not what makes the
// messages fail, or the probe does not see it.
func (b *Breaker) Probed(now time.Time, up bool) {
	switch {
	case b.State(now) != Open:
	case !up:
		b.down = true
	case b.down:
		b.halfOpen()
	}
}

// State is the breaker's state at now: a pause that is over has made it half-open.
func (b *Breaker) State(now time.Time) BreakerState {
	if b.state == Open && !now.Before(b.retryAt) {
		b.halfOpen()
	}
	return b.state
}

// RetryAt is the end of the pause, zero when there is none: ask State first, it ends one that is over.
func (b *Breaker) RetryAt() time.Time { return b.retryAt }

func (b *Breaker) open(now time.Time) {
	b.pauses++
	pause := Backoff{Base: b.config.OpenFor, Factor: 2, Cap: b.config.OpenMax}.Delay(b.pauses)
	b.state, b.retryAt, b.down = Open, now.Add(pause), false
}

func (b *Breaker) halfOpen() {
	b.state, b.retryAt, b.foundUp = HalfOpen, time.Time{}, 0
}

func (b *Breaker) close() {
	b.state, b.pauses, b.inARow = Closed, 0, 0
	b.window.clear()
}

// tenths is into how many parts the window is divided; the oldest leaves as a whole, so that the window needs no memory of
// single messages.
const tenths = 10

type window struct {
	tenth time.Duration
	parts [tenths]struct{ calls, failures int }
	last  int       // the part that is being filled
	since time.Time // when that began
}

func (w *window) record(now time.Time, failed bool) {
	if passed := now.Sub(w.since) / w.tenth; passed >= tenths {
		w.clear()
		w.since = now
	} else if passed > 0 {
		for range passed {
			w.last = (w.last + 1) % tenths
			w.parts[w.last].calls, w.parts[w.last].failures = 0, 0
		}
		w.since = w.since.Add(passed * w.tenth)
	}
	w.parts[w.last].calls++
	if failed {
		w.parts[w.last].failures++
	}
}

func (w *window) sums() (calls, failures int) {
	for _, part := range w.parts {
		calls += part.calls
		failures += part.failures
	}
	return calls, failures
}

func (w *window) clear() {
	clear(w.parts[:])
	w.since = time.Time{}
}
