package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// look is a view into one queue. Whoever has one holds the queue's messages unacknowledged; close gives them back.
type look struct {
	conn  *amqp.Connection
	ch    *amqp.Channel
	pace  *pace
	queue string
	depth int // messages that waited when the look began
	acked int // of them, taken out through this look
	gone  <-chan *amqp.Error
	stop  func() bool
}

// brokerError is what went wrong at the broker, in a look or on the way to one.
type brokerError struct {
	queue string
	err   error
}

func (e *brokerError) Error() string { return fmt.Sprintf("look into %s: %v", e.queue, e.err) }

func (e *brokerError) Unwrap() error { return e.err }

// furthest is how many messages one look can see: the broker hands out no more without an ack.
const furthest = 65535

// look opens a view. The caller holds the queue. The view ends with ctx.
func (q *Quarantine) look(ctx context.Context, queue string) (*look, error) {
	l := &look{pace: newPace(), queue: queue}
	var err error
	if l.conn, err = q.Session.Dial(ctx, "quarantine", l.pace.wrap); err != nil {
		return nil, &brokerError{queue, err}
	}
	l.stop = context.AfterFunc(ctx, func() { // the library's calls heed no context
		l.pace.free()
		_ = l.conn.CloseDeadline(time.Now().Add(time.Second))
	})
	if err = l.open(); err != nil {
		l.close()
		return nil, &brokerError{queue, err}
	}
	return l, nil
}

func (l *look) open() (err error) {
	if l.ch, err = l.conn.Channel(); err != nil {
		return err
	}
	l.gone = l.ch.NotifyClose(make(chan *amqp.Error, 1))
	l.depth, err = l.waiting(l.ch)
	return err
}

// waiting asks how many messages wait in the queue.
func (l *look) waiting(ch *amqp.Channel) (int, error) {
	state, err := ch.QueueDeclarePassive(l.queue, true, false, false, false, nil)
	return state.Messages, err
}

const (
	lookTag = "look"
	// A queue that has said it holds so many messages hands them out at once, or as soon as a busy broker gets to it. When nothing comes for
	// lookPatience it is asked again: somebody else may have taken them (the management page can). Those that it no longer counts may
	// also be on their way to us, so that is believed only after a while.
	lookPatience = 500 * time.Millisecond
	lookTaken    = 8  // times lookPatience without a message, none counted any more: they are gone
	lookStuck    = 20 // the same, with some still counted: something is wrong
)

// errLookStuck says that the broker neither hands out the messages it counts nor lets go of them.
var errLookStuck = errors.New("the broker does not hand the messages out")

// each shows the first n messages of the queue in their order, until visit answers false. It takes each look once.
func (l *look) each(ctx context.Context, n int, visit func(*amqp.Delivery) (more bool, err error)) error {
	if n = min(n, l.depth, furthest); n <= 0 {
		return nil
	}
	if err := l.ch.Qos(n, 0, false); err != nil {
		return &brokerError{l.queue, err}
	}
	deliveries, err := l.ch.Consume(l.queue, lookTag, false, false, false, false, nil)
	if err != nil {
		return &brokerError{l.queue, err}
	}
	for range n {
		d, err := l.next(ctx, deliveries)
		if err != nil {
			return &brokerError{l.queue, err}
		}
		if d == nil {
			break
		}
		more, err := visit(d)
		l.pace.looked(len(d.Body) + messaging.HeadersSize(d.Headers))
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	// Without this every ack would let one more message through, and hold it back from the queue.
	l.pace.free()
	if err := l.ch.Cancel(lookTag, false); err != nil {
		return &brokerError{l.queue, err}
	}
	return nil
}

// next waits for a message; nil says that there are fewer than the queue had counted.
func (l *look) next(ctx context.Context, deliveries <-chan amqp.Delivery) (*amqp.Delivery, error) {
	select {
	case d, open := <-deliveries:
		if open {
			return &d, nil
		}
		return nil, l.why(ctx)
	default:
	}
	l.pace.wants(true)
	defer l.pace.wants(false)
	for silence := range lookStuck {
		select {
		case d, open := <-deliveries:
			if open {
				return &d, nil
			}
			return nil, l.why(ctx)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookPatience):
			if left, err := l.waiting(l.ch); err != nil || left == 0 && silence+1 >= lookTaken {
				return nil, err
			}
		}
	}
	return nil, errLookStuck
}

// why says what ended the deliveries.
func (l *look) why(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	select {
	case err := <-l.gone:
		if err != nil {
			return err
		}
	case <-time.After(time.Second):
	}
	return errors.New("the queue is gone, or the connection")
}

// ack takes messages out of the queue and returns when the broker has heard of it.
func (l *look) ack(tags ...uint64) error {
	for _, tag := range tags {
		if err := l.ch.Ack(tag, false); err != nil {
			return err
		}
	}
	if _, err := l.waiting(l.ch); err != nil { // answered in order, so after the acks
		return err
	}
	l.acked += len(tags)
	return nil
}

// close ends the view.
func (l *look) close() {
	l.pace.free()
	l.giveBack()
	_ = l.conn.CloseDeadline(time.Now().Add(time.Second))
	l.stop()
}

// giveBack returns what was not acked, and waits until the queue counts it again: a look that begins too early would not see it.
func (l *look) giveBack() {
	if l.ch == nil || l.conn.IsClosed() {
		return
	}
	_ = l.ch.Close()
	ch, err := l.conn.Channel()
	if err != nil {
		return
	}
	defer func() { _ = ch.Close() }()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if back, err := l.waiting(ch); err != nil || back >= l.depth-l.acked {
			return
		}
	}
}
