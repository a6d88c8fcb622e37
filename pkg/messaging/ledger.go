package messaging

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ledger keeps the books on what a channel has delivered, so that many acks travel as one: an ack with "multiple" settles
// every lower tag too, and may be sent when none of those is still open.
type ledger struct {
	first uint64  // tag of state[0]
	state []state // of each tag from first on
	acks  []uint64
	ackBy time.Time // when they are to be sent; zero while that has not been said
	held  int       // deliveries that are neither settled nor to be acked
}

type state byte

const (
	open    state = iota
	toAck         // to be acked at the next flush
	settled       // acked, rejected or given back
)

// acker is the channel as far as the ledger needs it.
type acker interface {
	Ack(tag uint64, multiple bool) error
}

var _ acker = (*amqp.Channel)(nil)

// take enters a delivery. Tags grow by one on a channel.
func (l *ledger) take(tag uint64) {
	if len(l.state) == 0 {
		l.first = tag
	}
	for l.first+uint64(len(l.state)) <= tag {
		l.state = append(l.state, open)
	}
	l.held++
}

func (l *ledger) set(tag uint64, s state) { l.state[tag-l.first] = s }

// ack notes that a delivery is to be acked.
func (l *ledger) ack(tag uint64) {
	l.set(tag, toAck)
	l.held--
	l.acks = append(l.acks, tag)
}

// close notes that a delivery was settled in another way.
func (l *ledger) close(tag uint64) {
	l.set(tag, settled)
	l.held--
}

// ackWithin is how long an ack may wait for others to travel with. To a quorum queue each is an entry in its log and a write to the disk, as
// dear as the message was, and nobody waits for it. A crash brings as many more messages again.
const ackWithin = 20 * time.Millisecond

// ripe says whether to flush: the first ack has waited for long enough, there are so many that the broker might run out of what it may
// send, or there are none, and nothing is sent.
func (l *ledger) ripe(now time.Time, prefetch int) bool {
	if len(l.acks) == 0 {
		return true
	}
	if l.ackBy.IsZero() {
		l.ackBy = now.Add(ackWithin)
	}
	return 4*len(l.acks) >= prefetch || !now.Before(l.ackBy)
}

// flush sends the acks that are noted, as few as possible.
func (l *ledger) flush(ch acker) error {
	l.ackBy = time.Time{}
	var upTo uint64 // the last tag that one multiple ack may name
	n := 0
	for ; n < len(l.state) && l.state[n] != open; n++ {
		if l.state[n] == toAck {
			upTo = l.first + uint64(n)
		}
	}
	var failed error
	if upTo > 0 {
		failed = ch.Ack(upTo, true)
	}
	for _, tag := range l.acks {
		if tag > upTo {
			if err := ch.Ack(tag, false); err != nil {
				failed = err
			}
			l.set(tag, settled)
		}
	}
	l.acks = l.acks[:0]
	l.first += uint64(n)
	l.state = l.state[:copy(l.state, l.state[n:])]
	return failed
}
