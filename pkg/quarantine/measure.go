package quarantine

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Run keeps the gauges until ctx ends and returns nil then. When the broker or the database is away for longer, they go: see metrics.
func (q *Quarantine) Run(ctx context.Context) error {
	var conn *amqp.Connection
	defer func() {
		if conn != nil {
			_ = conn.CloseDeadline(time.Now().Add(time.Second))
		}
	}()
	tick := time.NewTicker(q.Interval)
	defer tick.Stop()
	for {
		if conn == nil || conn.IsClosed() {
			conn, _ = q.Session.Dial(ctx, "quarantine gauges")
		}
		if conn != nil {
			for _, queue := range q.Queues {
				q.measure(ctx, conn, queue)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// measure counts one queue, and looks for its oldest message if need be. Whoever else looks into the queue holds its messages, and counts
// them himself.
func (q *Quarantine) measure(ctx context.Context, conn *amqp.Connection, queue string) {
	h, err := q.tryHold(ctx, queue)
	if err != nil || h == nil {
		return
	}
	defer h.release()
	if err := q.count(ctx, conn, queue); err != nil || !q.metrics.unseen(queue) {
		return
	}
	l, err := q.look(ctx, queue)
	if err != nil {
		return
	}
	defer l.close()
	if _, _, err := l.take(ctx, actable); err != nil {
		q.Logger.WarnContext(ctx, "the oldest message of a quarantine queue was not seen", "queue", queue, "error", err)
	}
}

func (q *Quarantine) count(ctx context.Context, conn *amqp.Connection, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	defer stop()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	messages, err := waiting(ch, queue)
	if err != nil {
		return err
	}
	q.metrics.counted(queue, messages)
	return ch.Close()
}
