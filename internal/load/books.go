package load

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Report is what a load has met so far.
type Report struct {
	Sent     int            `json:"sent"`
	Accepted int            `json:"accepted"`
	Failed   int            `json:"failed"`   // refused, or not answered
	TimedOut int            `json:"timedOut"` // of them, not answered in time: they took longest, and are in no percentile
	Error    string         `json:"error,omitzero"`
	Ended    map[string]int `json:"ended,omitempty"` // by status
	Open     int            `json:"open"`            // accepted and not known to have ended
	Blind    bool           `json:"blind,omitzero"`  // the news of ends do not come: those that are open may have ended as well
	Asked    int            `json:"asked,omitzero"`  // ended and no news came, found out by asking; in no percentile of End

	Answer  Latencies     `json:"answer"` // from the time a transfer was due to the answer 202
	End     Latencies     `json:"end"`    // to the news that it has ended
	Sending time.Duration `json:"-"`      // how long sending took; at the end only
}

// Latencies are percentiles of durations.
type Latencies struct {
	P50  time.Duration `json:"p50"`
	P90  time.Duration `json:"p90"`
	P99  time.Duration `json:"p99"`
	P999 time.Duration `json:"p999"`
	Max  time.Duration `json:"max"`
}

// Measure computes percentiles: P99 is the least value that at least 99 % of the samples do not exceed. It sorts the samples. Of none
// all percentiles are 0.
func Measure(samples []time.Duration) Latencies {
	if len(samples) == 0 {
		return Latencies{}
	}
	slices.Sort(samples)
	at := func(share float64) time.Duration {
		return samples[max(0, int(math.Ceil(share*float64(len(samples))))-1)]
	}
	return Latencies{P50: at(0.5), P90: at(0.9), P99: at(0.99), P999: at(0.999), Max: samples[len(samples)-1]}
}

// books note what became of each transfer.
type books struct {
	m       sync.Mutex
	r       Report
	watched bool
	due     map[string]time.Time // of accepted transfers that have not ended
	early   map[string]Ended     // ended, but the answer that tells the id is still on its way
	answers []time.Duration
	ends    []time.Duration
	over    bool          // no more news will come
	deaf    time.Time     // the news of what was accepted before may have been lost
	changed chan struct{} // closed when a transfer has ended
}

func newBooks(watched bool) *books {
	return &books{
		watched: watched, r: Report{Ended: map[string]int{}},
		due: map[string]time.Time{}, early: map[string]Ended{}, changed: make(chan struct{}),
	}
}

func (b *books) sent() {
	b.m.Lock()
	defer b.m.Unlock()
	b.r.Sent++
}

func (b *books) failed(err error) {
	b.m.Lock()
	defer b.m.Unlock()
	b.r.Failed++
	if waiting, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && waiting.Timeout() {
		b.r.TimedOut++
	}
	b.r.Error = err.Error()
}

func (b *books) accepted(id string, due, now time.Time) {
	b.m.Lock()
	defer b.m.Unlock()
	b.r.Accepted++
	b.answers = append(b.answers, now.Sub(due))
	if !b.watched {
		return
	}
	b.due[id] = due
	if e, known := b.early[id]; known {
		delete(b.early, id)
		b.end(e)
	}
}

func (b *books) ended(e Ended) {
	b.m.Lock()
	defer b.m.Unlock()
	if _, known := b.due[e.ID]; !known {
		b.early[e.ID] = e // or somebody else's: a few of those do not matter
		return
	}
	b.end(e)
}

// end notes the end of a transfer whose answer is known. The caller holds the lock.
func (b *books) end(e Ended) {
	b.ends = append(b.ends, e.At.Sub(b.due[e.ID]))
	delete(b.due, e.ID)
	b.r.Ended[e.Status]++
	close(b.changed)
	b.changed = make(chan struct{})
}

// blind notes that no more ends will be heard of.
func (b *books) blind() {
	b.m.Lock()
	defer b.m.Unlock()
	b.r.Blind, b.over = true, true
	close(b.changed)
	b.changed = make(chan struct{})
}

// signal notes that the news of ends were lost, or come again.
func (b *books) signal(e Ended) {
	b.m.Lock()
	defer b.m.Unlock()
	b.r.Blind = e.Signal == Lost
	if e.Signal == Back {
		b.deaf = e.At
	}
}

// unheard are open transfers whose end may have been missed, so many at most.
func (b *books) unheard(most int) (ids []string) {
	b.m.Lock()
	defer b.m.Unlock()
	if b.r.Blind || b.deaf.IsZero() {
		return nil
	}
	for id, due := range b.due {
		if len(ids) < most && due.Before(b.deaf) {
			ids = append(ids, id)
		}
	}
	return ids
}

// open are the transfers that are not known to have ended; none when the news are known to be lost, which is what is said of them then.
func (b *books) open() []string {
	b.m.Lock()
	defer b.m.Unlock()
	if b.r.Blind {
		return nil
	}
	return slices.Collect(maps.Keys(b.due))
}

// found notes an end that nobody told of.
func (b *books) found(id, status string) {
	b.m.Lock()
	defer b.m.Unlock()
	if _, open := b.due[id]; !open {
		return // the news came meanwhile
	}
	delete(b.due, id)
	b.r.Ended[status]++
	b.r.Asked++
	close(b.changed)
	b.changed = make(chan struct{})
}

// wait returns when no accepted transfer is open, nothing more will be heard, or ctx ends.
func (b *books) wait(ctx context.Context) {
	for {
		b.m.Lock()
		open, blind, changed := len(b.due), b.over, b.changed
		b.m.Unlock()
		if open == 0 || blind {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func (b *books) report() Report {
	b.m.Lock()
	r := b.r
	r.Ended = maps.Clone(r.Ended)
	r.Open = len(b.due)
	answers, ends := slices.Clone(b.answers), slices.Clone(b.ends)
	b.m.Unlock()
	r.Answer, r.End = Measure(answers), Measure(ends)
	return r
}
