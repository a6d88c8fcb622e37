package journal

import "github.com/prometheus/client_golang/prometheus"

// metrics of one journal.
type metrics struct {
	written, dropped, surplus prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "journal_attempts_total",
		Help: "Failed attempts by what became of their row: written, dropped (the buffer was full, or the database refused it), surplus (the message or transfer has as many as are kept).",
	}, []string{"result"})
	if registerer != nil {
		registerer.MustRegister(attempts)
	}
	return metrics{
		written: attempts.WithLabelValues("written"),
		dropped: attempts.WithLabelValues("dropped"),
		surplus: attempts.WithLabelValues("surplus"),
	}
}
