package exercises

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// parked is a message in a quarantine.
type parked struct {
	Queue         string     `json:"queue"`
	Key           string     `json:"key"`
	MessageID     string     `json:"messageId"`
	Type          string     `json:"type"`
	TransferID    string     `json:"transferId"`
	Reason        string     `json:"reason"`
	Class         string     `json:"class"`
	Attempts      int        `json:"attempts"`
	Error         string     `json:"error"`
	ParkedAt      *time.Time `json:"parkedAt"`
	FirstFailedAt *time.Time `json:"firstFailedAt"`
	OriginQueue   string     `json:"originQueue"`
}

// took is the time from the first failure to the end. The broker notes a death to the second, so it is that exact and no more.
func (p parked) took() time.Duration {
	if p.ParkedAt == nil || p.FirstFailedAt == nil {
		return 0
	}
	return p.ParkedAt.Sub(*p.FirstFailedAt)
}

func (p parked) figures() []Figure {
	return []Figure{figure("queue", p.Queue), figure("reason", p.Reason), figure("class", p.Class), figure("attempts", p.Attempts)}
}

// parkedWith finds the quarantined message with an id; looking takes nothing.
func (s *service) parkedWith(ctx context.Context, id string) (found parked, ok bool, err error) {
	var list struct {
		Items []parked `json:"items"`
	}
	if err := s.call(ctx, http.MethodGet, "/admin/quarantine?id="+url.QueryEscape(id), nil, &list); err != nil {
		return parked{}, false, err
	}
	if len(list.Items) == 0 {
		return parked{}, false, nil
	}
	return list.Items[0], true, nil
}

// awaitParked waits until the message is in the quarantine of the service.
func (r *run) awaitParked(ctx context.Context, s *service, id, text string) (p parked, err error) {
	err = r.awaitFault(ctx, text, func(ctx context.Context) (ok bool, err error) {
		p, ok, err = s.parkedWith(ctx, id)
		return ok, err
	})
	return p, err
}

// outcome is what a replay did with a message, or would do.
type outcome struct {
	Outcome  string `json:"outcome"`
	Detail   string `json:"detail"`
	Forecast string `json:"forecast"`
	Target   string `json:"target"`
}

// replay sends a quarantined message on its way again; without confirm it only says what would happen.
func (r *run) replay(ctx context.Context, s *service, id string, confirm bool) (o outcome, err error) {
	err = r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) { // somebody may be looking into it
		var answer struct {
			Items []outcome `json:"items"`
		}
		err := s.call(ctx, http.MethodPost, "/admin/quarantine/replay", map[string]any{"ids": []string{id}, "confirm": confirm}, &answer,
			"X-Operator", r.operator())
		if err == nil && len(answer.Items) != 1 {
			return false, fmt.Errorf("%d messages are called %s", len(answer.Items), id)
		}
		if err == nil {
			o = answer.Items[0]
		}
		return err == nil, err
	})
	return o, err
}

// discardLater throws the messages away when the run is over, also those that are still on their way there: it waits until nothing moves.
func (r *run) discardLater(s *service, ids ...string) {
	what := fmt.Sprintf("What this run has left in %s's quarantine is discarded; the audit keeps it.", s.name)
	r.onReset(discarding, what, func(ctx context.Context) error {
		return r.await(ctx, 2*time.Minute, func(ctx context.Context) (bool, error) {
			if calm, err := r.calm(ctx); err != nil || !calm {
				return false, err
			}
			err := r.discard(ctx, s, ids) // or somebody is looking into it
			return err == nil, err
		})
	})
}

// discardLeft throws away what killed runs have left. The event of a real transfer (exercise 4) is not among it: it is to be replayed.
func (r *run) discardLeft(ctx context.Context, s *service) error {
	var list struct {
		Items []parked `json:"items"`
	}
	if err := s.call(ctx, http.MethodGet, "/admin/quarantine?limit=1000", nil, &list); err != nil {
		return err
	}
	var ids []string
	for _, p := range list.Items {
		if strings.HasPrefix(p.MessageID, ours) {
			ids = append(ids, p.Key)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	r.say(Event{Kind: Reset, Text: fmt.Sprintf("%d messages of earlier runs are in %s's quarantine; they are discarded first.", len(ids), s.name)})
	return r.discard(ctx, s, ids)
}

func (r *run) discard(ctx context.Context, s *service, ids []string) error {
	return s.call(ctx, http.MethodPost, "/admin/quarantine/discard", map[string]any{
		"ids": ids, "limit": len(ids), "because": fmt.Sprintf("left by exercise %d", r.exercise.Number), "confirm": true},
		nil, "X-Operator", r.operator())
}

func (r *run) operator() string { return fmt.Sprintf("exercise %d", r.exercise.Number) }
