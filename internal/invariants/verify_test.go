package invariants

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// shelves are quarantines; what is no message is why the rest cannot be read.
type shelves map[string][]any

func (s shelves) Queues(context.Context) ([]Queue, error) { return nil, nil }

func (s shelves) Parked(_ context.Context, queue string, visit func(Parked)) error {
	for _, what := range s[queue] {
		switch v := what.(type) {
		case Parked:
			visit(v)
		case error:
			return v
		}
	}
	return nil
}

func TestAQuarantineThatCannotBeReadLeavesTheOthersToBeJudged(t *testing.T) {
	t.Parallel()
	waits := Parked{Type: "Accounts.Account.Debited", TransferID: "T", Reason: "MAX_ATTEMPTS"}
	occupied := errors.New("somebody is at it")
	queues := []Queue{{Name: "a_error"}, {Name: "main"}, {Name: "b_error"}, {Name: "banking.dead-letters"}}
	for name, c := range map[string]struct {
		broker      shelves
		verdict     Verdict
		detail      string
		quarantined int64
		unread      bool
	}{
		"all are empty":           {shelves{"main": {occupied}}, Held, "the quarantines are empty", 0, false},
		"all explain themselves":  {shelves{"a_error": {waits}, "b_error": {waits}}, Held, "a_error MAX_ATTEMPTS: 1, b_error MAX_ATTEMPTS: 1", 2, false},
		"one cannot be read":      {shelves{"a_error": {occupied}, "b_error": {waits}}, NotJudged, "could not be read: somebody is at it", 1, true},
		"two cannot":              {shelves{"a_error": {occupied}, "b_error": {waits, occupied}}, NotJudged, "could not be read: somebody is at it; somebody is at it", 1, true},
		"one cannot, one is dumb": {shelves{"a_error": {occupied}, "b_error": {waits, Parked{}}}, Broken, "b_error MAX_ATTEMPTS: 1, b_error without a reason: 1", 2, true},
		"all are dumb":            {shelves{"a_error": {Parked{}, Parked{}, Parked{}}}, Broken, "a_error without a reason: 3", 3, false},
	} {
		var report Report
		waiting, check := explained(t.Context(), c.broker, queues, &report)
		if check.Verdict != c.verdict || check.Detail != c.detail || report.Counts.Quarantined != c.quarantined || (report.Unread != nil) != c.unread {
			t.Errorf("%s: %+v, counted %d, unread %v", name, check, report.Counts.Quarantined, report.Unread)
		}
		if c.unread && !errors.Is(report.Unread, occupied) || waiting["t"] != (strings.Contains(name, "explain") || c.unread) {
			t.Errorf("%s: unread %v, waiting %v", name, report.Unread, waiting)
		}
	}
}

// Messages whose dead-lettering has broken down look like traffic that never ends; whoever waits for it to end must be told.
func TestTrafficThatMayNotEndIsNamed(t *testing.T) {
	t.Parallel()
	moving := motion{queues: []Queue{{Name: "main", Messages: 4}}, inQueues: 4, inOutboxes: 1}
	if got, want := moving.traffic(), "traffic is running: 5 messages are on their way"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	moving.queues = append(moving.queues, Queue{Name: "transfer.account-events", Messages: 3, Dead: 2})
	want := "; 2 of them are dead-lettering in transfer.account-events, which the broker tries again every 3 minutes: "
	if got := moving.traffic(); !strings.Contains(got, want) {
		t.Errorf("%q does not contain %q", got, want)
	}
}

// Programs read the report as JSON, and must be told as well why a check was not judged.
func TestTheReportSaysWhatCouldNotBeRead(t *testing.T) {
	t.Parallel()
	report := Report{Unread: errors.New("somebody is at it")}
	report.finish()
	text, err := json.Marshal(report)
	if err != nil || !strings.Contains(string(text), `"unread":"somebody is at it"`) {
		t.Errorf("%s, %v", text, err)
	}
	whole := Report{}
	whole.finish()
	if text, err = json.Marshal(whole); err != nil || strings.Contains(string(text), "unread") {
		t.Errorf("with nothing unread: %s, %v", text, err)
	}
}
