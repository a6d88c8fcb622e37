package outbox

import "github.com/prometheus/client_golang/prometheus"

// metrics of one outbox. Every replica reports the same table, so waiting, oldest and setAside are to be read with max(), not sum().
type metrics struct {
	published *prometheus.CounterVec
	direct    prometheus.Counter
	batchSize prometheus.Histogram
	waiting   prometheus.Gauge
	oldest    prometheus.Gauge
	setAside  prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "outbox_published_total",
			Help: "Tries to publish a message, directly or by the relay, by outcome: acked, nacked, returned, unknown, refused.",
		}, []string{"outcome"}),
		direct: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "outbox_direct_total",
			Help: "Messages of those acked that were published straight from memory after their commit, without the relay.",
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "outbox_batch_messages",
			Help:    "Messages the relay took in one claim.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 6),
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_waiting_messages",
			Help: "Messages in the outbox that are not set aside, at the last sweep.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_oldest_age_seconds",
			Help: "Age of the oldest message in the outbox that is not set aside, at the last sweep; 0 for none.",
		}),
		setAside: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "outbox_set_aside_messages",
			Help: "Messages given up because the broker refuses them for themselves, at the last sweep.",
		}),
	}
	for _, outcome := range []fate{acked, nacked, returned, unknown, refused} {
		m.published.WithLabelValues(string(outcome)) // a counter that is not there yet looks like one that never moved
	}
	if registerer != nil {
		registerer.MustRegister(m.published, m.direct, m.batchSize, m.waiting, m.oldest, m.setAside)
	}
	return m
}

// tried counts the rows that were tried by their fates, and says how many of each there are.
func (m *metrics) tried(rows []*row) map[fate]int {
	counts := map[fate]int{}
	for _, r := range rows {
		if r.fate != untried {
			counts[r.fate]++
		}
	}
	for fate, n := range counts {
		m.published.WithLabelValues(string(fate)).Add(float64(n))
	}
	return counts
}
