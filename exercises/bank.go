package exercises

import (
	"context"
	"errors"
	"time"

	"example.com/banking/internal/invariants"
)

// Bank is the running bank that is broken, and how.
type Bank struct {
	AccountURL, TransferURL string
	AMQPURL, ManagementURL  string // the operator's
	AccountDatabaseURL      string // for the faults that a killed run has left
	TransferDatabaseURL     string // for the same, and for the lock: one run at a time
	LockFile                string // for the same on this machine, also while the database is away; empty where there is no folder
	AdminToken              string
	ControlURL              string // of the keeper of "bank up"; empty where there is none
	Logs                    string // folder with the services' logs; empty where it cannot be reached

	// Verify does what "bank verify" does. It waits for the bank to come to rest.
	Verify func(context.Context) (invariants.Report, error)

	// WithoutFault leaves the injection out and everything else in: the test of the exercise itself.
	WithoutFault bool
	// Outage is how long the database is away in exercise 8; default a minute.
	Outage time.Duration
	// Patience is how long to wait for a proof that the fault has happened; default a minute. A run without the fault takes at least so long.
	Patience time.Duration
	// BeforeReset is called when all has been shown and nothing been put back yet, so that people can look around. May be nil.
	BeforeReset func(context.Context)
}

// How a run ends, other than well. Each is wrapped with what was missing.
var (
	ErrNoFault      = errors.New("the fault did not happen")
	ErrNotRecovered = errors.New("the bank did not get over it")
	ErrBroken       = errors.New("an invariant is broken")
	ErrNeeds        = errors.New("cannot be run here")
	ErrBusy         = errors.New("another exercise is running on this bank")
	ErrInterrupted  = errors.New("interrupted")
)
