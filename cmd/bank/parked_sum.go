package main

import (
	"errors"
	"fmt"
)

// count notes what a service says of one message.
func (a *parkedAnswer) count(outcome string) {
	a.Matched++
	switch outcome {
	case "REFUSED":
		a.Refused++
	case "FAILED", "UNKNOWN":
		a.Failed++
	default:
		a.Done++
	}
}

func (r *parkedRun) sumUp(total parkedAnswer) {
	switch {
	case len(r.answers) == 0:
	case r.incomplete():
		r.perService()
	case total.Matched == 0:
		fmt.Fprintln(r.out, "nothing in quarantine matches")
	case r.filter.Yes:
		fmt.Fprintf(r.out, "\n%d %s\n", total.Done, r.verb)
		for _, a := range r.answers {
			if a.Run != nil && a.Matched > 0 {
				fmt.Fprintf(r.out, "audit: bank parked audit --run %s\n", *a.Run)
			}
		}
	case r.filter.narrow():
		fmt.Fprintf(r.out, "\nnothing was changed: %d would be %s. The same command with --yes does it.\n", total.Done, r.verb)
	default:
		fmt.Fprintf(r.out, "\nnothing was changed: %d would be %s. There is no filter, so this is about every message. The same command with --yes does it.\n", total.Done, r.verb)
	}
}

// incomplete says whether some service has not done its part, so that the totals would claim too much.
func (r *parkedRun) incomplete() bool {
	for _, a := range r.answers {
		if a.Failure != "" || a.Stopped != "" {
			return true
		}
	}
	return false
}

// perService says what each service has done, and what is not known of it.
func (r *parkedRun) perService() {
	fmt.Fprintln(r.out)
	for _, a := range r.answers {
		did := fmt.Sprintf("%d %s", a.Done, r.verb)
		if !r.filter.Yes {
			did = fmt.Sprintf("%d would be %s", a.Done, r.verb)
		}
		var refusal *problem
		switch {
		case a.Skipped != "":
			fmt.Fprintf(r.out, "%s: not asked, %s\n", a.Service, a.Skipped)
		case errors.As(a.broken, &refusal) && a.Matched == 0:
			fmt.Fprintf(r.out, "%s: %s\n", a.Service, r.out.bad("it refused, nothing was "+r.verb))
		case a.Failure != "" && r.filter.Yes:
			fmt.Fprintf(r.out, "%s: %s, %s\n", a.Service, did, r.out.bad("as far as is known: its answer is incomplete; bank parked audit has the rest"))
		case a.Failure != "":
			fmt.Fprintf(r.out, "%s: %s, %s\n", a.Service, did, r.out.bad("as far as is known: its answer is incomplete"))
		case a.Stopped != "":
			fmt.Fprintf(r.out, "%s: %s, then it stopped early\n", a.Service, did)
		case a.Matched == 0:
			fmt.Fprintf(r.out, "%s: nothing in quarantine matches\n", a.Service)
		default:
			fmt.Fprintf(r.out, "%s: %s\n", a.Service, did)
		}
		if r.filter.Yes && a.Run != nil && a.Matched > 0 {
			fmt.Fprintf(r.out, "audit: bank parked audit --run %s\n", *a.Run)
		}
	}
	if !r.filter.Yes {
		fmt.Fprintln(r.out, "nothing was changed")
	}
}
