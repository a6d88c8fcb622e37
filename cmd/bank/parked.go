package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"
	"time"

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
	return append([]*api{to.account(), to.transfer()}, to.others()...), nil
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

type parkedList struct {
	parkedFilter `embed:""`
}

func (c *parkedList) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	rows := &parkedRows{out: out}
	err := c.list(ctx, to, rows)
	if rows.shown == 0 {
		c.hint(term)
	}
	return err
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
