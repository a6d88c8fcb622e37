package main

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/internal/load"
	amqp "github.com/rabbitmq/amqp091-go"
)

var latency = scenario{
	name: "latency",
	about: "From the moment a transfer was due to the news at the broker that it has ended, at fixed rates for 20 s each. The load is open: a transfer whose turn it was " +
		"while the system stood still has waited for all of that time (corrected for coordinated omission). How busy the machine was says how much of a " +
		"latency is waiting for a core: the client, and whoever else uses the machine, are in that share.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
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
			at := func(rate float64, d time.Duration) (load.Report, error) {
				r, err := load.Run(ctx, load.Config{
					URL: s.urls["transfer"], Accounts: accounts, Currency: "EUR", Rate: rate, Duration: d, Ended: ended, Drain: time.Minute,
				})
				if err == nil && (r.Failed > 0 || r.Open > 0) {
					err = fmt.Errorf("%d failed and %d did not end; the last failure: %s", r.Failed, r.Open, r.Error)
				}
				return r, err
			}
			if _, err := at(200, 5*time.Second); err != nil { // warm-up
				return err
			}
			for _, rate := range []float64{100, 500} {
				before, err := measure()
				if err != nil {
					return err
				}
				began := time.Now()
				r, err := at(rate, 20*time.Second)
				if err != nil {
					return fmt.Errorf("at %v per second: %w", rate, err)
				}
				after, err := measure()
				if err != nil {
					return err
				}
				used, machineTime := after.since(before), time.Since(began).Seconds()*cores
				label := latencyLabel(rate)
				found.add(label+"p50", inMilliseconds(r.End.P50), "ms")
				found.add(label+"p99", inMilliseconds(r.End.P99), "ms")
				found.add(label+"p99.9", inMilliseconds(r.End.P999), "ms")
				found.add(label+"p99 of the answer 202", inMilliseconds(r.Answer.P99), "ms")
				found.add(label+"CPU of all per transfer", ofBank(used.cpu)/float64(r.Accepted)*1000, "ms")
				found.add(label+"share of the machine that was busy", used.machine/machineTime*100, "%")
				found.add(label+"share of the machine that others used", used.others()/machineTime*100, "%")
			}
			return nil
		})
		return found, err
	},
}

func latencyLabel(rate float64) string { return fmt.Sprintf("at %v/s: ", rate) }

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
