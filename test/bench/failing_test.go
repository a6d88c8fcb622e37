package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"example.com/banking/pkg/messaging"
)

// answering is a broker that answers the same each time.
type answering struct {
	outcomes []messaging.Outcome
	err      error
}

func (a answering) Publish(_ context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error) {
	return a.outcomes[:len(messages)], a.err
}

// A bad message that the broker does not have in a queue is none to wait for, and the measurement is over.
func TestOnlyConfirmedBadMessagesAreWaitedFor(t *testing.T) {
	t.Parallel()
	const acked, nacked, returned, unknown = messaging.Acked, messaging.Nacked, messaging.Returned, messaging.Unknown
	broken := errors.New("the session broke")
	for _, c := range []struct {
		broker answering
		parked int
		says   string // "" for no error
	}{
		{answering{[]messaging.Outcome{acked, acked, acked}, nil}, 3, ""},
		{answering{[]messaging.Outcome{acked, nacked, acked}, nil}, 2, "nacked:1"},
		{answering{[]messaging.Outcome{returned, acked, returned}, nil}, 1, "returned:2"},
		{answering{[]messaging.Outcome{acked, unknown, unknown}, broken}, 1, broken.Error()},
	} {
		f := failures{session: c.broker}
		err := f.publish(t.Context(), len(c.broker.outcomes), 0)
		if f.parked != c.parked || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %d are waited for, %v; want %d, %q", c.broker.outcomes, f.parked, err, c.parked, c.says)
		}
	}
	if !eventAboutNobody().Mandatory {
		t.Error("nobody is told of a bad message that comes to no queue")
	}
}
