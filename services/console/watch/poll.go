package watch

import (
	"context"
	"errors"
	"time"

	"example.com/banking/services/console/upstream"
)

// What an event's way to the screen may take is spent here: at most Interval and twice the time of an answer until it is known, then what
// package main lets a page wait (calm), and a frame of the browser's. With the sources of Bank that is well below half a second as long as
// answers take less than 50 ms.
const (
	pollTime = 5 * time.Second // how long an answer may take
	// share is what part of its time a source may be kept busy by one topic, at most: one that takes 100 ms to answer is asked
	// twice a second, whatever the interval. It is the quicker of the last two answers that counts: one that is late says nothing, and the
	// first of all is late where connections have to be made and statements to be planned.
	share = 4
	// lively is for how long something counts as going on after the first look, a change, or an order of a page's: what has moved moves
	// on, as a transfer does from one service to the other.
	lively = 2 * time.Second
	// doubt is how long a source has to fail until pages are told. One failed look says nothing: RabbitMQ answers with 500 while a
	// queue is being deleted, a service that is started anew is back in a moment, and a banner that flashes is one that nobody reads.
	doubt = time.Second
	// again is after what time a source is asked again whose failure is not believed yet, and afterwards that of one that is away.
	again, afterwards = 250 * time.Millisecond, time.Second
)

// poll asks a topic's source again and again until nobody looks any more.
func (h *Hub) poll(ctx context.Context, t *topic) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	moved, took := time.Now(), time.Duration(0)
	for asked := false; ; asked = false {
		select {
		case <-ctx.Done():
			return
		case <-t.poke:
			asked = true
		case <-timer.C:
		}
		began := time.Now()
		bounded, cancel := context.WithTimeout(ctx, pollTime)
		parts, err := t.source.Poll(bounded, asked)
		cancel()
		if ctx.Err() != nil {
			return
		}
		changed, trusted := h.take(t, began, parts, err)
		if changed || asked {
			moved = time.Now()
		}
		before := took
		took = time.Since(began)
		switch {
		case err != nil && trusted:
			timer.Reset(max(again, took))
		case err != nil:
			timer.Reset(max(afterwards, t.source.Interval, took))
		default:
			timer.Reset(max(t.source.pause(parts, time.Since(moved)), share*min(before, took)))
		}
	}
}

// pause is the time until the next poll of a source that answers, in which nothing has moved for so long.
func (s Source) pause(parts []Part, still time.Duration) time.Duration {
	switch {
	case s.Quick > 0 && still < lively:
		return s.Quick
	case s.Calm != nil && s.Calm(parts):
		return 10 * s.Interval
	}
	return s.Interval
}

// take notes what a poll has found that began then, and wakes the pages when it is new. It answers whether the state has changed, and
// whether the source counts as one that answers.
func (h *Hub) take(t *topic, began time.Time, parts []Part, err error) (changed, trusted bool) {
	h.m.Lock()
	defer h.m.Unlock()
	h.now++
	answered := t.state.OK
	told := t.noteHealth(err, began, h.now)
	if t.state.OK != answered {
		h.cfg.Logger.Info("what is watched has changed its mood", "topic", t.name, "ok", t.state.OK, "reason", t.state.Reason)
	}
	if err == nil {
		changed = t.noteParts(parts, h.now)
	}
	if changed || told {
		for p := range t.pages {
			p.wake()
		}
	}
	return changed, t.state.OK
}

// noteHealth notes how a look has ended, and answers whether that is news for pages.
func (t *topic) noteHealth(err error, began time.Time, now uint64) bool {
	next := Health{Upstream: t.source.Upstream, OK: err == nil}
	if err == nil {
		t.failing = time.Time{}
	} else {
		if t.failing.IsZero() {
			t.failing = began
		}
		if t.state.OK && time.Since(t.failing) < doubt {
			return false
		}
		var silent *upstream.Silent
		next.Silent = errors.As(err, &silent)
		next.Reason = err.Error()
		at := t.failing.UTC().Truncate(time.Second)
		next.Since = &at
	}
	if t.since != 0 && next.OK == t.state.OK && next.Silent == t.state.Silent && next.Reason == t.state.Reason {
		return false
	}
	t.state, t.since = next, now
	return true
}
