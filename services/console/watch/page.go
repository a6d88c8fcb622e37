package watch

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Page is one open page: the topics that it looks at, and what it has been told of them.
type Page struct {
	hub    *Hub
	topics []*topic
	told   uint64 // the hub's count when it was last told
	signal chan struct{}
}

// Update is what changed in one topic. The first one of each topic holds everything.
type Update struct {
	Topic string `json:"topic"`
	// Keys are those of all parts, in their order, when they changed; a part that is not among them has gone.
	Keys   []string                  `json:"keys,omitzero"`
	Parts  map[string]jsontext.Value `json:"parts,omitzero"`
	Source *Health                   `json:"source,omitzero"`
}

// Next waits until something has changed since the last call, and answers that.
func (p *Page) Next(ctx context.Context) ([]Update, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-p.hub.ctx.Done():
			return nil, ErrHubClosed
		case <-p.signal:
		}
		if updates := p.changes(); len(updates) > 0 {
			return updates, nil
		}
	}
}

func (p *Page) changes() []Update {
	p.hub.m.Lock()
	defer p.hub.m.Unlock()
	var updates []Update
	for _, t := range p.topics {
		u := Update{Topic: t.name}
		if t.order > p.told {
			u.Keys = t.keys
		}
		for key, part := range t.parts {
			if part.changed > p.told {
				if u.Parts == nil {
					u.Parts = map[string]jsontext.Value{}
				}
				u.Parts[key] = part.value
			}
		}
		if t.since > p.told {
			state := t.state
			u.Source = &state
		}
		if u.Keys != nil || u.Parts != nil || u.Source != nil {
			updates = append(updates, u)
		}
	}
	p.told = p.hub.now
	return updates
}

// wake lets Next look. The caller has the hub's mutex.
func (p *Page) wake() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

// Close says that the page has gone.
func (p *Page) Close() {
	p.hub.m.Lock()
	defer p.hub.m.Unlock()
	p.leave()
}

// leave lets go of the page's topics. One that nobody looks at is polled for a little longer, because a page that is loaded again,
// or goes from one view to the next, comes back at once.
func (p *Page) leave() {
	for _, t := range p.topics {
		delete(t.pages, p)
		if len(t.pages) == 0 && t.idle == nil {
			t.idle = time.AfterFunc(p.hub.cfg.Grace, func() { p.hub.forget(t) })
		}
	}
	p.topics = nil
}

// forget ends a topic that nobody has come back to.
func (h *Hub) forget(t *topic) {
	h.m.Lock()
	defer h.m.Unlock()
	if len(t.pages) == 0 && h.topics[t.name] == t {
		delete(h.topics, t.name)
		t.end()
	}
}
