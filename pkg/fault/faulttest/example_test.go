package faulttest_test

import (
	"context"
	"fmt"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/fault/faulttest"
	"example.com/banking/pkg/retry"
)

// A test gives its subject points at which one thing goes wrong, one time.
func ExampleOnce() {
	points := faulttest.Once(fault.Fault{Point: fault.BeforeCommit, Action: fault.Error, Class: retry.Conflict})
	for range 2 {
		fmt.Println(retry.ClassOf(points.At(context.Background(), fault.BeforeCommit, "m-1")) == retry.Conflict)
	}
	// Output:
	// true
	// false
}
