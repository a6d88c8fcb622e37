package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// Class says what kind of failure an error is, which is what decides whether trying again can help.
type Class string

// The classes, from "the message is wrong" to "nobody knows".
const (
	Validation  Class = "VALIDATION"   // the message can never be handled: undecodable, incomplete, of an unknown type
	Invariant   Class = "INVARIANT"    // the message contradicts what is stored
	NotFound    Class = "NOT_FOUND"    // what the message refers to is not there, or not there yet
	Conflict    Class = "CONFLICT"     // another transaction was in the way: serialization, deadlock, version race
	Timeout     Class = "TIMEOUT"      // a dependency did not answer, or is down or starting
	RateLimited Class = "RATE_LIMITED" // a dependency asked for less
	Unknown     Class = "UNKNOWN"      // anything else, a recovered panic included
	Cancelled   Class = "CANCELLED"    // our own shutdown: not a failure, no attempt spent
)

// Classes lists the classes of failures: all but CANCELLED, which is none.
func Classes() []Class {
	return []Class{Validation, Invariant, NotFound, Conflict, Timeout, RateLimited, Unknown}
}

// CountsForBreaker says whether a failure of this class blames something that other messages need too, or may do so because
// nobody knows. The other classes are about the one message.
func (c Class) CountsForBreaker() bool {
	return c == Timeout || c == RateLimited || c == Unknown
}

// Error is an error with its class.
type Error struct {
	Class Class
	Err   error
	After time.Duration // the delay that the dependency asked for (Retry-After); 0 when it did not
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error of a class; the format is that of fmt.Errorf.
func Errorf(class Class, format string, args ...any) error {
	return &Error{Class: class, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a class; nil stays nil. An error that has a class already keeps its first one: who was nearest knew best.
func Wrap(class Class, err error) error {
	var classed *Error
	if err == nil || errors.As(err, &classed) {
		return err
	}
	return &Error{Class: class, Err: err}
}

// LimitedFor is an error of class RATE_LIMITED whose dependency said when to come back: after is its Retry-After. A nil
// error stays nil. The class is the one given here even if err has another.
func LimitedFor(after time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: RateLimited, Err: err, After: max(after, 0)}
}

// AfterOf is the delay that the dependency asked for, from the same Error that ClassOf takes the class from; 0 when it asked
// for none.
func AfterOf(err error) time.Duration {
	var classed *Error
	if errors.As(err, &classed) {
		return max(classed.After, 0)
	}
	return 0
}

// Classifier recognises the errors of one library; ok is false for errors that are not its own.
type Classifier func(error) (class Class, ok bool)

// ClassOf finds the class of an error: its own if it carries one, else what the classifiers say, else what can be told from
// SQLSTATE codes, contexts and the network, else UNKNOWN. A nil error has no class.
func ClassOf(err error, classifiers ...Classifier) Class {
	if err == nil {
		return ""
	}
	var classed *Error
	if errors.As(err, &classed) {
		return classed.Class
	}
	for _, classify := range classifiers {
		if class, ok := classify(err); ok {
			return class
		}
	}
	var sqlState interface{ SQLState() string }
	if errors.As(err, &sqlState) {
		return classOfSQLState(sqlState.SQLState())
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Cancelled
	case lostTouch(err):
		return Timeout
	}
	return Unknown
}

// lostTouch says whether err tells of a dependency that did not answer, or whose connection broke or never came about.
func lostTouch(err error) bool {
	for _, known := range []error{
		context.DeadlineExceeded, os.ErrDeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOTCONN,
		syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENETRESET,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var network net.Error
	if errors.As(err, &network) {
		// Every error of a system call looks like one of the network; a file that is missing is none.
		if _, bare := network.(syscall.Errno); !bare {
			return true
		}
	}
	// The database driver's word for "nothing was sent": its connection was closed, or busy, before the query.
	var unsent interface{ SafeToRetry() bool }
	return errors.As(err, &unsent) && unsent.SafeToRetry()
}

// classOfSQLState reads the codes of PostgreSQL (appendix A of its manual) that say something about trying again. Broken
// constraints (23) and values that do not fit (22) stay UNKNOWN: whether they are the message's fault or that of a statement
// of ours is for the owner of the tables to say, by a classifier.
func classOfSQLState(code string) Class {
	switch code {
	case "40000", "40001", "40P01", "55P03": // rolled back, serialization_failure, deadlock_detected, lock_not_available
		return Conflict
	case "40003": // nobody knows whether it took effect
		return Timeout
	case "53300": // too_many_connections
		return RateLimited
	case "57P01", "57P02", "57P03", "57P05", "57014": // shutting down, crashed, starting up, idle too long, cancelled by a timeout
		return Timeout
	case "3D000", "57P04": // the database is not there, or has just been dropped: it is being restored
		return Timeout
	case "25P03", "25P04", "25006": // transactions that took too long, and a standby that does not take writes (yet)
		return Timeout
	}
	for _, class := range []string{
		"08", // connection exceptions
		"28", // who we are is not believed: a password that is being changed
		"53", // out of disk, memory or connections
		"58", // system and I/O errors
	} {
		if strings.HasPrefix(code, class) {
			return Timeout
		}
	}
	return Unknown
}
