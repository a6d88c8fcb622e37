package quarantine

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// metrics are what would page somebody: anything in quarantine at all, how long it has been there, and that nobody knows.
// Whoever looks into a queue sets them, so they also move while a run goes on.
type metrics struct {
	m      sync.Mutex
	stale  time.Duration // a count that is older is none
	queues map[string]*gauges
}

// gauges are what is known of one queue.
type gauges struct {
	counted  time.Time // when the messages were last counted
	messages int
	looked   time.Time // when somebody last looked for the oldest of them; zero: one may have left since
	since    time.Time // for how long the oldest has been there
	silent   stamp     // one that does not say since when, and since when it is known here
}

// stamp is since when a message has been parked.
type stamp struct {
	key string
	at  time.Time // zero: it does not say, or says that it will be
}

func stampOf(queue string, d *amqp.Delivery) stamp {
	p := read(queue, d)
	if p.ParkedAt == nil || p.ParkedAt.After(time.Now()) {
		return stamp{key: p.Key}
	}
	return stamp{p.Key, *p.ParkedAt}
}

var (
	messagesDesc = prometheus.NewDesc("quarantine_messages", "Messages in a quarantine queue; not there when this replica could not count them for a while.",
		[]string{"queue"}, nil)
	oldestDesc = prometheus.NewDesc("quarantine_oldest_age_seconds",
		"For how long the oldest message of a quarantine queue has been parked, or known here when it does not say; 0 when the queue is empty.", []string{"queue"}, nil)
	countedDesc = prometheus.NewDesc("quarantine_counted_timestamp_seconds", "When this replica last counted a quarantine queue; 0 when it never has.",
		[]string{"queue"}, nil)
)

func newMetrics(queues []string, interval time.Duration, registerer prometheus.Registerer) *metrics {
	m := &metrics{stale: 3*interval + interval/2, queues: map[string]*gauges{}} // three measures have failed
	for _, queue := range queues {
		m.queues[queue] = &gauges{}
	}
	if registerer != nil {
		registerer.MustRegister(m)
	}
	return m
}

// counted notes how many messages are in a queue, those in hand among them.
func (m *metrics) counted(queue string, messages int) {
	m.m.Lock()
	defer m.m.Unlock()
	g, now := m.queues[queue], time.Now()
	if g.messages == 0 { // what is there now came just now, as far as is known
		g.since = now
	}
	if messages < g.messages || g.messages == 0 {
		g.looked = time.Time{}
	}
	g.counted, g.messages = now, messages
}

// unseen says whether somebody must look to know the oldest message of a queue. It is looked for now and then in any case: as many may
// have left as have come.
func (m *metrics) unseen(queue string) bool {
	m.m.Lock()
	defer m.m.Unlock()
	g := m.queues[queue]
	return g.messages > 0 && time.Since(g.looked) > 5*m.stale
}

// looked notes since when the messages of a queue have been there. One that does not say has been there since it was first seen: it must not hide for
// ever what its age would tell.
func (m *metrics) looked(queue string, stamps []stamp) {
	m.m.Lock()
	defer m.m.Unlock()
	g, now := m.queues[queue], time.Now()
	silent := stamp{}
	g.since, g.looked = now, now
	for _, s := range stamps {
		if s.at.IsZero() {
			if s.key == g.silent.key {
				silent = g.silent
			} else if silent.key == "" {
				silent = stamp{s.key, now}
			}
		} else if s.at.Before(g.since) {
			g.since = s.at
		}
	}
	if g.silent = silent; silent.key != "" && silent.at.Before(g.since) {
		g.since = silent.at
	}
}

// Describe is of prometheus.Collector.
func (m *metrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- messagesDesc
	descs <- oldestDesc
	descs <- countedDesc
}

// Collect is of prometheus.Collector. What a replica that lost the broker or the lock knew long ago is not told for ever: the
// others know better, and when nobody does that must be seen.
func (m *metrics) Collect(metrics chan<- prometheus.Metric) {
	m.m.Lock()
	defer m.m.Unlock()
	now := time.Now()
	for queue, g := range m.queues {
		gauge := func(desc *prometheus.Desc, value float64) {
			metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, queue)
		}
		if g.counted.IsZero() {
			gauge(countedDesc, 0)
			continue
		}
		gauge(countedDesc, float64(g.counted.UnixMilli())/1000)
		if now.Sub(g.counted) > m.stale {
			continue
		}
		gauge(messagesDesc, float64(g.messages))
		age := 0.0
		if g.messages > 0 {
			age = now.Sub(g.since).Seconds()
		}
		gauge(oldestDesc, age)
	}
}
