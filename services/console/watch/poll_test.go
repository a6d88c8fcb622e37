package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/banking/services/console/upstream"
	"github.com/go-json-experiment/json/jsontext"
)

// What a service has committed is known to a page within 450 ms, at the worst moment for it, after a quiet minute, when an answer takes 50 ms and
// shows what was there when it was asked for. With the 50 ms for which package main lets a page wait that is half a second. The
// time is synctest's: it is the sources' intervals that are tested, and no machine.
func TestAnEventIsKnownInTime(t *testing.T) {
	t.Parallel()
	const answer, limit = 50 * time.Millisecond, 450 * time.Millisecond
	bank := &Bank{Account: &upstream.Upstream{}, Transfer: &upstream.Upstream{}, Management: &upstream.Upstream{}}
	for _, topic := range []string{"transfers", "transfers:REFUNDED", "transfer:" + someID, "leg:" + someID, "accounts", "account:" + someID, "summary"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			source, ok := bank.Find(topic)
			if !ok {
				t.Fatal("cannot be watched")
			}
			synctest.Test(t, func(t *testing.T) {
				var committed atomic.Int64
				source.Poll = func(context.Context, bool) ([]Part, error) {
					seen := committed.Load()
					time.Sleep(answer)
					return []Part{{"n", jsontext.Value(fmt.Sprint(seen))}}, nil
				}
				h := NewHub(Config{Logger: slog.New(slog.DiscardHandler), Find: func(string) (Source, bool) { return source, true }})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); _ = h.Run(ctx) }()
				defer func() { cancel(); <-ended }()
				p := open(t, h, topic)
				var shown seen
				shown.until(t, p, "first state", func(s *seen) bool { return s.parts["n"] == "0" })
				for i := range 40 {
					time.Sleep(time.Minute + time.Duration(i)*13*time.Millisecond) // each time at another moment of the rhythm
					at := time.Now()
					committed.Add(1)
					shown.until(t, p, "the event", func(s *seen) bool { return s.parts["n"] == fmt.Sprint(i+1) })
					if took := time.Since(at); took > limit {
						t.Errorf("after %s, want %s at most", took, limit)
					}
				}
			})
		})
	}
}

// While something goes on it is asked for more often, and soon no longer.
func TestWhatMovesIsAskedForMoreOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{parts: []Part{{"a", value("1")}}, every: time.Second, quick: 100 * time.Millisecond}
		h := hubOf(t, Config{}, map[string]*source{"x": s})
		open(t, h, "x")
		polls := func(during time.Duration) int64 {
			before := s.polled.Load()
			time.Sleep(during)
			return s.polled.Load() - before
		}
		time.Sleep(time.Minute)
		if n := polls(10 * time.Second); n < 9 || n > 11 {
			t.Errorf("polled %d times in 10 quiet seconds, want 10", n)
		}
		s.set(nil, Part{"a", value("2")})
		if n := polls(4 * time.Second); n < 18 || n > 26 {
			t.Errorf("polled %d times in the 4 s after a change, want about 20 in 2 s and 2 after them", n)
		}
		h.Poke("x") // a page has done something, and waits for what comes of it
		if n := polls(2 * time.Second); n < 18 || n > 22 {
			t.Errorf("polled %d times in the 2 s after an order, want 20", n)
		}
	})
}

// One late answer does not make the next look late as well, neither the first nor any other. Two in a row do.
func TestASingleLateAnswerIsNotBelieved(t *testing.T) {
	t.Parallel()
	const late, interval = 300 * time.Millisecond, 250 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var rests []time.Duration // between the end of an answer and the next look
		var ended time.Time
		source := Source{Upstream: "fake", Interval: interval, Poll: func(context.Context, bool) ([]Part, error) {
			n := len(rests)
			if rests = append(rests, time.Since(ended)); n == 0 || n == 5 || n > 8 {
				time.Sleep(late)
			}
			ended = time.Now()
			return nil, nil
		}}
		h := NewHub(Config{Logger: slog.New(slog.DiscardHandler), Find: func(string) (Source, bool) { return source, true }})
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); _ = h.Run(ctx) }()
		open(t, h, "x")
		time.Sleep(10 * time.Second)
		cancel()
		<-stopped
		for n, rest := range rests[1:] {
			if want := interval; n < 10 && rest != want || n >= 10 && rest != share*late {
				t.Errorf("look %d came %s after an answer", n+1, rest)
			}
		}
		if len(rests) < 12 {
			t.Errorf("only %d looks", len(rests))
		}
	})
}

// One failed look says nothing about a source, whatever the failure: nothing is told, and it is asked again soon.
func TestASingleFailureIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{
		"no answer": &upstream.Silent{Name: "fake", Cause: errors.New("connection reset")},
		"a 500":     &upstream.Refusal{Name: "fake", Status: 500}, // RabbitMQ's, while a queue is being deleted
		"a 503":     &upstream.Refusal{Name: "fake", Status: 503},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &source{parts: []Part{{"a", value("1")}}, every: 10 * time.Second}
				p := open(t, hubOf(t, Config{}, map[string]*source{"x": s}), "x")
				var shown seen
				shown.until(t, p, "first state", func(s *seen) bool { return s.parts["a"] == "1" })

				for range 3 { // failures with an answer between them are single ones
					s.set(failure)
					before := s.polled.Load()
					for s.polled.Load() < before+2 {
						time.Sleep(again)
					}
					s.set(nil, Part{"a", value("1")})
					time.Sleep(time.Minute)
				}
				if updates := p.changes(); len(updates) != 0 {
					t.Fatalf("told %+v, want nothing", updates)
				}

				s.set(failure)
				for before := s.polled.Load(); s.polled.Load() == before; {
					time.Sleep(time.Millisecond)
				}
				began := time.Now()
				shown.until(t, p, "the failure", func(s *seen) bool { return !s.state.OK })
				if took := time.Since(began); took < doubt-10*time.Millisecond || took > doubt+2*again {
					t.Errorf("told after %s of failing, want about %s", took, doubt)
				}
				if since := shown.state.Since; since == nil || since.Sub(began).Abs() > time.Second {
					t.Errorf("since %v, want when the first look failed, %v", since, began)
				}
			})
		})
	}
}

// A look that took a second to fail is as good as several.
func TestSilenceUntilTheLimitIsBelievedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{err: &upstream.Silent{Name: "fake", Cause: context.DeadlineExceeded}, every: time.Second, takes: pollTime}
		p := open(t, hubOf(t, Config{}, map[string]*source{"x": s}), "x")
		var shown seen
		shown.until(t, p, "the failure", func(s *seen) bool { return s.state.Silent })
		if n := s.polled.Load(); n != 1 {
			t.Errorf("told after %d looks, want 1", n)
		}
		time.Sleep(time.Minute)
		if n := s.polled.Load(); n < 5 || n > 8 {
			t.Errorf("asked %d times in a minute in which each answer was waited for 5 s, want 6: it has to be seen when it is back", n)
		}
	})
}
