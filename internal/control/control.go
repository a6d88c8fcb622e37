// Package control is how somebody outside of a running "bank up" stops, kills, pauses and starts what it consists of: people with
// "bank service", and the exercises, which have to break things for real.
//
// The bank keeps its processes alive: who kills one from a shell sees it come back a second later. To show what happens while a database
// is away for a minute, or what a service does with another setting, the keeper itself has to be asked. It listens on the loopback
// interface, and every call needs the admin token.
package control

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// State is what a process does right now.
type State string

// The states.
const (
	Running    State = "running"
	Paused     State = "paused"     // it exists, and gets no processor time (SIGSTOP)
	Stopped    State = "stopped"    // on purpose; it stays so until it is started
	Restarting State = "restarting" // it has ended by itself, and is started again in a moment
)

// Process is one of the bank's programs: a service or a server.
type Process struct {
	Name    string            `json:"name"`
	Kind    string            `json:"kind"` // "service" or "server"
	State   State             `json:"state"`
	PID     int               `json:"pid,omitzero"`
	Starts  int               `json:"starts"`                // since the bank was started
	LastEnd string            `json:"lastEnd,omitzero"`      // how it ended last, for people
	Changed map[string]string `json:"environment,omitempty"` // variables that differ from the bank's, until the next plain start
	Ordered bool              `json:"ordered,omitzero"`      // an order is being carried out, after which the state may be another
}

// Usual says whether the process runs as the bank has started it, and nobody is about to change that.
func (p Process) Usual() bool { return p.State == Running && len(p.Changed) == 0 && !p.Ordered }

// Verb is something to be done with a process.
type Verb string

// The verbs.
const (
	Stop    Verb = "stop"    // in good order, and leave it so
	Kill    Verb = "kill"    // SIGKILL; the bank starts it again, as after any crash
	Pause   Verb = "pause"   // a service only
	Resume  Verb = "resume"  // what is paused
	Start   Verb = "start"   // what is stopped, or waits for its restart
	Restart Verb = "restart" // stop and start
)

// Verbs lists them all.
func Verbs() []Verb { return []Verb{Stop, Kill, Pause, Resume, Start, Restart} }

// Why an order is refused.
var (
	ErrUnknown = errors.New("there is no such process")
	ErrState   = errors.New("not in this state")
	ErrServer  = errors.New("is a server")
	ErrSetting = errors.New("cannot be set")
)

// Keeper keeps the processes. Act returns when the order has been carried out: for a start when the process is ready.
type Keeper interface {
	Processes() []Process
	Act(ctx context.Context, name string, verb Verb, environment map[string]string) (Process, error)
}

// fixed are the variables by which the processes of one bank find and trust each other.
var fixed = []string{"DATABASE_URL", "AMQP_URL", "HTTP_ADDR", "ADMIN_TOKEN", "ACCOUNT_URL", "TRANSFER_URL", "SERVICES", "CONTROL_URL",
	"RABBITMQ_MANAGEMENT_URL", "RABBITMQ_VHOST", "LOG_FORMAT", "PATH"}

var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// Settable says whether a variable may be set for a start; what it is called aside.
func Settable(name string) bool { return !slices.Contains(fixed, name) }

// checkEnvironment lets settings of a service through and nothing that would make it part of another bank.
func checkEnvironment(verb Verb, environment map[string]string) error {
	if len(environment) > 0 && verb != Start && verb != Restart {
		return fmt.Errorf("%w: settings belong to start and restart, not to %s", ErrSetting, verb)
	}
	for name := range environment {
		if !variable.MatchString(name) {
			return fmt.Errorf("%q %w: a variable's name has capital letters, digits and underscores", name, ErrSetting)
		}
		if !Settable(name) {
			return fmt.Errorf("%s %w: the bank decides it", name, ErrSetting)
		}
	}
	return nil
}
