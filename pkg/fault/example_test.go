package fault_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// unlimited is a ledger for faults that are not counted.
type unlimited struct{}

func (unlimited) Take(context.Context, uuid.UUID) (bool, error) { return true, nil }
func (unlimited) Note(context.Context, uuid.UUID, int64) error  { return nil }

// The code asks at its fault points. What is not armed, or armed for another message, is free; a service without faults has nil points.
func ExamplePoints_At() {
	points := fault.New(unlimited{}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	points.Arm([]fault.Fault{{ID: uuid.New(), Point: fault.Handler, Action: fault.Error, Class: retry.Timeout, MessageID: "m-2"}})
	for _, id := range []string{"m-1", "m-2"} {
		err := points.At(context.Background(), fault.Handler, id)
		fmt.Println(id, retry.ClassOf(err) == retry.Timeout, err != nil)
	}
	var off *fault.Points
	fmt.Println(off.At(context.Background(), fault.Handler, "m-2"))
	// Output:
	// m-1 false false
	// m-2 true true
	// <nil>
}

// Points are written as people write them.
func ExampleParsePoint() {
	fmt.Println(fault.ParsePoint("After Commit"))
	fmt.Println(fault.AllPoints())
	// Output:
	// after-commit true
	// [handler before-commit after-commit before-ack after-ack after-publish]
}

// Actions are read in the same way. Who writes something else is told what there is.
func ExampleParseAction() {
	for _, text := range []string{" Delay", "explode"} {
		if action, ok := fault.ParseAction(text); ok {
			fmt.Println(action)
		} else {
			fmt.Printf("%q is none of %v\n", text, fault.AllActions())
		}
	}
	// Output:
	// delay
	// "explode" is none of [error delay panic exit]
}

// So is the class of the error with which a point is to fail.
func ExampleParseClass() {
	for _, text := range []string{"rate limited", "not-found", "fatal"} {
		if class, ok := fault.ParseClass(text); ok {
			fmt.Println(class)
		} else {
			fmt.Printf("%q is none of %v\n", text, fault.AllClasses())
		}
	}
	// Output:
	// RATE_LIMITED
	// NOT_FOUND
	// "fatal" is none of [VALIDATION INVARIANT NOT_FOUND CONFLICT TIMEOUT RATE_LIMITED UNKNOWN CANCELLED]
}
