package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/load"
	"example.com/banking/internal/plot"
	"example.com/banking/pkg/contract"
)

var drain = scenario{
	name: "drain",
	about: "Account is away while transfers go on being accepted. Then it comes back to a queue full of requests: the rate from its start to the " +
		"last COMPLETED, against the sustained rate measured just before, and what the services hold in memory meanwhile.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return err
			}
			before, err := m.pace(ctx, b.Transfers)
			if err != nil {
				return err
			}
			return s.withChannel(func(ch *amqp.Channel) error {
				if err := m.pileUp(ctx, ch, b.Drain); err != nil {
					return err
				}
				b.say("%d requests wait", b.Drain)
				began := time.Now()
				if _, err := s.startService(ctx, "account"); err != nil {
					return err
				}
				readings, err := s.watchDrain(ctx, ch, began)
				if err != nil {
					return err
				}
				last, err := s.lastEnd(ctx)
				if err != nil {
					return err
				}
				rate := float64(b.Drain) / last.Sub(began).Seconds()
				found.add("waiting messages", float64(b.Drain), "")
				found.addPace("sustained before", before)
				found.add("drained", rate, "/s")
				if b.Drain < 100_000 {
					found.add(fmt.Sprintf("ratio with %d messages, less than the target's", b.Drain), rate/before.rate, "")
				} else {
					found.add("ratio", rate/before.rate, "")
				}
				return readings.report(&found)
			})
		})
		return found, err
	},
}

// pileUp stops account, and lets that many requests wait for it.
func (m *market) pileUp(ctx context.Context, ch *amqp.Channel, n int) error {
	if err := m.services["account"].Stop(); err != nil {
		return err
	}
	c := m.load
	c.URL = m.urls["transfer"]
	sent, err := load.Burst(ctx, c, n, connections)
	if err == nil && sent.Accepted != n {
		err = fmt.Errorf("%d of %d accepted; the last failure: %s", sent.Accepted, n, sent.Error)
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	return await(ctx, 100*time.Millisecond, "the requests to reach their queue", func() (bool, error) {
		there, err := waiting(ch, contract.TransferRequestedQueue)
		return there >= n, err
	})
}

// readings are taken at regular times while the queue drains.
type readings struct {
	at      []float64            // seconds
	waiting []float64            // requests
	memory  map[string][]float64 // bytes, by part
}

func (s *system) watchDrain(ctx context.Context, ch *amqp.Channel, began time.Time) (r readings, err error) {
	r.memory = map[string][]float64{}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	return r, await(ctx, 500*time.Millisecond, "the queue to drain", func() (bool, error) {
		u, err := measure()
		if err != nil {
			return false, err
		}
		there, err := waiting(ch, contract.TransferRequestedQueue)
		if err != nil {
			return false, err
		}
		r.at = append(r.at, time.Since(began).Seconds())
		r.waiting = append(r.waiting, float64(there))
		for part, bytes := range u.rss {
			r.memory[part] = append(r.memory[part], bytes)
		}
		var some bool
		err = s.pools["transfer"].QueryRow(ctx, "select exists (select from transfers where outcome is null)").Scan(&some)
		return !some, err
	})
}

// report says how the memory went: the services' is to be flat, and the charts have the servers' too.
func (r readings) report(found *result) error {
	worst := 0.0
	for _, name := range serviceNames {
		if len(r.memory[name]) < 2 {
			return fmt.Errorf("the queue drained too fast to watch: only %d readings of %s's memory", len(r.memory[name]), name)
		}
		found.add("memory of "+name+", most", megabytes(slices.Max(r.memory[name])), "MB")
		worst = max(worst, rise(r.memory[name]))
	}
	found.add("memory, second half against first", worst, "")
	chart := plot.Chart{
		Title: "Memory while a full queue drains", About: "Resident memory of each part over time, while the waiting requests are handled.",
		XLabel: "seconds after account's start", YLabel: "MB",
	}
	for _, part := range append(serviceNames, partBroker) {
		chart.Series = append(chart.Series, plot.Series{Name: part, Points: r.points(r.memory[part], megabytes)})
	}
	depth := plot.Chart{
		Title: "A full queue drains", About: "Requests that wait for account over time.",
		XLabel: "seconds after account's start", YLabel: "waiting requests",
		Series: []plot.Series{{Name: "waiting", Points: r.points(r.waiting, func(n float64) float64 { return n })}},
	}
	found.charts = map[string]plot.Chart{"drain-memory": chart, "drain-queue": depth}
	return nil
}

func (r readings) points(values []float64, in func(float64) float64) (points []plot.Point) {
	for i, v := range values[:min(len(values), len(r.at))] {
		points = append(points, plot.Point{X: r.at[i], Y: in(v)})
	}
	return points
}
