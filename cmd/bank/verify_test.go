package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/banking/internal/invariants"
)

// With tens of thousands of messages in quarantine a look takes longer than the usual wait; what was still moving in the first has to have
// a second.
func TestVerifyLooksOnceMoreWhenTheWaitIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wait, look, ends time.Duration // ends: when the system comes to rest
		looks            int
		quiet            bool
	}{
		"one look is longer than the wait": {15 * time.Second, 20 * time.Second, 5 * time.Second, 2, true},
		"short looks":                      {time.Second, 0, 10 * time.Second, 4, false}, // at 0, 0.25, 0.75 and 1 s
		"rest comes in time":               {time.Second, 0, 500 * time.Millisecond, 3, true},
		"no wait":                          {0, time.Second, 2 * time.Second, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, looks := time.Now(), 0
			report, err := lookUntilQuiet(t.Context(), c.wait, func() (invariants.Report, error) {
				looks++
				quiet := time.Since(began) >= c.ends
				time.Sleep(c.look) // in the time of synctest, which does not wait
				return invariants.Report{OK: true, Quiet: quiet}, nil
			})
			if err != nil || report.Quiet != c.quiet || looks != c.looks {
				t.Errorf("%s: quiet %v after %d looks (%v), want %v after %d", name, report.Quiet, looks, err, c.quiet, c.looks)
			}
		})
	}
}

// Exit code 0 must not be taken for "all is well" when half of it was not looked at: the last line says what was.
func TestTheLastLineOfVerifyCountsWhatWasJudged(t *testing.T) {
	t.Parallel()
	check := func(v invariants.Verdict) invariants.Check {
		return invariants.Check{Name: "n", Promise: "p", Verdict: v}
	}
	held, broken, not := check(invariants.Held), check(invariants.Broken), check(invariants.NotJudged)
	for want, report := range map[string]invariants.Report{
		"2 held": {Checks: []invariants.Check{held, held}},
		"1 held, 1 not judged: to have them judged, run \"bank verify\" again when traffic has ended, or let it wait longer for that (--wait)": {
			Checks: []invariants.Check{held, not}},
		"2 held, 1 not judged: to have them judged, run \"bank verify\" again when the messages that were given up are replayed or discarded: " +
			"see \"bank parked\" and \"bank outbox\"": {Checks: []invariants.Check{held, held, not}, Quiet: true},
		"1 held, 1 BROKEN, 2 not judged: to have them judged, run \"bank verify\" again when its services and the broker answer, " +
			"and nobody else looks into the quarantine or replays from it": {Checks: []invariants.Check{held, not, broken, not}, Unread: errors.New("occupied")},
	} {
		var text strings.Builder
		printReport(newOutput(&text, false), report)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if got := lines[len(lines)-1]; got != want {
			t.Errorf("the last line is %q, want %q", got, want)
		}
		if strings.Contains(text.String(), "at least 0 quarantined") != (report.Unread != nil) {
			t.Errorf("what was not read counts as nothing:\n%s", &text)
		}
	}
}
