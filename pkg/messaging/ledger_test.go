package messaging

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// channel keeps the broker's side of the books.
type channel struct {
	unacked []uint64
	acked   []uint64
	frames  int
}

func (c *channel) deliver(tag uint64) { c.unacked = append(c.unacked, tag) }

func (c *channel) settle(tag uint64) {
	c.unacked = slices.DeleteFunc(c.unacked, func(t uint64) bool { return t == tag })
}

// Ack does as a broker does: a tag that is not outstanding closes the channel.
func (c *channel) Ack(tag uint64, multiple bool) error {
	c.frames++
	if !slices.Contains(c.unacked, tag) {
		return fmt.Errorf("unknown delivery tag %d", tag)
	}
	c.unacked = slices.DeleteFunc(c.unacked, func(t uint64) bool {
		gone := t == tag || multiple && t < tag
		if gone {
			c.acked = append(c.acked, t)
		}
		return gone
	})
	return nil
}

func TestLedgerAcksExactlyWhatWasAcked(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		var c channel
		var next uint64
		var open, want []uint64
		pick := func() uint64 {
			i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
			tag := open[i]
			open = slices.Delete(open, i, i+1)
			return tag
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step == 0 || len(open) == 0:
				next++
				c.deliver(next)
				l.take(next)
				open = append(open, next)
			case step == 1:
				tag := pick()
				c.settle(tag)
				l.close(tag)
			case step == 2:
				tag := pick()
				l.ack(tag)
				want = append(want, tag)
			default:
				if err := l.flush(&c); err != nil {
					t.Fatal(err)
				}
				slices.Sort(want)
				slices.Sort(c.acked)
				if !slices.Equal(c.acked, want) {
					t.Fatalf("acked %v, want %v", c.acked, want)
				}
			}
		}
	})
}

func TestLedgerSendsOneAckForARun(t *testing.T) {
	t.Parallel()
	var l ledger
	var c channel
	for tag := uint64(1); tag <= 100; tag++ {
		c.deliver(tag)
		l.take(tag)
	}
	for tag := uint64(100); tag > 0; tag-- {
		l.ack(tag)
	}
	if err := l.flush(&c); err != nil || c.frames != 1 || len(c.unacked) != 0 {
		t.Errorf("%d frames, %d unacked, %v", c.frames, len(c.unacked), err)
	}
	if len(l.state) != 0 {
		t.Errorf("%d tags are still kept", len(l.state))
	}
	if err := l.flush(&c); err != nil || c.frames != 1 {
		t.Errorf("nothing to ack: %d frames, %v", c.frames, err)
	}
}

func TestLedgerForgetsWithoutAcks(t *testing.T) {
	t.Parallel()
	var l ledger
	for tag := uint64(1); tag <= 100; tag++ {
		l.take(tag)
		l.close(tag)
	}
	if err := l.flush(refusing{}); err != nil || len(l.state) != 0 {
		t.Errorf("%d tags are still kept, %v", len(l.state), err)
	}
}

type refusing struct{}

func (refusing) Ack(uint64, bool) error { return errors.New("closed") }

func TestLedgerReportsAClosedChannel(t *testing.T) {
	t.Parallel()
	var l ledger
	l.take(1)
	l.ack(1)
	if l.flush(refusing{}) == nil {
		t.Error("no error")
	}
}

// An ack waits for company, but neither for long nor while the broker may run out of what it may send.
func TestAcksTravelTogether(t *testing.T) {
	t.Parallel()
	var l ledger
	var c channel
	next := uint64(0)
	handle := func() {
		next++
		c.deliver(next)
		l.take(next)
		l.ack(next)
	}
	now := time.Now()
	handle()
	if l.ripe(now, 12) || l.ripe(now.Add(ackWithin-1), 12) {
		t.Error("an ack does not wait")
	}
	handle()
	if !l.ripe(now.Add(ackWithin), 12) {
		t.Error("an ack waits for as long as others come")
	}
	if err := l.flush(&c); err != nil || c.frames != 1 || len(c.unacked) != 0 {
		t.Errorf("%v: %d frames, unacked %v", err, c.frames, c.unacked)
	}
	for handle(); len(l.acks) < 3; handle() {
		if l.ripe(now, 12) {
			t.Error("fewer than a quarter of the prefetch do not wait")
		}
	}
	if !l.ripe(now, 12) {
		t.Error("a quarter of the prefetch waits")
	}
	if !l.ripe(now, 1) {
		t.Error("the only message that the broker may send waits")
	}
}
