// Package fault makes a running service fail where it is asked to: it holds the named points on a message's road at which
// an error, a pause, a panic or the sudden end of the process can be ordered, for exercises and for fault tests.
//
// What a system does when a process dies between commit and ack is decided by code that runs once a year. A fault point lets
// anybody run it now, on the real program, as often as it takes. A service that is not told to allow this has no Points at
// all: every method of a nil *Points returns at once, so that what is not used costs nothing.
//
// The faults themselves are kept by package control, in the service's database, because they have to survive the process that
// they end.
package fault

import (
	"time"

	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// Point is a place in the code that asks whether to fail.
type Point string

// The points, in the order in which a message passes them.
const (
	Handler      Point = "handler"       // inside the transaction, before this message is applied
	BeforeCommit Point = "before-commit" // everything is applied, nothing is durable: it takes the whole batch along
	AfterCommit  Point = "after-commit"  // durable, and the broker does not know
	BeforeAck    Point = "before-ack"    // the consumer is about to ack; an error here stands for an ack that cannot be sent
	AfterAck     Point = "after-ack"     // the ack has been sent
	AfterPublish Point = "after-publish" // the broker has confirmed, and the message is still in the outbox
)

// Action is what happens at a point.
type Action string

// The actions.
const (
	Error Action = "error" // the point returns an error of the fault's class
	Delay Action = "delay" // the point takes that long, or until the work is told to stop
	Panic Action = "panic" // handled like any panic at this place: in a handler it is an error, elsewhere the end of the service
	Exit  Action = "exit"  // the process ends at once with ExitCode and no good-bye, as by kill -9
)

// ExitCode is that of a process killed by signal 9, as shells have it.
const ExitCode = 137

// Fault is one order to fail.
type Fault struct {
	ID        uuid.UUID
	Point     Point
	Action    Action
	Class     retry.Class   // with Error
	Delay     time.Duration // with Delay
	MessageID string        // only for the message with this id; "" is for any
	Remaining *int64        // how often it will still fire, over all replicas; nil: until it is deleted
	Fired     int64         // how often it has
}

// MaxDelay is the longest pause that can be ordered: what hangs longer than this only holds up who wants to look on.
const MaxDelay = 5 * time.Minute
