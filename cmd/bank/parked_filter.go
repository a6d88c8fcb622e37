package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// parkedFilter says which messages are meant.
type parkedFilter struct {
	Name      []filled      `arg:"" optional:"" help:"The messages' ids or sha256: keys; the same as --id."`
	ID        []filled      `name:"id" sep:"none" help:"The body's messageId, or a sha256: key; may be repeated."`
	Queue     filled        `help:"Only of this queue: banking.dead-letters, or an account queue's name with _error behind it."`
	Reason    filled        `help:"Only these, e.g. MAX_ATTEMPTS, NOT_FOUND_AGED, VALIDATION, CRASH_LOOP, EXPIRED."`
	Class     filled        `help:"Only these: VALIDATION, INVARIANT, NOT_FOUND, CONFLICT, TIMEOUT, RATE_LIMITED or UNKNOWN."`
	Type      filled        `help:"Only of this message type."`
	OlderThan time.Duration `help:"Only what has been parked for longer, e.g. 1h30m."`
	Limit     int           `default:"100" help:"At most so many, 1 to 100000."`
}

// filled is a text that must not be empty where it is given: --queue "$Q" with an unset variable must not mean every queue.
type filled string

// Decode implements kong.MapperValue; it is not called for what is not given.
func (f *filled) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("text", &text); err != nil {
		return err
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("must not be empty; leave it out to mean every one")
	}
	*f = filled(text)
	return nil
}

// narrow says whether the filter leaves anything out, the limit aside.
func (f *parkedFilter) narrow() bool {
	return len(f.ids()) > 0 || f.Queue != "" || f.Reason != "" || f.Class != "" || f.Type != "" || f.OlderThan > 0
}

// parkedChange is what both verbs that change something have beside their filter.
type parkedChange struct {
	parkedFilter `embed:""`
	Yes          bool `help:"Do it. Without this nothing is changed."`
}

func (c *parkedChange) body(limit int) map[string]any {
	body := c.parkedFilter.body(limit)
	body["confirm"] = c.Yes
	return body
}

func (f *parkedFilter) query(limit int) url.Values {
	query := url.Values{"limit": {fmt.Sprint(limit)}}
	for name, value := range map[string]filled{"queue": f.Queue, "reason": f.Reason, "class": f.Class, "type": f.Type} {
		if value != "" {
			query.Set(name, string(value))
		}
	}
	if f.OlderThan != 0 {
		query.Set("olderThan", f.OlderThan.String())
	}
	if ids := f.ids(); len(ids) > 0 {
		query["id"] = ids
	}
	return query
}

// ids are those that are asked for, each once.
func (f *parkedFilter) ids() (ids []string) {
	for _, id := range slices.Concat(f.ID, f.Name) {
		if !slices.Contains(ids, string(id)) {
			ids = append(ids, string(id))
		}
	}
	return ids
}

func (f *parkedFilter) body(limit int) map[string]any {
	body := map[string]any{"limit": limit}
	for name, values := range f.query(limit) {
		switch name {
		case "limit":
		case "id":
			body["ids"] = values
		default:
			body[name] = values[0]
		}
	}
	return body
}

// eachKeeper asks every service, the next one also when one fails: what can be had is shown, and the failure told at the end. A service that
// does not own the queue that the filter names has nothing to say, unless none owns it.
func (f *parkedFilter) eachKeeper(to *endpoints, ask func(*api) error) error {
	services, err := keepers(to)
	if err != nil {
		return err
	}
	var failures, strangers []error
	for _, service := range services {
		switch err := ask(service); {
		case err != nil && f.Queue != "" && onlyQueueWrong(err):
			strangers = append(strangers, err)
		case refusedWith(err, http.StatusBadRequest): // so will the others
			return errors.Join(append(failures, err)...)
		case err != nil:
			failures = append(failures, err)
		}
	}
	if len(failures) == 0 && len(strangers) == len(services) {
		return fmt.Errorf("no service has a quarantine queue %q: there are banking.dead-letters and the account queues' _error queues", f.Queue)
	}
	return errors.Join(failures...)
}

// onlyQueueWrong says whether a service refuses a call because the queue is not its own.
func onlyQueueWrong(err error) bool {
	var refusal *problem
	return errors.As(err, &refusal) && refusal.Status == http.StatusBadRequest && len(refusal.Errors) == 1 && refusal.Errors[0].Field == "queue"
}

// missing counts how many services do not know an id. Only what none of them knows names nothing.
type missing struct {
	services int
	by       map[string]int
}

func (m *missing) answered(ids []string) {
	m.services++
	for _, id := range ids {
		if m.by == nil {
			m.by = map[string]int{}
		}
		m.by[id]++
	}
}

func (m *missing) everywhere(ids []string) []string {
	nowhere := []string{}
	for _, id := range ids {
		if m.services > 0 && m.by[id] == m.services {
			nowhere = append(nowhere, id)
		}
	}
	return nowhere
}

func (m *missing) err(ids []string) error {
	nowhere := m.everywhere(ids)
	if len(nowhere) == 0 {
		return nil
	}
	return fmt.Errorf("not in quarantine: %s", foreign(strings.Join(nowhere, ", ")))
}
