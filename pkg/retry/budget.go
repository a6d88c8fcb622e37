package retry

import "time"

// BudgetConfig says how many retries a consumer may make. A field that is not above zero has its default.
type BudgetConfig struct {
	Size       float64       // tokens it holds at most, and has at the start; default 100
	PerSuccess float64       // tokens a success earns; default 0.2: one retry for five messages that went well
	Every      time.Duration // in which one token comes by itself; default 10 s, so that a retry is always possible some day
}

// Budget is a bucket of tokens that keeps retries a small share of the work: each costs one token, and successes earn them.
// Retries are extra load on whatever made the messages fail; without a bound they are what keeps it down. A consumer that
// has run out waits (NextAt); nothing fails for want of a token.
//
// It is not safe for concurrent use, and does not mind a time that is earlier than the last one it was given.
type Budget struct {
	// What is left is kept as time, the time in which it would come by itself. Adding what has passed is exact then, and so
	// is NextAt; a fraction of a token added many times a second would drift.
	left, size, perToken time.Duration
	perSuccess           float64 // as time
	at                   time.Time
}

// NewBudget makes a full budget.
func NewBudget(c BudgetConfig) *Budget {
	every := positive(c.Every, 10*time.Second)
	size := scale(every, max(positive(c.Size, 100), 1))
	return &Budget{left: size, size: size, perToken: every, perSuccess: positive(c.PerSuccess, 0.2) * float64(every)}
}

// Success earns the tokens of n messages that went well.
func (b *Budget) Success(now time.Time, n int) {
	b.refill(now)
	earned := b.perSuccess * float64(max(n, 0))
	if !(earned < float64(b.size-b.left)) {
		b.left = b.size
		return
	}
	b.left += time.Duration(earned)
}

// Spend takes the tokens of n retries, or those that are there: a debt would make the consumer wait for retries that have
// long been made.
func (b *Budget) Spend(now time.Time, n int) {
	b.refill(now)
	cost := scale(b.perToken, float64(max(n, 0)))
	b.left -= min(cost, b.left)
}

// Tokens is how many tokens are there.
func (b *Budget) Tokens(now time.Time) float64 {
	b.refill(now)
	return float64(b.left) / float64(b.perToken)
}

// NextAt is when at least one token is there if nothing is spent until then; now if there is one.
func (b *Budget) NextAt(now time.Time) time.Time {
	b.refill(now)
	return now.Add(max(b.perToken-b.left, 0))
}

func (b *Budget) refill(now time.Time) {
	if b.at.IsZero() {
		b.at = now
	}
	passed := now.Sub(b.at)
	if passed <= 0 {
		return
	}
	b.at = now
	b.left += min(passed, b.size-b.left)
}
