package messaging

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// confirming is one channel in confirm mode.
type confirming struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	returns <-chan amqp.Return
	closed  <-chan *amqp.Error
	fences  chan chan struct{}
	ended   chan struct{} // closed when the channel is closed and all its returns are known

	// Why it closed; valid once ended is closed.
	exception *amqp.Error
	err       error
}

// listen takes the returns as they come: a full channel of them stalls everything that the connection reads.
func (c *confirming) listen(returned func(amqp.Return)) {
	for {
		select {
		case r, open := <-c.returns:
			if !open {
				c.exception = <-c.closed
				c.err = refusal(c.exception, !c.conn.IsClosed())
				close(c.ended)
				return
			}
			returned(r)
		case passed := <-c.fences:
			for len(c.returns) > 0 {
				if r, open := <-c.returns; open {
					returned(r)
				}
			}
			close(passed)
		}
	}
}

// fence returns when every return that came before the confirms seen so far is known: the broker sends a message's return
// before its confirm, and the client library has put it into the channel by then.
func (c *confirming) fence() {
	passed := make(chan struct{})
	select {
	case c.fences <- passed:
		<-passed
	case <-c.ended:
	}
}

var errChannelClosed = errors.New("the channel for publishing closed")

// why waits for the reason for which the channel closed.
func (c *confirming) why(ctx context.Context) error {
	select {
	case <-c.ended:
		return c.err
	case <-ctx.Done():
		return errors.Join(errChannelClosed, ctx.Err())
	case <-time.After(time.Second):
		return errChannelClosed
	}
}

// collect waits for the confirms of a job.
func (p *publisher) collect(ctx context.Context, j *job, outcomes []Outcome) error {
	var missing error
	for i := range j.sent {
		confirm := j.sent[i].confirm
		if confirm == nil {
			continue
		}
		acked, err := confirm.WaitContext(ctx)
		switch {
		case err != nil:
			missing = p.link.waiting(fmt.Errorf("no confirm: %w", err))
		case acked:
			outcomes[i] = Acked
		case j.channel.ch.IsClosed():
			// A confirm that is waited for when its channel ends looks like a nack. The broker may have the message or not.
			missing = j.channel.why(ctx)
		default:
			outcomes[i] = Nacked
		}
	}
	j.channel.fence()
	return missing
}

// anyReturned turns the acks of what came back into Returned: the broker acks a message that it could not route too.
func (p *publisher) anyReturned(j *job, outcomes []Outcome) (any bool) {
	p.m.Lock()
	defer p.m.Unlock()
	for i := range j.sent {
		if j.sent[i].returned {
			outcomes[i], any = Returned, true
		}
	}
	return any
}
