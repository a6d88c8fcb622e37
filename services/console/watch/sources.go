package watch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/console/upstream"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"
)

// Bank is what is watched.
type Bank struct {
	Account, Transfer *upstream.Upstream
	Others            []*upstream.Upstream // services that were added to these two; what they count and what they gave up is watched
	Management        *upstream.Upstream
	Vhost             string
	AdminToken        string
}

// Statuses of a transfer, by which the list can be watched.
var statuses = map[string]bool{"REQUESTED": true, "DEBITED": true, "REFUNDING": true, "COMPLETED": true, "REJECTED": true, "REFUNDED": true}

// NeedsSession says whether only who is signed in may look at a topic: what is in quarantine is read with the admin token.
func NeedsSession(topic string) bool { return strings.HasPrefix(topic, "parked:") }

// How often is asked for what transfers change, while nothing happens and while something does: what a service has committed is to be on
// screen within half a second. What the broker counts can be no newer than its statistics, which it makes every five seconds.
const (
	event      = 250 * time.Millisecond
	eventQuick = 75 * time.Millisecond
)

// Find answers the source of a topic. Topics are
//
//	queues, topology              of the broker
//	metrics:account, :transfer    what the services count, the added ones too
//	ledger, accounts, account:ID  and the account's statement
//	transfers, transfers:STATUS   the newest fifty
//	summary                       transfers by status
//	transfer:ID, leg:ID           a transfer as transfer knows it, and as account does
//	parked:account, :transfer     what is in quarantine, likewise
func (b *Bank) Find(topic string) (Source, bool) {
	kind, arg, qualified := strings.Cut(topic, ":")
	if !qualified {
		return b.plain(kind)
	}
	switch kind {
	case "metrics", "parked":
		i := slices.IndexFunc(b.Services(), func(s *upstream.Upstream) bool { return s.Name == arg })
		if i < 0 {
			return Source{}, false
		}
		of := b.Services()[i]
		if kind == "metrics" {
			return Source{Upstream: of.Name, Interval: time.Second, Poll: metricsOf(of)}, true
		}
		return Source{Upstream: of.Name, Interval: time.Second, Poll: b.parkedOf(of)}, true
	case "transfers":
		return Source{Upstream: b.Transfer.Name, Interval: event, Quick: eventQuick,
			Poll: items(b.Transfer, "/transfers?limit=50&status="+arg, "id")}, statuses[arg]
	}
	id, ok := contract.ParseID(arg)
	if !ok || id.String() != arg { // one spelling only, or the same thing would be asked for twice
		return Source{}, false
	}
	switch kind {
	case "account":
		return Source{Upstream: b.Account.Name, Interval: event, Quick: eventQuick,
			Poll: documents(b.Account, document{"account", "/accounts/" + arg}, document{"entries", "/accounts/" + arg + "/entries?limit=100"})}, true
	case "transfer":
		return Source{Upstream: b.Transfer.Name, Interval: event, Quick: eventQuick, Calm: ended,
			Poll: documents(b.Transfer, document{"transfer", "/transfers/" + arg}, document{"life", "/transfers/" + arg + "/life"})}, true
	case "leg":
		return Source{Upstream: b.Account.Name, Interval: event, Quick: eventQuick, Calm: ended,
			Poll: documents(b.Account, document{"leg", "/legs/" + arg}, document{"life", "/legs/" + arg + "/life"})}, true
	}
	return Source{}, false
}

// Services are all that take messages.
func (b *Bank) Services() []*upstream.Upstream {
	return append([]*upstream.Upstream{b.Account, b.Transfer}, b.Others...)
}

func (b *Bank) plain(topic string) (Source, bool) {
	switch topic {
	case "queues":
		return Source{Upstream: b.Management.Name, Interval: time.Second, Poll: b.queues}, true
	case "topology":
		return Source{Upstream: b.Management.Name, Interval: 10 * time.Second, Poll: b.topology}, true
	case "ledger":
		return Source{Upstream: b.Account.Name, Interval: 2 * time.Second, Poll: documents(b.Account, document{"ledger", "/ledger"})}, true
	case "accounts":
		return Source{Upstream: b.Account.Name, Interval: event, Quick: eventQuick, Poll: items(b.Account, "/accounts?limit=200", "id")}, true
	case "transfers":
		return Source{Upstream: b.Transfer.Name, Interval: event, Quick: eventQuick, Poll: items(b.Transfer, "/transfers?limit=50", "id")}, true
	case "summary":
		return Source{Upstream: b.Transfer.Name, Interval: event, Quick: eventQuick, Poll: documents(b.Transfer, document{"summary", "/transfers/summary"})}, true
	}
	return Source{}, false
}

// items polls a list, each item of it a part. What follows the first page is told by a part "next".
func items(of *upstream.Upstream, path, id string) func(context.Context, bool) ([]Part, error) {
	return func(ctx context.Context, _ bool) ([]Part, error) {
		return list(ctx, of, path, nil, func(item map[string]jsontext.Value) string {
			var key string
			_ = json.Unmarshal(item[id], &key)
			return key
		})
	}
}

// list gets the first page of a list.
func list(
	ctx context.Context, of *upstream.Upstream, path string, header http.Header, key func(map[string]jsontext.Value) string,
) ([]Part, error) {
	content, err := of.Read(ctx, path, header)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Items []jsontext.Value `json:"items"`
		Next  jsontext.Value   `json:"next"`
	}
	if content, err = upstream.QuoteAmounts(content); err == nil {
		err = json.Unmarshal(content, &answer, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	}
	if err != nil {
		return nil, &upstream.Refusal{Name: of.Name, Status: http.StatusOK, Detail: "but not with a list"}
	}
	parts := make([]Part, 0, len(answer.Items)+1)
	taken := map[string]bool{}
	for _, raw := range answer.Items {
		var item map[string]jsontext.Value
		if json.Unmarshal(raw, &item, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)) != nil {
			continue
		}
		name := key(item)
		for taken[name] { // copies of a message have one key
			name += "+"
		}
		taken[name] = true
		parts = append(parts, Part{name, raw})
	}
	if len(answer.Next) > 0 && answer.Next.Kind() != 'n' {
		parts = append(parts, Part{"next", answer.Next})
	}
	return parts, nil
}

// document is one answer that makes one part.
type document struct{ key, path string }

// documents polls several answers of one server, all at once. One that is not there (404) makes no part.
func documents(of *upstream.Upstream, wanted ...document) func(context.Context, bool) ([]Part, error) {
	return func(ctx context.Context, _ bool) ([]Part, error) {
		found := make([]jsontext.Value, len(wanted))
		asked, ctx := errgroup.WithContext(ctx)
		for i, d := range wanted {
			asked.Go(func() error {
				content, err := of.Read(ctx, d.path, nil)
				if upstream.Is(err, http.StatusNotFound) {
					return nil
				}
				if err == nil {
					found[i], err = upstream.QuoteAmounts(content)
				}
				return err
			})
		}
		if err := asked.Wait(); err != nil {
			return nil, err
		}
		var parts []Part
		for i, content := range found {
			if content != nil {
				parts = append(parts, Part{wanted[i].key, content})
			}
		}
		return parts, nil
	}
}

// ended says whether a transfer, or account's side of it, has come to its end.
func ended(parts []Part) bool {
	for _, p := range parts {
		var state struct{ Status, State string }
		if p.Key != "life" && json.Unmarshal(p.Value, &state, json.MatchCaseInsensitiveNames(true)) == nil {
			switch state.Status + state.State {
			case "COMPLETED", "REJECTED", "REFUNDED", "CREDITED":
				return true
			}
		}
	}
	return false
}

// lookEvery is after how long a quarantine is looked into again although its figures have not moved.
const lookEvery = 10 * time.Second

// parkedOf polls a service's quarantine. A look fetches every message and gives it back, so it is only taken when the broker's figures
// of the queues have moved, or when a page asks for it.
func (b *Bank) parkedOf(of *upstream.Upstream) func(context.Context, bool) ([]Part, error) {
	header := http.Header{"Authorization": {"Bearer " + b.AdminToken}}
	var seen string
	var looked time.Time
	var parts []Part
	return func(ctx context.Context, asked bool) ([]Part, error) {
		now, err := b.quarantineFigures(ctx)
		// A broker that does not tell its figures is no reason to look all the time.
		if (err != nil || now == seen) && !asked && parts != nil && time.Since(looked) < lookEvery {
			return parts, nil
		}
		found, err := list(ctx, of, "/admin/quarantine?limit=1000", header, func(item map[string]jsontext.Value) string {
			var queue, key string
			_ = json.Unmarshal(item["queue"], &queue)
			_ = json.Unmarshal(item["key"], &key, jsontext.AllowInvalidUTF8(true))
			return queue + "/" + url.PathEscape(key)
		})
		if upstream.Is(err, http.StatusConflict) && parts != nil { // somebody else is looking; the next look will see
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		seen, looked, parts = now, time.Now(), found
		return parts, nil
	}
}
