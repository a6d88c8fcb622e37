package inbox

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of one consumer's inbox.
type metrics struct {
	done, duplicate, failed prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer, consumer string) *metrics {
	handled := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "inbox_messages_total",
		Help: "Messages handled, by result: done, duplicate (seen before, nothing done), failed.",
	}, []string{"consumer", "result"})
	if registerer != nil {
		// All consumers of a process share the metric; who comes first registers it.
		err := registerer.Register(handled)
		var registered prometheus.AlreadyRegisteredError
		if errors.As(err, &registered) {
			handled = registered.ExistingCollector.(*prometheus.CounterVec)
		} else if err != nil {
			panic(err)
		}
	}
	return &metrics{
		done:      handled.WithLabelValues(consumer, "done"),
		duplicate: handled.WithLabelValues(consumer, "duplicate"),
		failed:    handled.WithLabelValues(consumer, "failed"),
	}
}

// count counts one message of a committed batch.
func (m *metrics) count(err error, duplicate bool) {
	switch {
	case err != nil:
		m.failed.Inc()
	case duplicate:
		m.duplicate.Inc()
	default:
		m.done.Inc()
	}
}
