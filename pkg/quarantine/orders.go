package quarantine

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

const (
	toQueue    = "queue"
	toExchange = "exchange"

	standardRate = 50.0   // messages a second
	largestRate  = 1000.0 // more than that is no longer a limit
	smallestRate = 0.1    // less, and a chunk would be held for longer than a broker bears
	longBecause  = 1000   // characters
)

// member is a member of a body that knows whether it was there. "queue": "" is what a script sends whose variable is not set; to take it
// for no filter would mean every message.
type member[T any] struct {
	given bool
	value T
}

// UnmarshalJSONFrom implements json.UnmarshalerFrom. A null is a given member without a value.
func (m *member[T]) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	m.given = true
	return json.UnmarshalDecode(d, &m.value)
}

// meant is the part of a body that says which messages are meant.
type meant struct {
	IDs       member[[]string] `json:"ids"`
	Queue     member[string]   `json:"queue"`
	Reason    member[string]   `json:"reason"`
	Class     member[string]   `json:"class"`
	Type      member[string]   `json:"type"`
	OlderThan member[string]   `json:"olderThan"`
	Limit     member[int]      `json:"limit"`
	All       bool             `json:"all"`
}

// filterOf makes the filter, or says what is wrong. What changes something needs a filter, or the word that every message is meant.
func (m *meant) filterOf(q *Quarantine, confirm bool) (filter, service.FieldErrors) {
	var wrong service.FieldErrors
	for _, text := range []struct {
		name string
		member[string]
	}{{"queue", m.Queue}, {"reason", m.Reason}, {"class", m.Class}, {"type", m.Type}, {"olderThan", m.OlderThan}} {
		if text.given && text.value == "" {
			wrong.Add(text.name, "must not be empty; leave it out to mean every one")
		}
	}
	if m.IDs.given && len(m.IDs.value) == 0 {
		wrong.Add("ids", "must name a message at least; leave it out to mean every one")
	}
	f := filter{IDs: m.IDs.value, Queue: m.Queue.value, Reason: m.Reason.value, Class: m.Class.value, Type: m.Type.value, OlderThan: m.OlderThan.value}
	if m.Limit.given {
		f.Limit = &m.Limit.value
	}
	wrong = append(wrong, q.check(&f, "ids")...)
	switch {
	case m.All && f.narrow():
		wrong.Add("all", "must not be given together with a filter")
	case confirm && !m.All && !f.narrow() && len(wrong) == 0:
		wrong.Add("all", "must be true when there is no filter: this would mean every message")
	}
	return f, wrong
}

// replayOrder is the body of a replay.
type replayOrder struct {
	meant   `json:",embed"`
	filter  filter                    `json:"-"`
	To      string                    `json:"to"`
	Canary  int                       `json:"canary"`
	Rate    float64                   `json:"rate"`
	Force   bool                      `json:"force"`
	Confirm bool                      `json:"confirm"`
	Others  map[string]jsontext.Value `json:",embed"`
}

func (q *Quarantine) replayOrderOf(c echo.Context) (*replayOrder, error) {
	order := &replayOrder{To: toQueue, Rate: standardRate}
	if err := service.DecodeJSON(c, order); err != nil {
		return nil, err
	}
	var wrong service.FieldErrors
	order.filter, wrong = order.filterOf(q, order.Confirm)
	unknownMembers(&wrong, order.Others)
	if order.To != toQueue && order.To != toExchange {
		wrong.Add("to", "must be queue or exchange")
	}
	if order.Canary < 0 || order.Canary > order.filter.limit {
		wrong.Add("canary", "must be a whole number from 0 to the limit")
	}
	if !(order.Rate >= smallestRate && order.Rate <= largestRate) {
		wrong.Add("rate", fmt.Sprintf("must be a number of messages a second, from %g to %g", smallestRate, largestRate))
	}
	return order, wrong.Err()
}

// discardOrder is the body of a discard.
type discardOrder struct {
	meant   `json:",embed"`
	filter  filter                    `json:"-"`
	Because string                    `json:"because"`
	Confirm bool                      `json:"confirm"`
	Others  map[string]jsontext.Value `json:",embed"`
}

func (q *Quarantine) discardOrderOf(c echo.Context) (*discardOrder, error) {
	order := &discardOrder{}
	if err := service.DecodeJSON(c, order); err != nil {
		return nil, err
	}
	var wrong service.FieldErrors
	order.filter, wrong = order.filterOf(q, order.Confirm)
	unknownMembers(&wrong, order.Others)
	switch {
	case strings.TrimSpace(order.Because) == "":
		wrong.Add("because", "is missing: say why these messages may be thrown away")
	case utf8.RuneCountInString(order.Because) > longBecause:
		wrong.Add("because", fmt.Sprintf("must have at most %d characters", longBecause))
	case strings.ContainsRune(order.Because, 0):
		wrong.Add("because", "must not contain NUL")
	}
	return order, wrong.Err()
}
