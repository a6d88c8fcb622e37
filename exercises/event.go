package exercises

import (
	"fmt"
	"time"
)

// Event is one thing that a run tells while it goes on. As JSON it is one line of a stream.
type Event struct {
	At       time.Time `json:"at"`
	Exercise int       `json:"exercise"`
	Kind     Kind      `json:"kind"`
	Text     string    `json:"text"`             // a sentence for people
	Figures  []Figure  `json:"figures,omitzero"` // what was observed
	Where    string    `json:"where,omitzero"`   // where people can see the same
	Proves   Proof     `json:"proves,omitzero"`  // of a check
	OK       *bool     `json:"ok,omitzero"`      // of a check and of the end
}

// Kind is what an event is.
type Kind string

// The kinds.
const (
	Begun   Kind = "begun"   // the first: the question
	Doing   Kind = "doing"   // something is done, or waited for
	Saw     Kind = "saw"     // something was observed
	Checked Kind = "checked" // a check that held or did not
	Looking Kind = "looking" // nothing has been put back yet, and people may look around; told by who lets them
	Reset   Kind = "reset"   // something is put back
	Ended   Kind = "ended"   // the last: passed, or why not
)

// Proof is what a check is about.
type Proof string

// The proofs.
const (
	TheFault      Proof = "fault"      // that it happened
	TheRecovery   Proof = "recovery"   // that the bank got over it
	TheInvariants Proof = "invariants" // what "bank verify" checks
)

// Figure is something that was counted or measured.
type Figure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// figure makes one of any value; durations are rounded to what people read.
func figure(name string, value any) Figure {
	if d, ok := value.(time.Duration); ok {
		value = d.Round(time.Millisecond)
	}
	return Figure{Name: name, Value: fmt.Sprint(value)}
}

// Reporter is told each event as it happens. Calls come one at a time.
type Reporter func(Event)
