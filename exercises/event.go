package exercises

import (
	"context"
	"errors"
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
	Reason   Reason    `json:"reason,omitzero"`  // of an end that is not well
}

// Reason says in one word why a run has not passed; Event.Text says it in a sentence.
type Reason string

// The reasons.
const (
	NoFault      Reason = "NO_FAULT"      // ErrNoFault
	NotRecovered Reason = "NOT_RECOVERED" // ErrNotRecovered
	Broken       Reason = "BROKEN"        // ErrBroken
	Unfit        Reason = "UNFIT"         // ErrNeeds
	Busy         Reason = "BUSY"          // ErrBusy
	Interrupted  Reason = "INTERRUPTED"
	Failed       Reason = "FAILED" // something else went wrong
)

func reasonOf(err error) Reason {
	for _, r := range []struct {
		err    error
		reason Reason
	}{
		{nil, ""}, {ErrBroken, Broken}, {ErrInterrupted, Interrupted}, {context.Canceled, Interrupted}, {ErrNoFault, NoFault}, {ErrNotRecovered, NotRecovered}, {ErrNeeds, Unfit}, {ErrBusy, Busy},
	} {
		if errors.Is(err, r.err) {
			return r.reason
		}
	}
	return Failed
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
