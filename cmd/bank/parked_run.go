package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

type parkedReplay struct {
	parkedChange `embed:""`
	To           string  `default:"queue" enum:"queue,exchange" help:"queue: only the one that failed; exchange: where it was first published to, all subscribers get it again."`
	Canary       int     `help:"Replay so many first, and the others only if none of them comes back."`
	Rate         float64 `default:"50" help:"Messages a second."`
	Force        bool    `help:"Also what has been replayed three times and has come back each time."`
}

func (c *parkedReplay) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	order := func(limit int) map[string]any {
		body := c.body(limit)
		body["to"], body["canary"], body["rate"], body["force"] = c.To, min(c.Canary, limit), c.Rate, c.Force
		return body
	}
	return (&parkedRun{filter: &c.parkedChange, path: "/admin/quarantine/replay", order: order, verb: "replayed"}).run(ctx, to, out, term)
}

type parkedDiscard struct {
	parkedChange `embed:""`
	Because      string `required:"" help:"Why they may be thrown away; kept in the audit."`
}

// Validate implements kong.Validatable.
func (c *parkedDiscard) Validate() error {
	if strings.TrimSpace(c.Because) == "" {
		return errors.New("--because must not be empty: say why these messages may be thrown away")
	}
	return nil
}

func (c *parkedDiscard) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	order := func(limit int) map[string]any {
		body := c.body(limit)
		body["because"] = c.Because
		return body
	}
	return (&parkedRun{filter: &c.parkedChange, path: "/admin/quarantine/discard", order: order, verb: "discarded"}).run(ctx, to, out, term)
}

// parkedRun is a replay or a discard over all services.
type parkedRun struct {
	filter *parkedChange
	path   string
	order  func(limit int) map[string]any
	verb   string // "replayed", "discarded"

	out     *output
	term    *terminal
	items   []jsontext.Value // for the JSON document
	seen    int
	told    time.Time // of the last sign of progress
	answers []parkedAnswer
	sofar   parkedAnswer // what the messages of the answer under way tell
	missing missing
}

// parkedAnswer is what a service says at the end of a run.
type parkedAnswer struct {
	Service string   `json:"service"`
	DryRun  bool     `json:"dryRun"`
	Run     *string  `json:"run"`
	Matched int      `json:"matched"`
	Done    int      `json:"done"`
	Refused int      `json:"refused"`
	Failed  int      `json:"failed"`
	Missing []string `json:"missing"`
	Stopped string   `json:"stopped,omitzero"`
	// Failure is why there is no such answer; the figures are then those of the messages that it told of before.
	Failure string `json:"failure,omitzero"`
	Skipped string `json:"skipped,omitzero"` // why it was not asked at all
	broken  error
}

func (r *parkedRun) run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	r.out, r.term, r.told, r.items = out, term, time.Now(), []jsontext.Value{}
	if r.filter.Limit < 1 {
		return errors.New("--limit must be at least 1")
	}
	var stopped bool
	failure := r.filter.eachKeeper(to, func(service *api) error {
		left := r.filter.Limit
		for _, a := range r.answers {
			left -= a.Matched
		}
		switch {
		case stopped:
			r.answers = append(r.answers, parkedAnswer{Service: service.name, Skipped: "another service has stopped early"})
			return nil
		case left <= 0:
			r.answers = append(r.answers, parkedAnswer{Service: service.name, Skipped: fmt.Sprintf("the limit of %d was reached before", r.filter.Limit)})
			return nil
		}
		answer := parkedAnswer{Service: service.name}
		r.sofar = parkedAnswer{Service: service.name}
		if err := service.stream(ctx, http.MethodPost, r.path, r.order(left), r.show, &answer, asAdmin(to)...); err != nil {
			if !refusedWith(err, http.StatusBadRequest) { // which the others will answer as well, or is about somebody else's queue
				r.sofar.Failure, r.sofar.broken = err.Error(), err
				r.answers = append(r.answers, r.sofar)
			}
			return err
		}
		r.answers = append(r.answers, answer)
		r.missing.answered(answer.Missing)
		stopped = answer.Stopped != ""
		return nil
	})
	return r.end(failure)
}

// show tells of one message as soon as the service does.
func (r *parkedRun) show(item jsontext.Value) error {
	r.seen++
	var outcome struct {
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal(item, &outcome); err != nil {
		return err
	}
	r.sofar.count(outcome.Outcome)
	if r.out.json {
		r.items = append(r.items, item)
		if time.Since(r.told) > time.Second {
			r.told = time.Now()
			_, _ = fmt.Fprintf(r.term.err, "%d messages so far\n", r.seen)
		}
		return nil
	}
	var m struct {
		parkedMessage
		Outcome  string `json:"outcome"`
		Detail   string `json:"detail"`
		Target   string `json:"target"`
		Forecast string `json:"forecast"`
		Canary   bool   `json:"canary"`
	}
	if err := json.Unmarshal(item, &m); err != nil {
		return err
	}
	became := strings.ToLower(strings.ReplaceAll(m.Outcome, "_", " "))
	switch m.Outcome {
	case "REFUSED", "FAILED", "UNKNOWN":
		became = r.out.bad(became)
	}
	line := fmt.Sprintf("%-13s  %-36s  %s", became, foreign(m.Key), foreign(m.Queue))
	if m.Target != "" {
		line += " → " + foreign(m.Target)
	}
	if m.Canary {
		line += "  (canary)"
	}
	if said := forecasts[m.Forecast]; said != "" {
		line += "  " + r.out.faint(said)
	}
	if m.Detail != "" {
		line += "  " + foreign(m.Detail)
	}
	_, err := fmt.Fprintln(r.out, line)
	return err
}

// forecasts are the services' in words.
var forecasts = map[string]string{
	"RUN":              "will run",
	"DUPLICATE":        "will be absorbed as a duplicate",
	"CONTRADICTION":    "will fail again: its id was used by another message",
	"INVALID":          "will fail again: not a valid message",
	"UNKNOWN_TRANSFER": "will fail again: unknown transfer",
	"ELSEWHERE":        "runs in another service, which cannot be foretold here",
}

// end sums up. Whatever was asked for and not done makes the exit code 1.
func (r *parkedRun) end(failure error) error {
	var total parkedAnswer
	var wrong []error
	for _, a := range r.answers {
		total.Done += a.Done
		total.Refused += a.Refused
		total.Failed += a.Failed
		total.Matched += a.Matched
		if a.Stopped != "" {
			wrong = append(wrong, fmt.Errorf("%s has stopped early: %s", a.Service, foreign(a.Stopped)))
		}
	}
	nowhere := []string{}
	if failure == nil {
		nowhere = r.missing.everywhere(r.filter.ids())
	}
	if r.out.json {
		if err := r.out.document(map[string]any{"items": r.items, "services": r.answers, "missing": nowhere}); err != nil {
			return err
		}
	} else {
		r.sumUp(total)
	}
	if r.missing.services > 0 && total.Matched == 0 {
		r.filter.hint(r.term)
	}
	if total.Refused+total.Failed > 0 {
		wrong = append(wrong, fmt.Errorf("%d refused, %d failed", total.Refused, total.Failed))
	}
	if len(nowhere) > 0 {
		wrong = append(wrong, r.missing.err(nowhere))
	}
	return errors.Join(append(wrong, failure)...)
}
