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
	// A queue that has said it holds so many messages hands them out at once, or as soon as a busy broker gets to it. One that hands out nothing for
	// so long never will: somebody else has taken some meanwhile (the management page can), or something is wrong.
	lookPatience = 15 * time.Second
)

// errLookStuck says that not all messages could be looked at.
var errLookStuck = errors.New("the broker does not hand out all the messages that it has counted")

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

// next waits for a message.
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
	patience := time.NewTimer(lookPatience)
	defer patience.Stop()
	select {
	case d, open := <-deliveries:
		if open {
			return &d, nil
		}
		return nil, l.why(ctx)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-patience.C:
		return nil, errLookStuck
	}
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

// giveBack returns what was not acked, and waits until the queue counts it again: a look that begins too early would not see it. That is a
// matter of moments for a quorum queue; a classic one may take a second for every few thousand messages.
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
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last, progress := -1, time.Now()
	for time.Since(progress) < backPatience {
		back, err := l.waiting(ch)
		if err != nil || back >= l.depth-l.acked {
			return
		}
		if back > last {
			last, progress = back, time.Now()
		}
		<-tick.C
	}
}

// backPatience is for how long a queue may count nothing more of what comes back, until it is not waited for any longer: somebody else has taken
// the rest.
const backPatience = 5 * time.Second
