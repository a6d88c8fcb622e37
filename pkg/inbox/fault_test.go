package inbox

import (
	"testing"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/fault/faulttest"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// newFaultyBench is a bench with one fault that fires once.
func newFaultyBench(t *testing.T, f fault.Fault) *bench {
	t.Helper()
	return newBench(t, func(c *Config[command]) { c.Faults = faulttest.Once(f) })
}

func three() []*messaging.Message {
	return []*messaging.Message{message("m1", `{"tally":"a","amount":1}`), message("m2", `{"tally":"a","amount":10}`), message("m3", `{"tally":"a","amount":100}`)}
}

// A fault in the handler hits its message and no neighbour, as a real error and a real panic do.
func TestFaultInTheHandler(t *testing.T) {
	t.Parallel()
	for action, want := range map[fault.Action]retry.Class{fault.Error: retry.Timeout, fault.Panic: retry.Unknown} {
		b := newFaultyBench(t, fault.Fault{Point: fault.Handler, Action: action, Class: retry.Timeout, MessageID: "m2"})
		results := b.handle(t, three()...)
		class(t, results[1], want)
		if results[0] != nil || results[2] != nil {
			t.Errorf("%s: its neighbours: %v", action, results)
		}
		b.expect(t, 101, 2, 2)
		if err := b.handle(t, three()[1])[0]; err != nil {
			t.Errorf("%s: retried: %v", action, err)
		}
		b.expect(t, 111, 3, 3)
		b.idle(t)
	}
}

// Before the commit it takes the whole batch along, and nothing of it is left; after it everything is there, and the copy that
// the consumer brings again is a duplicate.
func TestFaultAroundTheCommit(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		point       fault.Point
		action      fault.Action
		want        retry.Class
		total, seen int64
	}{
		{fault.BeforeCommit, fault.Error, retry.Timeout, 0, 0},
		{fault.BeforeCommit, fault.Panic, retry.Unknown, 0, 0},
		{fault.AfterCommit, fault.Error, retry.Timeout, 111, 3},
		{fault.AfterCommit, fault.Panic, retry.Unknown, 111, 3},
	} {
		b := newFaultyBench(t, fault.Fault{Point: test.point, Action: test.action, Class: retry.Timeout, MessageID: "m2"})
		if results := b.handle(t, three()[0]); results[0] != nil {
			t.Errorf("%s: another message: %v", test.point, results)
		}
		_, whole := b.handler(t.Context(), three())
		class(t, whole, test.want)
		b.idle(t)
		b.expect(t, max(test.total, 1), max(test.seen, 1), max(test.seen, 1))
		for i, err := range b.handle(t, three()...) {
			if err != nil {
				t.Errorf("%s %s: message %d again: %v", test.action, test.point, i, err)
			}
		}
		b.expect(t, 111, 3, 3)
	}
}

// A fault is asked for where a message is applied: not for one that was seen before, nor for one that has failed by itself.
func TestFaultPassesOverWhatIsNotApplied(t *testing.T) {
	t.Parallel()
	b := newFaultyBench(t, fault.Fault{Point: fault.AfterCommit, Action: fault.Error, Class: retry.Timeout, MessageID: "bad"})
	results := b.handle(t, message("bad", `{"tally":"a","amount":1,"do":"fail"}`), message("m1", `{"tally":"a","amount":1}`))
	class(t, results[0], retry.NotFound)
	_, whole := b.handler(t.Context(), []*messaging.Message{message("bad", `{"tally":"a","amount":1}`)})
	class(t, whole, retry.Timeout) // its own time has come
	b.handle(t, message("bad", `{"tally":"a","amount":1}`))
	b.expect(t, 2, 2, 2)
}
