package quarantine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// chunk is what was taken over one channel.
type chunk struct {
	look *look
	ch   *amqp.Channel
	held int // messages that are not acked
	// since is when those were parked, by their tags.
	since map[uint64]stamp
}

const (
	// actable is how many messages a chunk may have of which some are to be acked. For a quorum queue the channel's process at the
	// broker keeps back what exceeds 32 unapplied commands, and forgets it when the channel closes: messages
	// that were acked would be there again, though the broker has answered everything that was asked after them.
	actable = 31
	// lookable is for those that are only looked at: fewer channels, hence faster. The client library buffers all that comes, so
	// this many messages of the largest size must fit into memory; as they would only once, chunks behind a heavy one are small.
	lookable = 128
	heavyAt  = 1 << 20 // bytes of the bodies in a chunk
)

// take takes the next n messages in hand, or as many as are left. Each chunk has a channel of its own, with a consumer that may have
// exactly these: several consumers on a channel would break the order when they are given back. ctx ends the waiting.
func (l *look) take(ctx context.Context, n int) (*chunk, []*amqp.Delivery, error) {
	n = min(n, l.left())
	if n == 0 {
		return nil, nil, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	if most := int(l.conn.Config.ChannelMax); most > 0 && len(l.held)+2 > most {
		return nil, nil, errTooFar
	}
	ch, err := l.conn.Channel()
	if err != nil {
		return nil, nil, &brokerError{l.queue, err}
	}
	c := &chunk{look: l, ch: ch, since: map[uint64]stamp{}}
	first := len(l.held) == 0
	l.held = append(l.held, c)
	messages, err := c.fetch(ctx, n)
	if c.held = len(messages); ctx.Err() != nil {
		c.held, l.again = n, true // what is still under way to us is held as well
	}
	l.taken += c.held
	if err != nil {
		return nil, nil, &brokerError{l.queue, err}
	}
	size := 0
	for _, d := range messages {
		size += len(d.Body)
		c.since[d.DeliveryTag] = stampOf(l.queue, d)
	}
	l.heavy, l.again = size > heavyAt, messages[n-1].Redelivered
	if first {
		l.q.metrics.looked(l.queue, l.stamps())
	}
	if err := l.count(l.ch); err != nil {
		return nil, nil, &brokerError{l.queue, err}
	}
	return c, messages, nil
}

func (c *chunk) fetch(ctx context.Context, n int) ([]*amqp.Delivery, error) {
	const tag = "look"
	gone := c.ch.NotifyClose(make(chan *amqp.Error, 1))
	if err := c.ch.Qos(n, 0, false); err != nil {
		return nil, err
	}
	deliveries, err := c.ch.Consume(c.look.queue, tag, false, false, false, false, nil)
	if err != nil {
		return nil, err
	}
	messages := make([]*amqp.Delivery, 0, n)
	patience := time.NewTimer(lookPatience)
	defer patience.Stop()
	for len(messages) < n {
		select {
		case d, open := <-deliveries:
			if !open {
				return messages, whyGone(gone)
			}
			messages = append(messages, &d)
			patience.Reset(lookPatience)
		case <-ctx.Done():
			return messages, context.Cause(ctx)
		case <-patience.C:
			return messages, errLookStuck
		}
	}
	// Without this every ack would let one more message through, and hold it back from the queue.
	return messages, c.ch.Cancel(tag, false)
}

// whyGone says what ended the deliveries.
func whyGone(gone <-chan *amqp.Error) error {
	select {
	case err := <-gone:
		if err != nil {
			return err
		}
	case <-time.After(time.Second):
	}
	return errors.New("the queue is gone, or the connection")
}

// ack takes messages out of the queue and returns when the broker has heard of it.
func (c *chunk) ack(tasks []*task) error {
	if len(tasks) == 0 {
		return nil
	}
	l := c.look
	l.acked += len(tasks)
	for _, t := range tasks {
		if err := t.delivery.Ack(false); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		delete(c.since, t.delivery.DeliveryTag)
	}
	c.held -= len(tasks)
	return l.count(c.ch) // answered in order, so after the acks
}

// count tells the gauges how many messages there are now, in the queue and in hand.
func (l *look) count(ch *amqp.Channel) error {
	n, err := waiting(ch, l.queue)
	if err != nil {
		return err
	}
	for _, c := range l.held {
		n += c.held
	}
	l.q.metrics.counted(l.queue, n)
	return nil
}

// stamps are those of the messages in hand.
func (l *look) stamps() []stamp {
	var all []stamp
	for _, c := range l.held {
		all = slices.AppendSeq(all, maps.Values(c.since))
	}
	return all
}

// drop gives a chunk's channel back of which nothing is held any more.
func (c *chunk) drop() {
	l := c.look
	if c.held == 0 && l.held[len(l.held)-1] == c {
		_ = c.ch.Close()
		l.held = l.held[:len(l.held)-1]
	}
}
