package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv/servers"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
)

var failing = scenario{
	name: "failing",
	about: "The sustained load in four turns on one system: alone, and with every tenth message in transfer's queue about a transfer that " +
		"nobody knows. Such a message fails, waits 5 s on the lap, and fails again, three times, until it is given up. The rate is that of the good ones. " +
		"Then bad messages alone, all at once, so that the first attempts are made in the largest batches: what one costs, without what the bank uses at rest.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystemOn(ctx, servers.Config{}, func(s *system) (parked int64, err error) {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return 0, err
			}
			f := failures{market: m}
			session := messaging.NewSession(messaging.SessionConfig{URLs: []string{s.access.OperatorAMQPURL}, Name: "bench"})
			f.session = session
			connected, disconnect := context.WithCancel(ctx)
			defer disconnect()
			go session.Run(connected) // who publishes is told what goes wrong
			err = s.withChannel(func(ch *amqp.Channel) error {
				f.channel = ch
				return f.measure(ctx, b.Transfers/2, &found)
			})
			return int64(f.parked), err
		})
		return found, err
	},
}

// failures is a market in which some messages are bad.
type failures struct {
	*market
	session interface {
		Publish(context.Context, []messaging.Publishing) ([]messaging.Outcome, error)
	}
	channel *amqp.Channel
	parked  int // bad messages so far that are to be given up in the end
}

// badAtOnce is how many bad messages come alone. The first must not be back from its lap before the last is on it.
const badAtOnce = 2000

func (f *failures) measure(ctx context.Context, n int, found *result) error {
	clean := 0.0
	alone, amid, err := takeTurns(
		func() (pace, error) {
			p, err := f.pace(ctx, n)
			clean = p.rate
			return p, err
		},
		func() (pace, error) { return f.amid(ctx, n, clean) },
	)
	if err != nil {
		return err
	}
	found.addPace("without failures", alone)
	found.addPace("with failures", amid)
	found.add("messages that failed, three times each", float64(f.parked), "")
	found.add("ratio", amid.rate/alone.rate, "")

	first, all, err := f.cost(ctx, badAtOnce)
	if err != nil {
		return err
	}
	for _, part := range []string{partBroker, partPostgres, "transfer"} {
		found.add("a bad message's first attempt: CPU of "+part, first[part]*1000, "ms")
		found.add("all that is done with a bad message: CPU of "+part, all[part]*1000, "ms")
	}
	return nil
}

// badAmong is how many bad messages make a tenth of all, beside those of n transfers: account says two things about each.
func badAmong(n int) int { return 2 * n / 9 }

// amid measures n transfers while bad messages come in, spread over the time that the transfers take at the given rate. It returns when
// all bad ones have been given up.
func (f *failures) amid(ctx context.Context, n int, rate float64) (pace, error) {
	published := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { published <- f.publish(ctx, badAmong(n), time.Duration(float64(n)/rate*float64(time.Second))) }()
	got, err := f.pace(ctx, n)
	if err != nil {
		cancel()
	}
	if failed := <-published; err == nil {
		err = failed
	}
	if err != nil {
		return got, err
	}
	return got, f.await(ctx, contract.ParkingLot, f.parked)
}

// cost is what that many bad messages cost up to their first lap, and until they have been given up, in seconds of CPU for each, by part.
// What the parts would have used at rest meanwhile is not in it.
func (f *failures) cost(ctx context.Context, bad int) (first, all map[string]float64, err error) {
	rest, err := atRest(ctx)
	if err != nil {
		return nil, nil, err
	}
	before, err := measure()
	if err != nil {
		return nil, nil, err
	}
	began := time.Now()
	if err := f.publish(ctx, bad, 0); err != nil {
		return nil, nil, err
	}
	since := func(queue string, messages int) (map[string]float64, error) {
		if err := f.await(ctx, queue, messages); err != nil {
			return nil, err
		}
		after, err := measure()
		cpu, took := after.since(before).cpu, time.Since(began).Seconds()
		for part := range cpu {
			cpu[part] = (cpu[part] - rest[part]*took) / float64(bad)
		}
		return cpu, err
	}
	if first, err = since(contract.AccountEventsRetry, bad); err != nil {
		return nil, nil, err
	}
	all, err = since(contract.ParkingLot, f.parked)
	return first, all, err
}

// atRest is what the parts use while nothing happens, in cores: the least of some windows, for what the database tidies up after a load is no
// rest.
func atRest(ctx context.Context) (map[string]float64, error) {
	const windows, window = 4, 4 * time.Second
	rest := map[string]float64{}
	before, err := measure()
	for i := range windows {
		if err == nil {
			err = pause(ctx, window)
		}
		if err != nil {
			return nil, err
		}
		var after usage
		if after, err = measure(); err != nil {
			return nil, err
		}
		for part, seconds := range after.since(before).cpu {
			if cores := seconds / window.Seconds(); i == 0 || cores < rest[part] {
				rest[part] = cores
			}
		}
		before = after
	}
	return rest, nil
}

// await waits until that many messages are in a queue.
func (f *failures) await(ctx context.Context, queue string, messages int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	return await(ctx, 100*time.Millisecond, fmt.Sprintf("%d bad messages to be in %s", messages, queue), func() (bool, error) {
		there, err := waiting(f.channel, queue)
		return there >= messages, err
	})
}

// publish publishes that many events about unknown transfers over a time. They leave as account's do, what came together in one go with its
// confirms: a client that sends them one by one uses as much of the machine as their handling does.
func (f *failures) publish(ctx context.Context, bad int, over time.Duration) error {
	tick := time.NewTicker(20 * time.Millisecond)
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
		var events []messaging.Publishing
		for ; sent < due; sent++ {
			events = append(events, eventAboutNobody())
		}
		outcomes, err := f.session.Publish(ctx, events)
		if err := errors.Join(err, f.expect(outcomes)); err != nil {
			return err
		}
	}
	return nil
}

// expect counts the events that transfer's queue has got, which will be parked. Any other would be waited for in vain.
func (f *failures) expect(outcomes []messaging.Outcome) error {
	others := map[messaging.Outcome]int{}
	for _, outcome := range outcomes {
		if outcome == messaging.Acked {
			f.parked++
		} else {
			others[outcome]++
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("of %d bad messages the broker has not confirmed all: %v", len(outcomes), others)
	}
	return nil
}

func eventAboutNobody() messaging.Publishing {
	return messaging.Publishing{
		Exchange:   contract.EventsExchange,
		RoutingKey: contract.RoutingKey(contract.AccountDebited),
		Mandatory:  true, // one that comes to no queue will not be parked
		Publishing: amqp.Publishing{
			DeliveryMode: amqp.Persistent,
			Body:         fmt.Appendf(nil, `{"messageId":%q,"type":%q,"data":{"transferId":%q}}`, uuid.NewString(), contract.AccountDebited, uuid.NewString()),
		},
	}
}
