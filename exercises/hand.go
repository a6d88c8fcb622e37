package exercises

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// hand holds messages of a queue: taken and not acknowledged. Nobody else gets them until it lets go.
type hand struct {
	conn *amqp.Connection
}

// take takes messages from a queue until it has the one that is wanted.
func (h *hand) take(ctx context.Context, r *run, queue string, wanted func(heard) bool) (message amqp.Delivery, err error) {
	if h.conn, err = r.broker.dial(); err != nil {
		return message, err
	}
	channel, err := h.conn.Channel()
	if err != nil {
		return message, err
	}
	err = r.await(ctx, r.patience(), func(context.Context) (there bool, err error) {
		message, there, err = channel.Get(queue, false)
		return there && wanted(readEvent(message)), err
	})
	if err != nil {
		return message, fmt.Errorf("the message does not come to %s: %w", queue, err)
	}
	return message, nil
}

// release gives everything back to its queue.
func (h *hand) release() {
	if h.conn != nil {
		_ = h.conn.Close() // whichever way it ends, the broker has them again
	}
}

// copied looks at a message and leaves it where it is.
func (r *run) copied(ctx context.Context, queue, messageID string) (amqp.Publishing, error) {
	var h hand
	defer h.release()
	m, err := h.take(ctx, r, queue, func(h heard) bool { return h.messageID == messageID })
	delete(m.Headers, "x-delivery-count") // is the queue's, not the message's
	return amqp.Publishing{
		Headers: m.Headers, ContentType: m.ContentType, DeliveryMode: m.DeliveryMode, MessageId: m.MessageId, Type: m.Type,
		CorrelationId: m.CorrelationId, AppId: m.AppId, Timestamp: m.Timestamp, Body: m.Body,
	}, err
}
