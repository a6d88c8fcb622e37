package quarantine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
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

// A message that does not say since when it is parked, or says that it will be, hides neither itself nor those behind it.
func TestOldestBehindASilentHead(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(c *Config) { c.Registerer = registry })
	oldest := func() float64 {
		t.Helper()
		conn, err := b.session.Dial(t.Context(), "test")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		b.q.measure(t.Context(), conn, lot)
		return gauge(t, registry, "quarantine_oldest_age_seconds")
	}
	tomorrow := func(h amqp.Table) {
		h[messaging.HeaderParkedAt] = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	}
	b.park(amqp.Publishing{Body: []byte("hand-published")}, parkedEvent("tomorrow", tomorrow))
	began := time.Now()
	first := oldest()
	if first <= 0 || first > patience.Seconds() {
		t.Errorf("the oldest is %v s old at first", first)
	}
	for range 3 { // whoever looks does not make it younger
		b.list("")
	}
	if again, least := oldest(), time.Since(began).Seconds(); again < first || again < least-1 || again == 0 {
		t.Errorf("the oldest is %v s old, and was seen %v s ago", again, least)
	}
	b.parkAll("an hour old")
	b.list("")
	if age := oldest(); age < 3600 || age > 3700 {
		t.Errorf("behind them is one that is an hour old, and the oldest is %v s old", age)
	}
	b.discard(order{"ids": []string{"an hour old"}, "because": "test", "confirm": true})
	if age := oldest(); age <= 0 || age > patience.Seconds() {
		t.Errorf("it has left, and the oldest is %v s old", age)
	}
	b.parkAll(ids(0, 40)...)
	b.discard(order{"all": true, "because": "test", "confirm": true, "limit": 31}) // a chunk, of which nothing is left
	if age := oldest(); age < 3600 || age > 3700 {
		t.Errorf("eleven are left that are an hour old, and the oldest is %v s old", age)
	}
	b.discard(order{"all": true, "because": "test", "confirm": true})
	if age := oldest(); age != 0 {
		t.Errorf("the queue is empty, and its oldest message %v s old", age)
	}
}

// A run moves the gauges itself; a replica that cannot count any more says so by their absence.
func TestGaugesMoveAndGo(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := newBench(t, func(c *Config) { c.Registerer = registry })
	if n, at := gauge(t, registry, "quarantine_messages"), gauge(t, registry, "quarantine_counted_timestamp_seconds"); n != -1 || at != 0 {
		t.Errorf("before the first look there are %v messages, counted at %v", n, at)
	}
	b.parkAll(ids(0, 40)...)
	var counts []float64
	b.q.at = func(s step) error {
		if s == afterAck {
			counts = append(counts, gauge(t, registry, "quarantine_messages"))
		}
		return nil
	}
	b.discard(order{"all": true, "because": "test", "confirm": true})
	if !slices.Equal(counts, []float64{9, 0}) {
		t.Errorf("during the run there were %v", counts)
	}
	if at := gauge(t, registry, "quarantine_counted_timestamp_seconds"); time.Since(time.UnixMilli(int64(at*1000))) > patience {
		t.Errorf("counted at %v", at)
	}
	b.q.metrics.stale = time.Nanosecond
	if n, age := gauge(t, registry, "quarantine_messages"), gauge(t, registry, "quarantine_oldest_age_seconds"); n != -1 || age != -1 {
		t.Errorf("nobody has counted for long, and there are %v messages, the oldest %v s", n, age)
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
