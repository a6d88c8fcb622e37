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
)

// lifeEvent is one thing that happened to a transfer in one of the services.
type lifeEvent struct {
	Service     string    `json:"service"`
	At          time.Time `json:"at"`
	Kind        string    `json:"kind"`
	MessageID   string    `json:"messageId,omitzero"`
	Type        string    `json:"type,omitzero"`
	Queue       string    `json:"queue,omitzero"`
	Attempt     int       `json:"attempt,omitzero"`
	Class       string    `json:"class,omitzero"`
	Reason      string    `json:"reason,omitzero"`
	Detail      string    `json:"detail,omitzero"`
	NextDelayMs *int64    `json:"nextDelayMs,omitzero"`
	By          string    `json:"by,omitzero"`
	AmountMinor int64     `json:"amountMinor,omitzero"`
	AccountID   string    `json:"accountId,omitzero"`
}

// transferLife is the life of a transfer over both services.
type transferLife struct {
	TransferID string      `json:"transferId"`
	Events     []lifeEvent `json:"events"`
}

// showLife prints what both services know of a transfer in one list. One that does not answer leaves what the other knows.
func showLife(ctx context.Context, to *endpoints, id string, out *output) error {
	whole := transferLife{TransferID: id, Events: []lifeEvent{}}
	var failures []error
	for _, of := range []struct {
		service *api
		path    string
	}{
		{to.transfer(), "/transfers/" + url.PathEscape(id) + "/life"},
		{to.account(), "/legs/" + url.PathEscape(id) + "/life"},
	} {
		var got transferLife
		if _, err := of.service.do(ctx, http.MethodGet, of.path, nil, &got); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", of.service.name, err))
			continue
		}
		whole.TransferID = got.TransferID
		for _, e := range got.Events {
			e.Service = of.service.name
			whole.Events = append(whole.Events, e)
		}
	}
	// Stable: of the same instant, and of clocks that agree, transfer asks first. Within a service the order is the service's.
	slices.SortStableFunc(whole.Events, func(a, b lifeEvent) int { return a.At.Compare(b.At) })
	if len(failures) == 2 {
		return errors.Join(failures...)
	}
	if out.json {
		return errors.Join(append(failures, out.document(whole))...)
	}
	fmt.Fprintf(out, "transfer %s", foreign(whole.TransferID))
	if len(whole.Events) > 0 {
		fmt.Fprintf(out, ", since %s", whole.Events[0].At.UTC().Format(time.RFC3339))
	}
	fmt.Fprintln(out)
	rows := make([][]string, 0, len(whole.Events))
	for _, e := range whole.Events {
		since := e.At.Sub(whole.Events[0].At).Round(time.Millisecond)
		rows = append(rows, []string{"+" + since.String(), e.Service, e.Kind, foreign(e.what()), foreign(e.MessageID)})
	}
	return errors.Join(append(failures, out.table([]string{"AT", "SERVICE", "EVENT", "WHAT", "MESSAGE"}, rows))...)
}

// what says on one line what happened.
func (e lifeEvent) what() string {
	var parts []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(e.Type != "", "%s", e.Type)
	add(e.Kind == "FAILED", "attempt %d", e.Attempt)
	add(e.Kind == "FAILED", "%s", e.Class) // the parking that follows has the same
	add(e.Kind == "ACCEPTED" || e.Kind == "POSTED", "%d minor units", e.AmountMinor)
	add(e.Detail != "", "%s", short(e.Detail, 160))
	add(e.Reason != "" && e.Kind == "DISCARDED", "because %s", e.Reason)
	add(e.Reason != "" && e.Kind != "DISCARDED", "%s", e.Reason)
	if e.NextDelayMs != nil {
		add(true, "again in %s", time.Duration(*e.NextDelayMs)*time.Millisecond)
	}
	add(e.By != "", "by %s", e.By)
	return strings.Join(parts, " · ")
}
