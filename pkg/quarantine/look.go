package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// look is a view into one queue: the messages that waited when it began, in their order, chunk by chunk. Whoever has one holds
// what it has taken; close gives that back, in its order.
type look struct {
	q     *Quarantine
	conn  *amqp.Connection
	ch    *amqp.Channel // asks how many wait; nothing is taken over it
	queue string
	depth int      // messages that waited when the look began
	taken int      // of them, taken in hand so far
	acked int      // of those, taken out of the queue, as far as the broker can have heard of it
	held  []*chunk // what is to be given back
	heavy bool     // the last chunk was
	again bool     // the last message of it had been handed out before
	stop  func()
}

// brokerError is what went wrong at the broker, in a look or on the way to one.
type brokerError struct {
	queue string
	err   error
}

func (e *brokerError) Error() string { return fmt.Sprintf("look into %s: %v", e.queue, e.err) }

func (e *brokerError) Unwrap() error { return e.err }

var (
	// errLookStuck says that not all messages could be looked at.
	errLookStuck = errors.New("the broker does not hand out all the messages that it has counted")
	// errNotBack says that not all that a look has given back is there again.
	errNotBack = errors.New("the queue does not count all that was given back")
	// errTooFar says that a connection has no more channels.
	errTooFar = errors.New("the queue is deeper than one look can reach")
)

const (
	// A queue that has said it holds so many messages hands them out at once, or as soon as a busy broker gets to it. One that hands out nothing for
	// so long never will: somebody else has taken some meanwhile (the management page can), or something is wrong.
	lookPatience = 15 * time.Second
	// lookGrace is for what is under way, and for giving back, once a look's context has ended. Then its connection is cut, because the
	// library's calls heed no context: what it holds is back as well, but perhaps not in its order.
	lookGrace = 30 * time.Second
)

// look opens a view. The caller holds the queue.
func (q *Quarantine) look(ctx context.Context, queue string) (*look, error) {
	conn, err := q.Session.Dial(ctx, "quarantine")
	if err != nil {
		return nil, &brokerError{queue, err}
	}
	l := &look{q: q, conn: conn, queue: queue}
	closed := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		grace := time.NewTimer(lookGrace)
		defer grace.Stop()
		select {
		case <-closed:
		case <-grace.C:
			_ = conn.CloseDeadline(time.Now())
		}
	})
	l.stop = func() {
		unhook()
		close(closed)
		_ = conn.CloseDeadline(time.Now().Add(time.Second))
	}
	if err := l.open(); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *look) open() (err error) {
	if l.ch, err = l.conn.Channel(); err == nil {
		l.depth, err = waiting(l.ch, l.queue)
	}
	if err == nil && !l.q.allBack(l.queue, l.depth) {
		err = errNotBack
	}
	if err != nil {
		return &brokerError{l.queue, err}
	}
	l.q.metrics.counted(l.queue, l.depth)
	return nil
}

// waiting asks how many messages wait in a queue.
func waiting(ch *amqp.Channel, queue string) (int, error) {
	state, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	return state.Messages, err
}

// tooFar says how far a look has come that ended with errTooFar.
func (l *look) tooFar() string {
	return fmt.Sprintf("%s holds %d messages; a look reaches the first %d", l.queue, l.depth, l.taken)
}

// left is how many messages have not been taken yet.
func (l *look) left() int { return l.depth - l.taken }

// each shows the messages in their order, until visit answers false.
func (l *look) each(ctx context.Context, visit func(*amqp.Delivery) (more bool, err error)) error {
	for l.left() > 0 {
		_, messages, err := l.take(ctx, l.next())
		if err != nil {
			return err
		}
		for _, d := range messages {
			if more, err := visit(d); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// next is how many messages to take that are only looked at.
func (l *look) next() int {
	if l.taken == 0 || l.heavy { // nothing is known of their size yet; or too much
		return actable
	}
	return lookable
}
