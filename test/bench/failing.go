package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv/servers"
	"example.com/banking/pkg/contract"
)

var failing = scenario{
	name: "failing",
	about: "The sustained load in four turns on one system: alone, and with every tenth message in transfer's queue about a transfer that " +
		"nobody knows. Such a message fails, waits 5 s on the lap, and fails again, three times, until it is given up. The rate is that of the good ones.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystemOn(ctx, servers.Config{}, func(s *system) (parked int64, err error) {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return 0, err
			}
			return parked, s.withChannel(func(ch *amqp.Channel) error {
				n := b.Transfers / 2
				clean := 0.0
				alone, amid, err := takeTurns(
					func() (pace, error) {
						p, err := m.pace(ctx, n)
						clean = p.rate
						return p, err
					},
					func() (pace, error) {
						bad := badAmong(n)
						parked += int64(bad)
						return m.amidFailures(ctx, ch, n, bad, clean, int(parked))
					},
				)
				if err != nil {
					return err
				}
				found.addPace("without failures", alone)
				found.addPace("with failures", amid)
				found.add("messages that failed, three times each", float64(parked), "")
				found.add("ratio", amid.rate/alone.rate, "")
				return nil
			})
		})
		return found, err
	},
}

// badAmong is how many bad messages make a tenth of all, beside those of n transfers: account says two things about each.
func badAmong(n int) int { return 2 * n / 9 }

// amidFailures measures n transfers while that many bad messages come in, spread over the time that the transfers take at the given rate. It
// returns when all that are to be given up, those of earlier turns included, have been.
func (m *market) amidFailures(ctx context.Context, ch *amqp.Channel, n, bad int, rate float64, parked int) (pace, error) {
	published := make(chan error, 1)
	go func() { published <- publishBad(ctx, ch, bad, time.Duration(float64(n)/rate*float64(time.Second))) }()
	got, err := m.pace(ctx, n)
	if failed := <-published; err == nil {
		err = failed
	}
	if err != nil {
		return got, err
	}
	giveUp, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return got, await(giveUp, 100*time.Millisecond, "the bad messages to be given up", func() (bool, error) {
		there, err := waiting(ch, contract.ParkingLot)
		return there >= parked, err
	})
}

// publishBad publishes that many events about unknown transfers, evenly over a time.
func publishBad(ctx context.Context, ch *amqp.Channel, bad int, over time.Duration) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for sent := 0; sent < bad; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		due := bad
		if passed := time.Since(began); passed < over {
			due = int(float64(bad) * float64(passed) / float64(over))
		}
		for ; sent < due; sent++ {
			body := fmt.Appendf(nil, `{"messageId":%q,"type":%q,"data":{"transferId":%q}}`,
				uuid.NewString(), contract.AccountDebited, uuid.NewString())
			err := ch.PublishWithContext(ctx, contract.EventsExchange, contract.RoutingKey(contract.AccountDebited), false, false,
				amqp.Publishing{Body: body, DeliveryMode: amqp.Persistent})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
