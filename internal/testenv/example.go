package testenv

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
)

// Example is for Example functions, which have no *testing.T: it is passed to New and to the methods of Env in its place. When something
// fails it panics, which fails the example. Deferred, end drops what was made.
func Example() (t testing.TB, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	e := &example{ctx: ctx}
	return e, func() {
		cancel()
		for _, cleanup := range slices.Backward(e.cleanups) {
			cleanup()
		}
	}
}

// example is the part of a testing.TB that this package uses, without a test behind it.
type example struct {
	testing.TB // none: a method that is not here panics
	ctx        context.Context
	cleanups   []func()
}

func (e *example) Helper()                           {}
func (e *example) Context() context.Context          { return e.ctx }
func (e *example) Cleanup(f func())                  { e.cleanups = append(e.cleanups, f) }
func (e *example) Fatal(args ...any)                 { panic(fmt.Sprint(args...)) }
func (e *example) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Logf writes where it is no output of the example.
func (e *example) Logf(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, format+"\n", args...)
}
