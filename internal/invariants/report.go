// Package invariants checks the promises of the whole system from the outside: that no money appeared or vanished, that no
// transfer was booked twice, that both services tell the same story, and that no message was lost.
//
// It reads both databases and the broker's queues and changes nothing. What can only be judged when traffic has stopped is
// reported as not judged while messages are still on their way, never as held.
package invariants

import (
	"fmt"
	"time"
)

// Verdict is the outcome of one check.
type Verdict string

// A check is Held or Broken, or NotJudged while messages are still moving, or when a quarantine could not be read that it needs.
const (
	Held      Verdict = "held"
	Broken    Verdict = "broken"
	NotJudged Verdict = "not judged"
)

// maxOffenders bounds the list of offenders of one check: the count is exact, the list is for looking.
const maxOffenders = 20

// Check is one invariant and what became of it.
type Check struct {
	Name      string   `json:"name"`
	Promise   string   `json:"promise"`
	Verdict   Verdict  `json:"verdict"`
	Detail    string   `json:"detail"`
	Broken    int      `json:"broken"` // how many offenders there are
	Offenders []string `json:"offenders,omitempty"`
}

// leave says that the check was not judged, and why.
func (c *Check) leave(why string) {
	*c = Check{Name: c.Name, Promise: c.Promise, Verdict: NotJudged, Detail: why}
}

// offend notes one thing that breaks the check.
func (c *Check) offend(format string, args ...any) {
	c.Verdict = Broken
	c.Broken++
	if len(c.Offenders) < maxOffenders {
		c.Offenders = append(c.Offenders, fmt.Sprintf(format, args...))
	}
}

// Report is what Verify found.
type Report struct {
	At     time.Time `json:"at"`
	OK     bool      `json:"ok"`    // no check is broken
	Quiet  bool      `json:"quiet"` // nothing moved while it looked
	Checks []Check   `json:"checks"`
	Counts Counts    `json:"counts"`
	Unread error     `json:"-"` // why a quarantine could not be read as a whole
	// UnreadText is the same for those who read JSON.
	UnreadText string `json:"unread,omitzero"`
}

// Tally counts the checks by verdict.
func (r *Report) Tally() map[Verdict]int {
	tally := map[Verdict]int{}
	for _, check := range r.Checks {
		tally[check.Verdict]++
	}
	return tally
}

// Counts are the figures behind the checks.
type Counts struct {
	Accounts    int64            `json:"accounts"`
	Transfers   map[string]int64 `json:"transfers"` // by status
	Entries     int64            `json:"entries"`
	Processed   int64            `json:"messagesProcessed"` // rows of both inboxes
	InOutboxes  int64            `json:"messagesInOutboxes"`
	InQueues    int64            `json:"messagesInQueues"`
	Quarantined int64            `json:"messagesQuarantined"`
	SetAside    int64            `json:"messagesSetAside"` // outbox rows that the broker refuses
}

func (r *Report) finish() {
	r.OK = true
	for _, check := range r.Checks {
		r.OK = r.OK && check.Verdict != Broken
	}
	if r.Unread != nil {
		r.UnreadText = r.Unread.Error()
	}
}
