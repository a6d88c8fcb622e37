// Package exercises breaks a running bank on purpose, and proves two things each time: that the fault really happened, and that the bank
// got over it without losing or doubling a cent.
//
// Each exercise is one file that reads from top to bottom like its page in docs/exercises. It works on the bank that people look at in
// the console, over the same doors that they have: HTTP, the broker, and the keeper of "bank up" where something has to be killed or
// stopped. Whatever it changes is put back, also when it fails or is interrupted, and it can be run any number of times.
//
// A proof that cannot fail proves nothing. So every exercise can be run without its fault (Bank.WithoutFault), and must then end with
// ErrNoFault.
package exercises

import (
	"context"
	"time"
)

// Exercise is one thing to break.
type Exercise struct {
	Number   int
	Name     string // as in the name of its page: "poison"
	Title    string
	Question string // what one should have an answer to before one looks
	Needs    []Need // beside a bank
	Assumes  []Assumption
	Takes    time.Duration

	apart bool // it looks at none of the bank's own services
	play  func(context.Context, *run) error
}

// Need is what an exercise needs beside a bank that runs.
type Need string

// The needs.
const (
	// Control is that processes can be stopped, killed and started with other settings: a bank from "make up".
	Control Need = "control"
	// Faults are the fault points (FAULTS=on). Where there is Control they are switched on for as long as it takes.
	Faults Need = "faults"
)

// Assumption is how a service has to run for what an exercise shows to be there. A bank that runs otherwise is changed for as long as it
// takes where there is Control, and else the run says what is missing before it touches anything.
type Assumption struct {
	Service  string
	Settings map[string]string // RETRY_PROFILE, MAX_ATTEMPTS, RETRY_CLASSIFY and BREAKER; as they are written in the environment
	Waits    bool              // all of its waits between attempts are sat through, so that they must not be long
}

// onTheLap is what the exercises about transfer's retries show: three attempts, and a wait in one queue between them.
var onTheLap = Assumption{Service: "transfer", Settings: map[string]string{"RETRY_PROFILE": "lap", "MAX_ATTEMPTS": "3"}, Waits: true}

// All lists the exercises by number. A new one is a file with a var like the others, and a line here.
func All() []Exercise {
	return []Exercise{
		poison,
		textAmount,
		lap,
		replay,
		duplicates,
		refund,
		earlyRefund,
		outage,
		killed,
		storm,
		crashLoop,
		brokerRestart,
		wrongVariants,
	}
}

// Find returns the exercise with the number.
func Find(number int) (Exercise, bool) {
	for _, e := range All() {
		if e.Number == number {
			return e, true
		}
	}
	return Exercise{}, false
}
