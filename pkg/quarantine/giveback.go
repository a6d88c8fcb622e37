package quarantine

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// backPatience is for how long a queue may count nothing more of what comes back, until it is not waited for any longer: somebody
	// else has taken the rest.
	backPatience = 5 * time.Second
	// lostPatience is the same when the connection was lost: the broker may need three heartbeats to notice.
	lostPatience = 30 * time.Second
	// lostDial is for how long it is tried to reach the broker again. One that is down gives everything back before it is up again, but what cannot
	// be reached for a moment may be none of that kind.
	lostDial = 15 * time.Second
)

// close ends the view. It returns when the queue counts again what was held, and only then may the lock be given up: whoever looked
// sooner would find the queue empty, and believe it.
func (l *look) close() {
	l.round()
	if stamps := l.stamps(); len(stamps) > 0 || l.taken > 0 && l.left() == 0 { // else nothing is known of those that were not reached
		l.q.metrics.looked(l.queue, stamps)
	}
	err := l.giveBack()
	if l.ch != nil {
		_ = l.ch.Close()
	}
	l.stop()
	if err != nil && !errors.Is(err, errNotBack) {
		if err = l.awaitLost(); err != nil && len(l.held) > 0 {
			l.q.lost[l.queue] = lost{l.depth - l.acked, time.Now()}
		}
	}
	if err != nil {
		l.q.Logger.Warn("what a look held is not known to be back in its queue", "queue", l.queue, "error", err)
	}
}

// lost is what a look could not see come back. For a while a queue that counts less is not looked into: it would be taken for emptier than it is.
type lost struct {
	depth int
	at    time.Time
}

const lostFor = time.Minute // then somebody else has taken the rest

// allBack says whether a queue of this depth may be looked into.
func (q *Quarantine) allBack(queue string, depth int) bool {
	if l, some := q.lost[queue]; some && depth < l.depth && time.Since(l.at) < lostFor {
		return false
	}
	delete(q.lost, queue)
	return true
}

// round takes what must be in hand as well for the order to be kept. A quorum queue puts what comes back behind what came back
// before, and hands out both before all that was never handed out. So the end of a look is where it meets the latter, or the end of the queue; else
// the queue would turn round with each look.
func (l *look) round() {
	for l.again && l.left() > 0 && !l.conn.IsClosed() {
		if _, _, err := l.take(context.Background(), l.next()); err != nil {
			return
		}
	}
}

// giveBack returns what was not acked, chunk by chunk: the queue puts back what a channel held when it learns that the channel is closed, so
// the order is kept only if each is back before the next. That is a matter of moments for a quorum queue; a classic one may take a
// second for every few thousand messages.
func (l *look) giveBack() error {
	for _, c := range l.held {
		before, err := waiting(l.ch, l.queue)
		if err != nil {
			return err
		}
		if err := c.ch.Close(); err != nil && l.conn.IsClosed() {
			return err
		}
		if err := awaitBack(l.ch, l.queue, before+c.held, backPatience); err != nil {
			return err
		}
	}
	return nil
}

// awaitLost waits, over a connection of its own, until the queue counts what was held by the lost one.
func (l *look) awaitLost() error {
	ctx, cancel := context.WithTimeout(context.Background(), lostDial)
	defer cancel()
	conn, err := l.q.Session.Dial(ctx, "quarantine")
	for err != nil {
		select {
		case <-time.After(500 * time.Millisecond):
			conn, err = l.q.Session.Dial(ctx, "quarantine")
		case <-ctx.Done():
			return err
		}
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	return awaitBack(ch, l.queue, l.depth-l.acked, lostPatience)
}

// awaitBack waits until so many messages wait in the queue.
func awaitBack(ch *amqp.Channel, queue string, n int, patience time.Duration) error {
	most, progress := -1, time.Now()
	for pause := time.Millisecond / 4; ; pause = min(2*pause, 20*time.Millisecond) {
		back, err := waiting(ch, queue)
		switch {
		case err != nil:
			return err
		case back >= n:
			return nil
		case back > most:
			most, progress = back, time.Now()
		case time.Since(progress) > patience:
			return errNotBack
		}
		<-time.After(pause)
	}
}
