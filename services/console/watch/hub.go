// Package watch keeps what the console's pages show. There is one poller for each thing that somebody looks at, however many
// pages look at it, and none for what nobody looks at. A page is told what changed since it was last told, and nothing is
// kept for it: a slow page misses what was in between and always gets to the latest state.
package watch

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Part is a piece of a topic's state that changes by itself: one queue, one transfer.
type Part struct {
	Key   string
	Value jsontext.Value
}

// Source says where a topic's state comes from.
type Source struct {
	Upstream string        // who is asked
	Interval time.Duration // from the end of one poll to the next
	Quick    time.Duration // if given, the interval while something is going on: see lively
	// Poll asks once. Asked says that a page wants to know at once, because it has changed something.
	Poll func(ctx context.Context, asked bool) ([]Part, error)
	// Calm, if given, says whether the state it has found will hardly change any more; then it is asked ten times less often.
	Calm func([]Part) bool
}

// Config of a Hub.
type Config struct {
	Find   func(topic string) (Source, bool) // the topics that there are
	Grace  time.Duration                     // how long a topic is polled after its last page has gone; 0 means 3 s
	Topics int                               // how many may be polled at once; 0 means 100
	Logger *slog.Logger
}

// Hub knows all topics that somebody looks at.
type Hub struct {
	cfg    Config
	ctx    context.Context
	stop   context.CancelFunc
	polls  sync.WaitGroup
	m      sync.Mutex
	now    uint64 // counts changes; what changed later has the higher number
	topics map[string]*topic
	closed bool
}

// topic is the last known state of one thing. Everything in it is guarded by the hub's mutex.
type topic struct {
	name   string
	source Source
	pages  map[*Page]struct{}
	idle   *time.Timer
	end    context.CancelFunc
	poke   chan struct{}

	parts   map[string]part
	keys    []string // in the source's order
	order   uint64   // when keys changed
	state   Health
	since   uint64    // when state changed
	failing time.Time // when the first of the failed looks in a row began; zero after one that did not fail
}

type part struct {
	value   jsontext.Value
	changed uint64
}

// Health says whether a topic's source answers.
type Health struct {
	Upstream string     `json:"upstream"`
	OK       bool       `json:"ok"`
	Silent   bool       `json:"silent"`          // no answer at all, rather than an answer that says no
	Since    *time.Time `json:"since,omitempty"` // when it stopped being OK
	Reason   string     `json:"reason,omitempty"`
}

// The errors of Open.
var (
	ErrNoTopic   = errors.New("there is no such topic")
	ErrTooMany   = errors.New("too many different things are watched already")
	ErrHubClosed = errors.New("the console is stopping")
)

// NewHub makes a hub; nothing is asked yet.
func NewHub(cfg Config) *Hub {
	if cfg.Grace <= 0 {
		cfg.Grace = 3 * time.Second
	}
	if cfg.Topics <= 0 {
		cfg.Topics = 100
	}
	h := &Hub{cfg: cfg, topics: map[string]*topic{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h
}

// Run ends all polls when ctx does.
func (h *Hub) Run(ctx context.Context) error {
	<-ctx.Done()
	h.m.Lock()
	h.closed = true
	h.m.Unlock()
	h.stop()
	h.polls.Wait()
	return nil
}

// Open lets a page look at topics. Close it.
func (h *Hub) Open(names []string) (*Page, error) {
	h.m.Lock()
	defer h.m.Unlock()
	if h.closed {
		return nil, ErrHubClosed
	}
	p := &Page{hub: h, signal: make(chan struct{}, 1)}
	for _, name := range names {
		t, err := h.topic(name)
		if err != nil {
			p.leave()
			return nil, err
		}
		if t.idle != nil {
			t.idle.Stop()
			t.idle = nil
		}
		t.pages[p] = struct{}{}
		p.topics = append(p.topics, t)
	}
	p.wake()
	return p, nil
}

// Expect begins to ask for topics because a page is about to come that looks at them: when its browser has got so far as to say so, the
// answers are there.
func (h *Hub) Expect(names []string) {
	if p, err := h.Open(names); err == nil { // the page will hear why not
		p.Close() // after which they are asked for a little longer
	}
}

// topic answers the topic of a name and starts its poller when there is none.
func (h *Hub) topic(name string) (*topic, error) {
	if t := h.topics[name]; t != nil {
		return t, nil
	}
	source, ok := h.cfg.Find(name)
	if !ok {
		return nil, ErrNoTopic
	}
	if len(h.topics) >= h.cfg.Topics {
		return nil, ErrTooMany
	}
	ctx, end := context.WithCancel(h.ctx)
	t := &topic{
		name: name, source: source, end: end,
		pages: map[*Page]struct{}{}, parts: map[string]part{}, poke: make(chan struct{}, 1),
		state: Health{Upstream: source.Upstream, OK: true},
	}
	h.topics[name] = t
	h.polls.Go(func() { h.poll(ctx, t) })
	return t, nil
}

// Poke has topics asked at once, those that are being looked at: something was done that changes them.
func (h *Hub) Poke(names ...string) {
	h.m.Lock()
	defer h.m.Unlock()
	for _, name := range names {
		if t := h.topics[name]; t != nil {
			select {
			case t.poke <- struct{}{}:
			default: // it is about to be asked anyway
			}
		}
	}
}

func (t *topic) noteParts(parts []Part, now uint64) (changed bool) {
	keys := make([]string, len(parts))
	kept := make(map[string]part, len(parts))
	for i, p := range parts {
		keys[i] = p.Key
		known, there := t.parts[p.Key]
		if !there || !bytes.Equal(known.value, p.Value) {
			known, changed = part{p.Value, now}, true
		}
		kept[p.Key] = known
	}
	if t.order == 0 || !slices.Equal(keys, t.keys) {
		t.keys, t.order, changed = keys, now, true
	}
	t.parts = kept
	return changed
}
