package outbox

import (
	"sync"
	"time"
)

// settleTime is how long a finished id stays above the low-water mark. Transactions that commit in another order than they took
// their ids are the rule, but they are milliseconds apart; what commits later than this is found by the sweep.
const settleTime = 250 * time.Millisecond

// frontier remembers how far the relay has got, so that a claim does not start at the beginning of the index. A deleted row's
// index entry stays until vacuum has removed it, and as long as any transaction in the whole database is older than the
// delete, it cannot even be skipped cheaply: a claim from id 0 after a million messages would read a million
// dead rows to find one live one.
//
// It is a hint and nothing depends on it: ids are handed out in one order and committed in another, so there may be live
// rows below it (a late commit, a crashed relay's, one that waits for its next attempt). The sweep starts at 0 and finds
// them.
type frontier struct {
	mu        sync.Mutex
	highest   int64 // of the ids known to be finished
	candidate int64 // highest as it was at the time of since
	since     time.Time
	hint      int64 // an earlier candidate, now old enough
}

// finished notes that the message with this id has been sent, and those before it as a rule: what goes directly overtakes the relay's.
func (f *frontier) finished(id int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
	f.highest = max(f.highest, id)
}

// released notes that a message with this id waits to be sent again: claims start below it for at least one settle time.
func (f *frontier) released(id int64, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
	f.hint, f.candidate, f.since = min(f.hint, id-1), min(f.candidate, id-1), now
}

// low is where a claim may start: an id that was finished at least one settle time ago.
func (f *frontier) low(now time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.advance(now)
	return f.hint
}

// high is the highest id known to be finished.
func (f *frontier) high() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.highest
}

func (f *frontier) advance(now time.Time) {
	if now.Sub(f.since) >= settleTime {
		f.hint, f.candidate, f.since = f.candidate, f.highest, now
	}
}
