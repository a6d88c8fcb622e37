package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/load"
	"example.com/banking/internal/plot"
)

const openLoad = "The load is open: a transfer whose turn it was while the system stood still has waited for all of that time (corrected for " +
	"coordinated omission)."

var latency = scenario{
	name:  "latency",
	about: "From the moment a transfer was due to the news at the broker that it has ended, at fixed rates for 20 s each. " + openLoad,
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withFixedRates(ctx, func(f fixedRates) error {
			for _, rate := range []float64{100, 500} {
				r, err := f.run(ctx, rate, 20*time.Second)
				if err != nil {
					return err
				}
				label := latencyLabel(rate)
				found.add(label+"p50", inMilliseconds(r.End.P50), "ms")
				found.add(label+"p99", inMilliseconds(r.End.P99), "ms")
				found.add(label+"p99.9", inMilliseconds(r.End.P999), "ms")
				found.add(label+"p99 of the answer 202", inMilliseconds(r.Answer.P99), "ms")
				found.add(label+"share of the machine that others used", r.others*100, "%")
			}
			return nil
		})
		return found, err
	},
}

var rates = scenario{
	name: "rates",
	about: "What a transfer costs and how long it takes, from a rate at which each is alone to one at which they travel in crowds, for 10 s each. " +
		openLoad + " Batches are the calls of a consumer's handler: four for a transfer that is alone. The machine's share that was busy has the client in it.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		var median, slowest, cpu []plot.Point
		err = b.withFixedRates(ctx, func(f fixedRates) error {
			for _, rate := range []float64{25, 50, 100, 200, 300, 400, 500, 700, 900} {
				r, err := f.run(ctx, rate, 10*time.Second)
				if err != nil {
					return err
				}
				label := latencyLabel(rate)
				found.add(label+"p50", inMilliseconds(r.End.P50), "ms")
				found.add(label+"p99", inMilliseconds(r.End.P99), "ms")
				found.add(label+"batches per transfer", r.batches, "")
				found.add(label+"CPU of all per transfer", r.cpu*1000, "ms")
				found.add(label+"share of the machine that was busy", r.busy*100, "%")
				median = append(median, plot.Point{X: rate, Y: inMilliseconds(r.End.P50)})
				slowest = append(slowest, plot.Point{X: rate, Y: inMilliseconds(r.End.P99)})
				cpu = append(cpu, plot.Point{X: rate, Y: r.cpu * 1000})
			}
			return nil
		})
		found.charts = map[string]plot.Chart{
			"rates-latency": {
				Title: "How long a transfer takes", About: "The median and the 99th percentile of the time from due to ended, over the rate.",
				XLabel: "transfers per second", YLabel: "ms", LogY: true,
				Series: []plot.Series{{Name: "p50", Kind: plot.Marks, Points: median}, {Name: "p99", Kind: plot.Marks, Points: slowest}},
			},
			"rates-cpu": {
				Title: "What a transfer costs", About: "CPU time of all the bank's processes for one transfer, over the rate.",
				XLabel: "transfers per second", YLabel: "ms of CPU", Series: []plot.Series{{Name: "all processes", Kind: plot.Marks, Points: cpu}},
			},
		}
		return found, err
	},
}

// fixedRates is a warm system with somebody who hears of each transfer's end.
type fixedRates struct {
	*system
	load load.Config
}

// fixedRun is what a load at a fixed rate has shown.
type fixedRun struct {
	load.Report
	batches float64 // calls of the consumers' handlers, per transfer
	cpu     float64 // of all the bank's processes, seconds per transfer
	busy    float64 // share of the machine's CPU time that anybody used
	others  float64 // share of it that was used by none of the parts
}

func (b *bench) withFixedRates(ctx context.Context, do func(fixedRates) error) error {
	return b.withSystem(ctx, func(s *system) error {
		accounts, err := s.open(ctx, customers, 1_000_000_00)
		if err != nil {
			return err
		}
		conn, err := amqp.Dial(s.access.OperatorAMQPURL)
		if err != nil {
			return err
		}
		defer conn.Close()
		ended, err := load.Watch(ctx, conn)
		if err != nil {
			return err
		}
		f := fixedRates{system: s, load: load.Config{
			URL: s.urls["transfer"], Accounts: accounts, Currency: "EUR", Ended: ended, Drain: time.Minute,
		}}
		if _, err := f.run(ctx, 200, 5*time.Second); err != nil {
			return fmt.Errorf("warm-up: %w", err)
		}
		return do(f)
	})
}

func (f fixedRates) run(ctx context.Context, rate float64, d time.Duration) (r fixedRun, err error) {
	before, err := measure()
	if err != nil {
		return r, err
	}
	callsBefore, err := f.handlerCalls()
	if err != nil {
		return r, err
	}
	began := time.Now()
	c := f.load
	c.Rate, c.Duration = rate, d
	if r.Report, err = load.Run(ctx, c); err == nil && (r.Failed > 0 || r.Open > 0) {
		err = fmt.Errorf("%d failed and %d did not end; the last failure: %s", r.Failed, r.Open, r.Error)
	}
	if err != nil {
		return r, fmt.Errorf("at %v per second: %w", rate, err)
	}
	after, err := measure()
	if err != nil {
		return r, err
	}
	calls, err := f.handlerCalls()
	if err != nil {
		return r, err
	}
	used, all, n := after.since(before), time.Since(began).Seconds()*cores, float64(r.Accepted)
	r.batches, r.cpu, r.busy, r.others = (calls-callsBefore)/n, ofBank(used.cpu)/n, used.machine/all, used.others()/all
	return r, nil
}

// handlerCalls is how often the services' consumers have called their handlers so far.
func (f fixedRates) handlerCalls() (sum float64, err error) {
	for _, name := range serviceNames {
		calls, failed := f.metric(name, "messaging_handler_seconds_count")
		sum, err = sum+calls, errors.Join(err, failed)
	}
	return sum, err
}

func latencyLabel(rate float64) string { return fmt.Sprintf("at %v/s: ", rate) }

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
