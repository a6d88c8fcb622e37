package outbox

import (
	"testing"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/fault/faulttest"
	"example.com/banking/pkg/retry"
)

// Between the confirm and the mark: the message is published again under its id, its neighbour is not, and the outbox gets empty.
func TestFaultAfterTheConfirmPublishesAgain(t *testing.T) {
	t.Parallel()
	b := &broker{}
	faults := faulttest.Once(fault.Fault{Point: fault.AfterPublish, Action: fault.Error, Class: retry.Timeout, MessageID: "m1"})
	o := start(t, Config{Pool: newPool(t), Publisher: b, Faults: faults, Poll: 50 * time.Millisecond})
	send(t, o, newMessage(t, "m1"), newMessage(t, "m2"))
	awaitEmpty(t, o.config.Pool)
	if b.times("m1") != 2 || b.times("m2") != 1 {
		t.Errorf("published %d and %d times, want 2 and 1", b.times("m1"), b.times("m2"))
	}
}

// A relay that hangs after the confirm holds up its own batch; when it is told to stop it does, and the next relay sends again.
func TestDelayAfterTheConfirmEndsWithTheStop(t *testing.T) {
	t.Parallel()
	b := &broker{}
	pool := newPool(t)
	faults := faulttest.Once(fault.Fault{Point: fault.AfterPublish, Action: fault.Delay, Delay: fault.MaxDelay})
	o := newOutbox(Config{Pool: pool, Publisher: b, Faults: faults, StopGrace: 100 * time.Millisecond})
	stop := run(t, o)
	send(t, o, newMessage(t, "m1"))
	eventually(t, "the message is published", func() bool { return b.times("m1") == 1 })
	stop()
	if n := rowCount(t, pool, "true"); n != 1 {
		t.Errorf("%d messages are left, want the one that hung", n)
	}
	start(t, Config{Pool: pool, Publisher: b, Poll: 50 * time.Millisecond})
	awaitEmpty(t, pool)
}
