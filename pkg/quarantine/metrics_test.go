package quarantine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestGauges(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(c *Config) { c.Registerer, c.Interval = registry, 20*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- b.q.Run(ctx) }()
	become := func(count int, low, high float64) {
		t.Helper()
		b.eventually(fmt.Sprintf("%d messages on the gauges", count), func() error {
			n, age := gauge(t, registry, "quarantine_messages"), gauge(t, registry, "quarantine_oldest_age_seconds")
			if int(n) != count || age < low || age > high {
				return fmt.Errorf("%v messages, the oldest %v s", n, age)
			}
			return nil
		})
	}
	become(0, 0, 0)
	b.parkAll("a", "b", "c")
	become(3, 3600, 3700) // parkedEvent has been parked for an hour
	for range 5 {         // looking and measuring do not get into each other's way
		if got := b.list("").keys(); len(got) != 3 {
			t.Errorf("listed %q", got)
		}
	}
	b.discard(order{"all": true, "because": "test", "confirm": true})
	become(0, 0, 0)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// gauge is the value of a gauge of the parking lot, -1 while there is none.
func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.Metric[0].GetGauge().GetValue()
		}
	}
	return -1
}
