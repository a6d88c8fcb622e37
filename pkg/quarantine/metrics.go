package quarantine

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// metrics are what would page somebody: anything in quarantine at all, and how long it has been there.
type metrics struct {
	messages *prometheus.GaugeVec
	oldest   *prometheus.GaugeVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		messages: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quarantine_messages", Help: "Messages in a quarantine queue, a few seconds ago.",
		}, []string{"queue"}),
		oldest: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quarantine_oldest_age_seconds", Help: "For how long the message at the head of a quarantine queue has been parked; 0 when the queue is empty.",
		}, []string{"queue"}),
	}
	if registerer != nil {
		registerer.MustRegister(m.messages, m.oldest)
	}
	return m
}

// Run keeps the gauges until ctx ends and returns nil then. A broker or database that is away leaves them as they are: other metrics tell of
// that.
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

// measure counts one queue and looks at its head. Whoever looks into the queue holds its messages, so nothing is counted meanwhile.
func (q *Quarantine) measure(ctx context.Context, conn *amqp.Connection, queue string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) })
	defer stop()
	h, err := q.tryHold(ctx, queue)
	if err != nil || h == nil {
		return
	}
	defer h.release()
	l := &look{conn: conn, pace: newPace(), queue: queue, stop: func() bool { return true }}
	if err := l.open(); err != nil {
		return
	}
	defer l.giveBack()
	q.metrics.messages.WithLabelValues(queue).Set(float64(l.depth))
	age := 0.0
	if l.depth > 0 {
		head, ok, err := l.ch.Get(queue, false)
		if err != nil {
			return
		}
		if ok {
			if parked := read(queue, &head).ParkedAt; parked != nil {
				age = max(0, time.Since(*parked).Seconds())
			}
		}
	}
	q.metrics.oldest.WithLabelValues(queue).Set(age)
}
