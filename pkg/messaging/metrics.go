package messaging

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what sessions and consumers do. It is a prometheus.Collector: register it once for each process.
type Metrics struct {
	up          prometheus.Gauge
	sessions    prometheus.Counter
	published   *prometheus.CounterVec
	deliveries  *prometheus.CounterVec
	failures    *prometheus.CounterVec
	quarantined *prometheus.CounterVec
	nonsense    *prometheus.CounterVec
	waiting     *prometheus.GaugeVec
	handling    *prometheus.HistogramVec
	suspects    *prometheus.CounterVec
	policy      *prometheus.GaugeVec

	breakerState  *prometheus.GaugeVec
	breakerOpened *prometheus.CounterVec
	budgetTokens  *prometheus.GaugeVec
	rate          *prometheus.GaugeVec
	paused        *prometheus.GaugeVec

	m       sync.Mutex
	dampers []*dampers // their gauges are set when somebody collects
}

// NewMetrics makes the counters, all at zero.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "messaging_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "messaging_" + name, Help: help}, []string{"queue"})
	}
	return &Metrics{
		up:          prometheus.NewGauge(prometheus.GaugeOpts{Name: "messaging_session_up", Help: "1 while connected to the broker."}),
		sessions:    prometheus.NewCounter(prometheus.CounterOpts{Name: "messaging_sessions_total", Help: "Sessions with the broker so far; more than 1 are reconnects."}),
		published:   counter("published_total", "Publishings by outcome: acked, nacked, returned, unknown.", "outcome"),
		deliveries:  counter("deliveries_total", "Deliveries by end: done, retried, quarantined, given_back.", "queue", "outcome"),
		failures:    counter("failures_total", "Failed attempts by class.", "queue", "class"),
		quarantined: counter("quarantined_total", "Messages in quarantine for sure, by reason.", "queue", "reason"),
		nonsense:    counter("nonsense_headers_total", "Deliveries whose death or attempt headers make no sense.", "queue"),
		waiting:     gauge("waiting", "Deliveries held between two attempts."),
		suspects:    counter("suspects_total", "Starts of messages that were handed out before; each is noted and runs alone.", "queue"),

		policy: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "messaging_retry_policy_info", Help: "1 for each consumer; its labels are how it retries: on which road, how often, after which waits, by class or all alike.",
		}, []string{"queue", "road", "attempts", "waits", "classify"}),

		breakerState:  gauge("breaker_state", "0 closed, 1 half-open, 2 open."),
		breakerOpened: counter("breaker_opened_total", "How often the breaker has opened.", "queue"),
		budgetTokens:  gauge("retry_budget_tokens", "Retries that may be made before the consumer slows down."),
		rate:          gauge("rate_limit_per_second", "Messages that may be started in a second, at present."),
		paused:        gauge("paused", "1 while no message is started: the breaker is open, or the retry budget is used up."),

		handling: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "messaging_handler_seconds", Help: "Duration of one call of a handler, for a batch.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"queue"}),
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{
		m.up, m.sessions, m.published, m.deliveries, m.failures, m.quarantined, m.nonsense, m.waiting, m.handling,
		m.suspects, m.policy, m.breakerState, m.breakerOpened, m.budgetTokens, m.rate, m.paused,
	}
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

// Collect is part of prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.m.Lock()
	all := slices.Clone(m.dampers)
	m.m.Unlock()
	for _, d := range all {
		d.collect(time.Now())
	}
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

func (m *Metrics) count(outcomes []Outcome) {
	var n [Returned + 1]int
	for _, o := range outcomes {
		n[o]++
	}
	for o, count := range n {
		if count > 0 {
			m.published.WithLabelValues(Outcome(o).String()).Add(float64(count))
		}
	}
}

// queueMetrics are the metrics of one consumer, looked up once: a look-up by label for each message is dear.
type queueMetrics struct {
	done, retried, quarantined, givenBack prometheus.Counter
	nonsense, suspects                    prometheus.Counter
	waiting                               prometheus.Gauge
	handling                              prometheus.Observer
	queue                                 string
	all                                   *Metrics
}

func (m *Metrics) of(queue string) queueMetrics {
	for _, class := range retry.Classes() {
		m.failures.WithLabelValues(queue, string(class)) // a counter that begins at 1 has not risen, so no alert would see the first failure
	}
	return queueMetrics{
		done:        m.deliveries.WithLabelValues(queue, "done"),
		retried:     m.deliveries.WithLabelValues(queue, "retried"),
		quarantined: m.deliveries.WithLabelValues(queue, "quarantined"),
		givenBack:   m.deliveries.WithLabelValues(queue, "given_back"),
		nonsense:    m.nonsense.WithLabelValues(queue),
		suspects:    m.suspects.WithLabelValues(queue),
		waiting:     m.waiting.WithLabelValues(queue),
		handling:    m.handling.WithLabelValues(queue),
		queue:       queue,
		all:         m,
	}
}

// tell shows how a consumer retries, so that nobody has to know the environment of a process to know what it does.
func (m *Metrics) tell(c ConsumerConfig) {
	waits := make([]string, len(c.Policy.Delays))
	for i, d := range c.Policy.Delays {
		waits[i] = d.String()
	}
	classify := "off"
	if c.Policy.Classify {
		classify = "on"
	}
	m.policy.WithLabelValues(c.Queue, c.Road.kind(), strconv.Itoa(c.Policy.MaxAttempts), strings.Join(waits, ","), classify).Set(1)
}

func (m queueMetrics) failed(class retry.Class) {
	m.all.failures.WithLabelValues(m.queue, string(class)).Inc()
}

func (m queueMetrics) givenUp(reason string) {
	m.all.quarantined.WithLabelValues(m.queue, reason).Inc()
}

// damperMetrics are those of one consumer's dampers.
type damperMetrics struct {
	state, tokens, rate, paused prometheus.Gauge
	opened                      prometheus.Counter
}

// damped makes the metrics of the dampers that a consumer has; a damper that is off has none.
func (m *Metrics) damped(queue string, d *dampers) {
	if d.breaker != nil {
		d.metrics.state, d.metrics.opened = m.breakerState.WithLabelValues(queue), m.breakerOpened.WithLabelValues(queue)
	}
	if d.budget != nil {
		d.metrics.tokens = m.budgetTokens.WithLabelValues(queue)
	}
	if d.rate != nil {
		d.metrics.rate = m.rate.WithLabelValues(queue)
	}
	d.metrics.paused = m.paused.WithLabelValues(queue)
	m.m.Lock()
	defer m.m.Unlock()
	m.dampers = append(m.dampers, d)
}
