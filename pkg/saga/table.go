package saga

import (
	"slices"

	"example.com/banking/pkg/retry"
)

// Verdict is what the rules say about a request, where the table asks for it.
type Verdict string

// The verdicts. A row with Any needs none.
const (
	Any     Verdict = ""
	Allowed Verdict = "allowed"
	Refused Verdict = "refused"
)

// Row is one line of a transition table: what a record in State does when Request comes.
type Row[S, R, E ~string] struct {
	State   S
	Request R
	Verdict Verdict
	Next    S
	Effect  E           // what is done besides; "" is nothing
	Event   string      // the type of the message that is the answer
	Fault   retry.Class // instead of an answer: the request fails with this class
}

// Table is the whole behaviour of a record, as data: it can be executed, printed, drawn and, in a proof, broken row by row.
type Table[S, R, E ~string] []Row[S, R, E]

// Judged says whether the answer to a request depends on a verdict. Rules are asked only then: money that is on its way back
// is not stopped by a rule, and an outcome said again is not judged again.
func (t Table[S, R, E]) Judged(state S, request R) bool {
	return slices.ContainsFunc(t, func(row Row[S, R, E]) bool {
		return row.State == state && row.Request == request && row.Verdict != Any
	})
}

// Find is the row for a request; ok is false when the table has none.
func (t Table[S, R, E]) Find(state S, request R, verdict Verdict) (row Row[S, R, E], ok bool) {
	for _, row := range t {
		if row.State == state && row.Request == request && (row.Verdict == Any || row.Verdict == verdict) {
			return row, true
		}
	}
	return row, false
}

// With is a copy of the table in which row i is replaced.
func (t Table[S, R, E]) With(i int, row Row[S, R, E]) Table[S, R, E] {
	changed := slices.Clone(t)
	changed[i] = row
	return changed
}
