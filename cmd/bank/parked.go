package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// parkedCommand holds the verbs for messages that were given up. It is thin: the service that owns a quarantine queue does the work.
type parkedCommand struct {
	List    parkedList    `cmd:"" help:"List quarantined messages of all queues; takes nothing."`
	Show    parkedShow    `cmd:"" help:"Show quarantined messages with everything in them; takes nothing."`
	Replay  parkedReplay  `cmd:"" help:"Send quarantined messages on their way again; shows what it would do unless --yes is given."`
	Discard parkedDiscard `cmd:"" help:"Throw quarantined messages away, kept in the audit; shows what it would do unless --yes is given."`
	Audit   parkedAudit   `cmd:"" help:"Show who replayed and discarded what, newest first; or one entry as a whole."`
}

// parkedFilter says which messages are meant.
type parkedFilter struct {
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
	return len(f.ID) > 0 || f.Queue != "" || f.Reason != "" || f.Class != "" || f.Type != "" || f.OlderThan > 0
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
	if len(f.ID) > 0 {
		query["id"] = f.ids()
	}
	return query
}

// ids are those that are asked for, each once.
func (f *parkedFilter) ids() (ids []string) {
	for _, id := range f.ID {
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

// parkedMessage is a quarantined message as a service lists it.
type parkedMessage struct {
	Queue            string     `json:"queue"`
	Key              string     `json:"key"`
	MessageID        string     `json:"messageId"`
	Type             string     `json:"type"`
	TransferID       string     `json:"transferId"`
	Reason           string     `json:"reason"`
	Class            string     `json:"class"`
	Attempts         int64      `json:"attempts"`
	Error            string     `json:"error"`
	ParkedAt         *time.Time `json:"parkedAt"`
	FirstFailedAt    *time.Time `json:"firstFailedAt"`
	OriginQueue      string     `json:"originQueue"`
	OriginExchange   string     `json:"originExchange"`
	OriginRoutingKey string     `json:"originRoutingKey"`
	Service          string     `json:"service"`
	ReplayCount      int64      `json:"replayCount"`
}

// keepers are the services that own quarantine queues.
func keepers(to *endpoints) ([]*api, error) {
	if err := to.need("ADMIN_TOKEN"); err != nil {
		return nil, err
	}
	return []*api{to.account(), to.transfer()}, nil
}

// asAdmin are the headers of an admin call: the token, and who acts, for the audit.
func asAdmin(to *endpoints) []string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return []string{"Authorization", "Bearer " + to.AdminToken, "X-Operator", name + "@" + host}
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
			return err
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

type parkedList struct {
	parkedFilter `embed:""`
}

func (c *parkedList) Run(ctx context.Context, to *endpoints, out *output) error {
	return c.list(ctx, to, &parkedRows{out: out})
}

// list shows what the services have. A name of which none has a message is an error, even when other messages are shown.
func (f *parkedFilter) list(ctx context.Context, to *endpoints, rows *parkedRows) error {
	var nowhere missing
	var incomplete []string
	err := f.eachKeeper(to, func(service *api) error {
		if rows.shown >= f.Limit && rows.shown > 0 {
			rows.more = true
			return nil
		}
		var end parkedEnd
		query := f.query(f.Limit - rows.shown)
		if rows.whole {
			query.Set("whole", "true")
		}
		err := service.stream(ctx, http.MethodGet, "/admin/quarantine?"+query.Encode(), nil, rows.show, &end, asAdmin(to)...)
		if end.Incomplete != "" {
			incomplete = append(incomplete, service.name+": "+end.Incomplete)
		}
		rows.more = rows.more || end.Next != nil
		if err == nil {
			nowhere.answered(end.Missing)
		}
		return err
	})
	if err == nil || rows.shown > 0 {
		rows.end()
	}
	if len(incomplete) > 0 {
		err = errors.Join(err, errors.New("the list is incomplete: "+foreign(strings.Join(incomplete, "; "))))
	}
	if err == nil && !rows.more {
		err = nowhere.err(f.ids())
	}
	return err
}

// parkedEnd stands behind the items of a list.
type parkedEnd struct {
	Next       *string  `json:"next"`
	Missing    []string `json:"missing"`
	Incomplete string   `json:"incomplete"`
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

// parkedRows prints messages as they come, in columns of fixed width: nobody waits for ten thousand rows to see the first. In JSON it is
// one array.
type parkedRows struct {
	out   *output
	whole bool // not in columns, but with everything in them
	shown int
	more  bool // there are others beyond the limit
}

const parkedColumns = "%-9s  %-14s  %-12s  %5s  %7s  %-36s  %-36s  %s\n"

func (r *parkedRows) show(item jsontext.Value) error {
	r.shown++
	if r.out.json {
		separator := ",\n"
		if r.shown == 1 {
			separator = "[\n"
		}
		_, err := fmt.Fprintf(r.out, "%s  %s", separator, item)
		return err
	}
	if r.whole {
		var m wholeParked
		if err := json.Unmarshal(item, &m); err != nil {
			return err
		}
		if r.shown > 1 {
			fmt.Fprintln(r.out)
		}
		m.print(r.out)
		return nil
	}
	var m parkedMessage
	if err := json.Unmarshal(item, &m); err != nil {
		return err
	}
	if r.shown == 1 {
		fmt.Fprintf(r.out, parkedColumns, "PARKED", "REASON", "CLASS", "TRIES", "REPLAYS", "TYPE", "ID", "QUEUE: ERROR")
	}
	_, err := fmt.Fprintf(r.out, parkedColumns, ago(m.ParkedAt), orDash(foreign(m.Reason)), orDash(foreign(m.Class)), fmt.Sprint(m.Attempts),
		fmt.Sprint(m.ReplayCount), orDash(foreign(m.Type)), foreign(m.Key), foreign(m.Queue)+": "+short(foreign(m.Error), 100))
	return err
}

func (r *parkedRows) end() {
	switch {
	case r.out.json && r.shown == 0:
		fmt.Fprintln(r.out, "[]")
	case r.out.json:
		fmt.Fprintln(r.out, "\n]")
	case r.shown == 0 && r.whole: // which is an error, and said there
	case r.shown == 0:
		fmt.Fprintln(r.out, "nothing in quarantine matches")
	case r.more:
		fmt.Fprintf(r.out, "\nthe first %d; a higher --limit may show more\n", r.shown)
	}
}

// ago is a time as people ask for it.
func ago(at *time.Time) string {
	if at == nil {
		return "-"
	}
	switch d := time.Since(*at); {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", int(max(0, d).Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd ago", int(d.Hours()/24))
	}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
