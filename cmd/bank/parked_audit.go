package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

type parkedAudit struct {
	Entry filled `arg:"" optional:"" help:"One entry as a whole, e.g. account/12: with the message when it was discarded."`
	ID    filled `name:"id" help:"Only of the message of this id or sha256: key."`
	RunID filled `name:"run" help:"Only of this run."`
	Limit int    `default:"100" help:"At most so many."`
}

// auditEntry is what happened to one message.
type auditEntry struct {
	Service   string     `json:"service"`
	ID        int64      `json:"id"`
	Run       string     `json:"run"`
	Action    string     `json:"action"`
	Outcome   string     `json:"outcome"`
	Queue     string     `json:"queue"`
	Key       string     `json:"key"`
	MessageID string     `json:"messageId"`
	Type      string     `json:"type"`
	Operator  string     `json:"operator"`
	Because   string     `json:"because"`
	Target    string     `json:"target"`
	Detail    string     `json:"detail"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt"`
}

func (c *parkedAudit) Run(ctx context.Context, to *endpoints, out *output) error {
	if c.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	services, err := keepers(to)
	if err != nil {
		return err
	}
	if c.Entry != "" {
		return c.showEntry(ctx, to, services, out)
	}
	entries := []auditEntry{}
	var failures []error
	for _, service := range services {
		got, err := c.of(ctx, to, service)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", service.name, err))
		}
		entries = append(entries, got...)
	}
	slices.SortStableFunc(entries, func(a, b auditEntry) int { return b.StartedAt.Compare(a.StartedAt) })
	entries = entries[:min(len(entries), c.Limit)]
	if len(entries) == 0 && len(failures) == 0 && (c.ID != "" || c.RunID != "") {
		failures = append(failures, fmt.Errorf("the audit has nothing of %s", foreign(strings.TrimSpace(string(c.ID)+" "+string(c.RunID)))))
	}
	if out.json {
		return errors.Join(append(failures, out.document(entries))...)
	}
	rows := make([][]string, 0, len(entries))
	for _, e := range entries {
		why := e.Target
		if e.Because != "" {
			why = "because " + e.Because
		}
		if e.Detail != "" {
			why += "; " + e.Detail
		}
		rows = append(rows, []string{fmt.Sprintf("%s/%d", e.Service, e.ID), e.StartedAt.UTC().Format(time.RFC3339), foreign(e.Operator), e.Action, e.Outcome,
			foreign(e.Key), foreign(e.Queue), foreign(why)})
	}
	err = out.table([]string{"ENTRY", "AT", "WHO", "ACTION", "OUTCOME", "ID", "QUEUE", "WHAT"}, rows)
	return errors.Join(append(failures, err)...)
}

// of is the newest of one service, page by page.
func (c *parkedAudit) of(ctx context.Context, to *endpoints, service *api) (entries []auditEntry, err error) {
	query := url.Values{}
	for name, value := range map[string]filled{"id": c.ID, "run": c.RunID} {
		if value != "" {
			query.Set(name, string(value))
		}
	}
	for len(entries) < c.Limit {
		query.Set("limit", fmt.Sprint(min(1000, c.Limit-len(entries))))
		var got page[auditEntry]
		if _, err := service.do(ctx, http.MethodGet, "/admin/quarantine/audit?"+query.Encode(), nil, &got, asAdmin(to)...); err != nil {
			return entries, err
		}
		for _, e := range got.Items {
			e.Service = service.name
			entries = append(entries, e)
		}
		if got.Next == "" {
			break
		}
		query.Set("after", got.Next)
	}
	return entries, nil
}

func (c *parkedAudit) showEntry(ctx context.Context, to *endpoints, services []*api, out *output) error {
	name, id, _ := strings.Cut(string(c.Entry), "/")
	for _, service := range services {
		if service.name != name {
			continue
		}
		var document jsontext.Value
		if _, err := service.do(ctx, http.MethodGet, "/admin/quarantine/audit/"+url.PathEscape(id), nil, &document, asAdmin(to)...); err != nil {
			return err
		}
		if out.json {
			return out.document(document)
		}
		if err := document.Indent(jsontext.WithIndent("  ")); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, foreignLines(string(document)))
		return err
	}
	return fmt.Errorf("%q names no entry: they look like account/12 or transfer/7", c.Entry)
}
