package policy

import (
	"time"

	"example.com/banking/pkg/retry"
)

// dependency is what the handlers call: it bears so many calls a second, and is out of order for a while.
type dependency struct {
	capacity int // calls a second
	from, to time.Time
	busy     bool // out of order means slow: it bears a tenth, and says so; else it is down

	// What it bears right now, as the time in which it would have done it. Whole numbers are the same on every machine.
	left time.Duration
	at   time.Time
}

const (
	served  = 20 * time.Millisecond // how long a call takes
	refused = 5 * time.Millisecond  // and one that comes to nothing
)

func (d *dependency) out(now time.Time) bool { return !now.Before(d.from) && now.Before(d.to) }

// up is what a probe finds.
func (d *dependency) up(now time.Time) bool { return d.busy || !d.out(now) }

// call is one call: how long it takes, and the class of its failure, "" for none.
func (d *dependency) call(now time.Time) (time.Duration, retry.Class) {
	if d.out(now) && !d.busy {
		return refused, retry.Timeout // the connection is refused
	}
	each := time.Second / time.Duration(d.capacity)
	if d.out(now) {
		each *= 10
	}
	// A second's work may come at once: so long calls queue in it before it refuses some.
	most := max(time.Second, each)
	if d.at.IsZero() {
		d.left, d.at = most, now
	}
	d.left = min(d.left+now.Sub(d.at), most)
	d.at = now
	if d.left < each {
		return refused, retry.RateLimited
	}
	d.left -= each
	return served, ""
}
