package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestCanary(t *testing.T) {
	t.Parallel()
	t.Run("comes back", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.consume(func(*messaging.Message) error { return retry.Errorf(retry.Invariant, "not this one") })
		b.parkAll(ids(0, 10)...)
		r := b.replay(order{"all": true, "canary": 1, "confirm": true})
		if r.Done != 1 || !r.Items[0].Canary || !strings.Contains(r.Stopped, "m-000 came back with INVARIANT: not this one") {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 10)
		if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY DONE m-000"}) {
			t.Errorf("the audit has %q", rows)
		}
	})
	t.Run("is handled", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		handled := b.consume(func(*messaging.Message) error { return nil })
		b.parkAll(ids(0, 10)...)
		r := b.replay(order{"all": true, "canary": 3, "confirm": true})
		if r.Done != 10 || r.Stopped != "" || !r.Items[2].Canary || r.Items[3].Canary {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 0)
		for range 10 {
			<-handled
		}
	})
	t.Run("goes elsewhere", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		if _, err := b.ch.QueueDeclare(contract.TransferRequestedQueue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		away := func(h amqp.Table) { h[messaging.HeaderOriginQueue] = contract.TransferRequestedQueue }
		b.park(parkedEvent("a", away), parkedEvent("b", away))
		if r := b.replay(order{"all": true, "canary": 1, "confirm": true}); r.Done != 1 || !strings.Contains(r.Stopped, "another service") {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 1)
	})
}

// What a run parks again stands behind what it set out to do, and is not its business.
func TestRunDoesNotChaseWhatItParksAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	handled := b.consume(func(*messaging.Message) error { return retry.Errorf(retry.Invariant, "never") })
	all := ids(0, 40)
	b.parkAll(all...)
	b.q.at = func(s step) error {
		if s == afterAck { // each batch is back in the parking lot before the next is sent
			b.eventually("the message to be parked again", func() error {
				if back := b.depth(lot); back < len(b.audit()) {
					return fmt.Errorf("%d are back", back)
				}
				return nil
			})
		}
		return nil
	}
	r := b.replay(order{"confirm": true, "limit": 1000, "rate": 20, "reason": "MAX_ATTEMPTS"})
	if r.Done != 40 || r.Matched != 40 {
		t.Errorf("answered %d of %d", r.Done, r.Matched)
	}
	b.hasDepth(lot, 40)
	if len(handled) != 40 {
		t.Errorf("handled %d times, want 40", len(handled))
	}
	if r := b.replay(order{"limit": 1000}); r.Matched != 40 {
		t.Errorf("the next run finds %d", r.Matched)
	}
}

// Rounds of a run: what stays is not looked at twice, what follows is not left out.
func TestRounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var messages []amqp.Publishing
	for _, id := range ids(0, 30) {
		messages = append(messages, parkedEvent(id, func(h amqp.Table) {
			if id[len(id)-1]%3 == 0 {
				h[messaging.HeaderOriginQueue] = "elsewhere"
			}
			if id[len(id)-1]%3 == 1 {
				h[messaging.HeaderErrorClass] = "TIMEOUT"
			}
		}))
	}
	b.park(messages...)
	b.q.handful, b.q.keeping = 2, 0 // a round for each two messages
	r := b.replay(order{"confirm": true, "class": "NOT_FOUND", "rate": 1000, "limit": 3})
	if r.Matched != 3 || r.Done+r.Refused != 3 {
		t.Errorf("answered %+v", r)
	}
	first := r.Done
	r = b.replay(order{"confirm": true, "class": "NOT_FOUND", "canary": 2, "rate": 1000, "limit": 1000})
	if r.Stopped == "" { // nobody consumes: the canaries are neither handled nor back
		t.Errorf("answered %+v", r)
	}
	second := r.Done
	r = b.replay(order{"confirm": true, "class": "NOT_FOUND", "rate": 1000, "limit": 1000})
	wanted := 0
	for _, id := range ids(0, 30) {
		if id[len(id)-1]%3 == 2 {
			wanted++
		}
	}
	if first+second+r.Done != wanted {
		t.Errorf("%d and %d and %d were replayed, want %d in all", first, second, r.Done, wanted)
	}
	b.hasDepth(lot, 30-wanted)
}
