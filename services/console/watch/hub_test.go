package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/banking/services/console/upstream"
	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is a scripted source: each poll takes the state as it is then.
type source struct {
	m      sync.Mutex
	parts  []Part
	err    error
	polled atomic.Int64
	asked  atomic.Int64
	every  time.Duration
	quick  time.Duration
	takes  time.Duration
}

func (s *source) set(err error, parts ...Part) {
	s.m.Lock()
	defer s.m.Unlock()
	s.parts, s.err = parts, err
}

func (s *source) poll(_ context.Context, asked bool) ([]Part, error) {
	s.polled.Add(1)
	if s.takes > 0 {
		time.Sleep(s.takes) // in the time of synctest, which does not wait
	}
	if asked {
		s.asked.Add(1)
	}
	s.m.Lock()
	defer s.m.Unlock()
	return s.parts, s.err
}

// hubOf makes a running hub with these sources.
func hubOf(t *testing.T, cfg Config, sources map[string]*source) *Hub {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.Find = func(topic string) (Source, bool) {
		s := sources[topic]
		if s == nil {
			return Source{}, false
		}
		return Source{Upstream: "fake", Interval: max(s.every, time.Millisecond), Quick: s.quick, Poll: s.poll}, true
	}
	h := NewHub(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = h.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return h
}

func open(t *testing.T, h *Hub, topics ...string) *Page {
	t.Helper()
	p, err := h.Open(topics)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// seen is what a page would show: it applies updates as the page does.
type seen struct {
	keys  []string
	parts map[string]string
	state Health
}

func (s *seen) apply(updates []Update) {
	for _, u := range updates {
		if s.parts == nil {
			s.parts = map[string]string{}
		}
		for key, value := range u.Parts {
			s.parts[key] = string(value)
		}
		if u.Keys != nil {
			s.keys = u.Keys
			for key := range s.parts {
				if !slices.Contains(u.Keys, key) {
					delete(s.parts, key)
				}
			}
		}
		if u.Source != nil {
			s.state = *u.Source
		}
	}
}

// until reads updates until the page shows what is wanted.
func (s *seen) until(t *testing.T, p *Page, what string, ok func(*seen) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !ok(s) {
		updates, err := p.Next(ctx)
		if err != nil {
			t.Fatalf("%s: %v; shown: %+v", what, err, s)
		}
		s.apply(updates)
	}
}

func value(text string) jsontext.Value { return jsontext.Value(text) }

func TestNothingIsPolledWhileNobodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{parts: []Part{{"a", value("1")}}, every: time.Second}
		h := hubOf(t, Config{Grace: 3 * time.Second}, map[string]*source{"x": s})
		time.Sleep(time.Hour) // all of these in the time of synctest, which does not wait
		if n := s.polled.Load(); n != 0 {
			t.Errorf("polled %d times before anybody has looked", n)
		}
		p := open(t, h, "x")
		time.Sleep(time.Minute)
		p.Close()
		again := open(t, h, "x") // the same page, loaded again
		time.Sleep(time.Minute)
		again.Close()
		time.Sleep(4 * time.Second)
		gone := s.polled.Load()
		if gone < 110 || gone > 130 {
			t.Errorf("polled %d times in two minutes, want once a second", gone)
		}
		time.Sleep(time.Hour) // all of these in the time of synctest, which does not wait
		if n := s.polled.Load(); n != gone {
			t.Errorf("polled %d more times after the last page had gone", n-gone)
		}
	})
}

// What takes long to answer is asked less often, so that the console is never what keeps it busy.
func TestASlowSourceIsAskedLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &source{every: 200 * time.Millisecond, takes: time.Second}
		open(t, hubOf(t, Config{}, map[string]*source{"x": s}), "x")
		time.Sleep(110 * time.Second)
		if n := s.polled.Load(); n < 21 || n > 23 {
			t.Errorf("polled %d times in 110 s, want 22: a fifth of its time", n)
		}
	})
}

func TestFiftyPagesCostAsMuchAsOne(t *testing.T) {
	t.Parallel()
	s := &source{parts: []Part{{"a", value("1")}}, every: time.Hour}
	h := hubOf(t, Config{}, map[string]*source{"x": s})
	for range 50 {
		p := open(t, h, "x")
		var shown seen
		shown.until(t, p, "first state", func(s *seen) bool { return s.parts["a"] == "1" })
	}
	if n := s.polled.Load(); n != 1 {
		t.Errorf("50 pages made %d polls, want 1", n)
	}
}

func TestOnlyWhatChangedIsTold(t *testing.T) {
	t.Parallel()
	s := &source{parts: []Part{{"a", value("1")}, {"b", value("1")}}}
	h := hubOf(t, Config{}, map[string]*source{"x": s})
	p := open(t, h, "x")
	var shown seen
	shown.until(t, p, "first state", func(s *seen) bool { return len(s.parts) == 2 })

	s.set(nil, Part{"a", value("1")}, Part{"b", value("2")})
	updates, err := p.Next(t.Context())
	if err != nil || len(updates) != 1 || len(updates[0].Parts) != 1 || string(updates[0].Parts["b"]) != "2" || updates[0].Keys != nil || updates[0].Source != nil {
		t.Fatalf("got %+v, %v; want b alone", updates, err)
	}
	shown.apply(updates)

	s.set(nil, Part{"c", value("3")}, Part{"b", value("2")})
	shown.until(t, p, "a has gone and c is first", func(s *seen) bool {
		return slices.Equal(s.keys, []string{"c", "b"}) && len(s.parts) == 2 && s.parts["c"] == "3"
	})
	s.set(nil)
	shown.until(t, p, "all have gone", func(s *seen) bool { return len(s.keys) == 0 && len(s.parts) == 0 })
}

func TestASlowPageGetsTheLatestState(t *testing.T) {
	t.Parallel()
	s := &source{}
	h := hubOf(t, Config{}, map[string]*source{"x": s})
	slow, quick := open(t, h, "x"), open(t, h, "x")
	var shown seen
	for i := range 200 {
		s.set(nil, Part{"n", value(fmt.Sprint(i))})
		shown.until(t, quick, "each state", func(s *seen) bool { return s.parts["n"] == fmt.Sprint(i) })
	}
	updates, err := slow.Next(t.Context())
	if err != nil || len(updates) != 1 || string(updates[0].Parts["n"]) != "199" {
		t.Errorf("got %+v, %v; want the 200th state alone", updates, err)
	}
}

func TestASourceThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := &source{parts: []Part{{"a", value("1")}}}
	h := hubOf(t, Config{}, map[string]*source{"x": s, "y": {parts: []Part{{"other", value("0")}}}})
	p := open(t, h, "x")
	var shown seen
	shown.until(t, p, "first state", func(s *seen) bool { return s.parts["a"] == "1" && s.state.OK })

	s.set(&upstream.Silent{Name: "fake", Cause: errors.New("connection refused")})
	shown.until(t, p, "silence", func(s *seen) bool { return !s.state.OK && s.state.Silent })
	since := shown.state.Since
	if since == nil || time.Since(*since) > time.Minute || shown.parts["a"] != "1" {
		t.Errorf("shown %+v: want a time and the last known state", shown)
	}
	var other seen
	other.until(t, open(t, h, "y"), "another topic goes on", func(s *seen) bool { return s.parts["other"] == "0" })

	s.set(&upstream.Refusal{Name: "fake", Status: 503, Detail: "the database is away"})
	h.Poke("x")
	shown.until(t, p, "an answer that says no", func(s *seen) bool { return !s.state.OK && !s.state.Silent })
	if !shown.state.Since.Equal(*since) {
		t.Errorf("since %v, want %v: it has been in trouble all the time", shown.state.Since, since)
	}
	s.set(nil, Part{"a", value("2")})
	h.Poke("x")
	shown.until(t, p, "recovery", func(s *seen) bool { return s.state.OK && s.parts["a"] == "2" && s.state.Since == nil })
}

func TestAPokeIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	s := &source{parts: []Part{{"a", value("1")}}, every: time.Hour}
	h := hubOf(t, Config{}, map[string]*source{"x": s})
	p := open(t, h, "x")
	var shown seen
	shown.until(t, p, "first state", func(s *seen) bool { return s.parts["a"] == "1" })
	s.set(nil, Part{"a", value("2")})
	h.Poke("x", "what nobody looks at")
	shown.until(t, p, "the state after the poke", func(s *seen) bool { return s.parts["a"] == "2" })
	if s.asked.Load() != 1 {
		t.Errorf("asked %d times, want 1", s.asked.Load())
	}
}

func TestWhatCannotBeWatched(t *testing.T) {
	t.Parallel()
	h := hubOf(t, Config{Topics: 1}, map[string]*source{"x": {}, "y": {}})
	if _, err := h.Open([]string{"x", "nonsense"}); !errors.Is(err, ErrNoTopic) {
		t.Errorf("got %v, want ErrNoTopic", err)
	}
	if _, err := h.Open([]string{"x", "y"}); !errors.Is(err, ErrTooMany) {
		t.Errorf("got %v, want ErrTooMany", err)
	}
	p := open(t, h, "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for {
		if _, err := p.Next(ctx); err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the context's end", err)
			}
			break
		}
	}
}

func TestPagesEndWithTheHub(t *testing.T) {
	t.Parallel()
	h := NewHub(Config{Logger: slog.New(slog.DiscardHandler), Find: func(string) (Source, bool) {
		return Source{Interval: time.Millisecond, Poll: (&source{}).poll}, true
	}})
	p, err := h.Open([]string{"x"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Run(ctx); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = p.Next(t.Context())
	}
	if !errors.Is(err, ErrHubClosed) {
		t.Errorf("got %v, want ErrHubClosed", err)
	}
	p.Close()
	if _, err := h.Open([]string{"x"}); !errors.Is(err, ErrHubClosed) {
		t.Errorf("a page after the end: got %v, want ErrHubClosed", err)
	}
}
