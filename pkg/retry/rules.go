package retry

import (
	"fmt"
	"strings"
)

// When is the condition of a rule beside the class.
type When string

// The conditions.
const (
	Always   When = "always"
	Aged     When = "not younger than NOT_FOUND_MAX_AGE"
	TooOld   When = "older than MAX_AGE"
	LastTime When = "attempt MAX_ATTEMPTS or later"
)

// Tier says which of a policy's delays a retry waits.
type Tier string

// The tiers.
const (
	NoTier    Tier = ""                                      // no retry
	OwnTier   Tier = "delay n"                               // the n-th delay before retry n
	FirstTier Tier = "shortest delay"                        // the first delay, whichever retry it is
	NextTier  Tier = "the given delay, else one tier longer" // never longer than the last
)

// Rule is one row of the decision table.
type Rule struct {
	Class      Class // "" is every class
	When       When
	Action     Action
	Tier       Tier   // with Retry
	Reason     string // with Quarantine
	Classified bool   // the rule is skipped when classification is off
}

// rules are tried from the top; the last one fits everything.
var rules = []Rule{
	{Class: Cancelled, When: Always, Action: LeaveAlone},
	{Class: Validation, When: Always, Action: Quarantine, Reason: ReasonValidation, Classified: true},
	{Class: Invariant, When: Always, Action: Quarantine, Reason: ReasonInvariant, Classified: true},
	{Class: NotFound, When: Aged, Action: Quarantine, Reason: ReasonNotFoundAged, Classified: true},
	{When: TooOld, Action: Quarantine, Reason: ReasonMaxAge},
	{When: LastTime, Action: Quarantine, Reason: ReasonMaxAttempts},
	{Class: Conflict, When: Always, Action: Retry, Tier: FirstTier, Classified: true},
	{Class: RateLimited, When: Always, Action: Retry, Tier: NextTier, Classified: true},
	{When: Always, Action: Retry, Tier: OwnTier},
}

// Rules is the decision table in the order in which it is tried; the first row that fits decides.
func Rules() []Rule { return append([]Rule(nil), rules...) }

func (r Rule) fits(p Policy, f Failure) bool {
	if r.Classified && !p.Classify || r.Class != "" && r.Class != f.Class {
		return false
	}
	switch r.When {
	case Aged:
		return p.NotFoundMaxAge > 0 && f.Age >= p.NotFoundMaxAge
	case TooOld:
		return p.MaxAge > 0 && f.Age > p.MaxAge
	case LastTime:
		return f.Attempt >= p.MaxAttempts
	}
	return true
}

// Table renders the decision table as Markdown, for the documentation.
func Table() string {
	var b strings.Builder
	b.WriteString("| class | when | action | delay or reason | with `RETRY_CLASSIFY=off` |\n| --- | --- | --- | --- | --- |\n")
	for _, r := range rules {
		class, outcome, off := string(r.Class), string(r.Tier)+r.Reason, "the same"
		if class == "" {
			class = "any"
		}
		if outcome == "" {
			outcome = "no attempt spent"
		}
		if r.Classified {
			off = "skipped"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", class, r.When, r.Action, outcome, off)
	}
	return b.String()
}
