package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"example.com/banking/internal/load"
	"example.com/banking/internal/testenv/servers"
	"example.com/banking/pkg/contract"
	amqp "github.com/rabbitmq/amqp091-go"
)

// outage takes the database away under a thousand waiting requests, with the breaker and without it.
var outage = scenario{
	name: "outage",
	once: true,
	about: "The database is away for a minute while 1,000 requests wait for account. With the breaker the consumers leave the queues at once, nothing is tried, no attempt " +
		"is spent, and all flows again by itself. Without it they go on trying: attempts are spent on a database that is not there, and what waits for its next attempt comes later.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		for _, breaker := range []string{"on", "off"} {
			if err := b.measureOutage(ctx, breaker, &found); err != nil {
				return found, fmt.Errorf("breaker %s: %w", breaker, err)
			}
		}
		return found, nil
	},
}

const waitingRequests = 1000

func (b *bench) measureOutage(ctx context.Context, breaker string, found *result) (err error) {
	s, err := b.startSystem(ctx, servers.Config{}, "BREAKER="+breaker)
	if err != nil {
		return err
	}
	defer func() {
		if failed := s.stop(); err == nil {
			err = failed
		}
	}()
	if err := s.pileUp(ctx); err != nil {
		return err
	}
	if err := s.servers.StopPostgres(); err != nil {
		return err
	}
	if err := s.services["account"].Signal(syscall.SIGCONT); err != nil {
		return err
	}
	away := time.Now()
	b.say("breaker %s: the database is away", breaker)
	left, err := s.watchConsumers(ctx, away.Add(b.Outage))
	if err != nil {
		return err
	}
	if err := s.servers.StartPostgres(ctx); err != nil {
		return err
	}
	back := time.Now()
	handled, err := s.metric("account", "messaging_handler_seconds_count")
	if err != nil {
		return err
	}
	ended, recovered := s.awaitRecovery(ctx)
	took := time.Since(back)
	failures, err := s.metricOfAll("messaging_failures_total")
	if err != nil {
		return err
	}
	quarantined, err := s.metricOfAll("messaging_quarantined_total")
	if err != nil {
		return err
	}
	label := "breaker " + breaker + ": "
	if left > 0 {
		found.add(label+"until no consumer was left", left.Seconds(), "s")
	}
	found.add(label+"calls of account's handler while the database was away", handled, "")
	found.add(label+"attempts spent", failures, "")
	found.add(label+"messages given up", quarantined, "")
	found.add(label+"transfers that ended", float64(ended), "of 1000")
	if recovered == nil {
		found.add(label+"from the database's return to the last end", took.Seconds(), "s")
		return s.verify(ctx, 0)
	}
	if breaker == "on" { // without it they are in quarantine, which is what the scenario shows
		return fmt.Errorf("the bank has not recovered %s after the database's return: %w", took.Round(time.Second), recovered)
	}
	return nil
}

// pileUp stops account and asks for transfers, so that its requests pile up at the broker. It leaves account stopped.
func (s *system) pileUp(ctx context.Context) error {
	accounts, err := s.open(ctx, 50, 1_000_000)
	if err != nil {
		return err
	}
	if err := s.services["account"].Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	sent, err := load.Run(ctx, load.Config{URL: s.urls["transfer"], Accounts: accounts, Currency: "EUR", Rate: 500, Duration: 2 * time.Second})
	if err != nil || sent.Accepted != waitingRequests {
		return fmt.Errorf("%d of %d transfers accepted: %w", sent.Accepted, waitingRequests, err)
	}
	return nil
}

// awaitRecovery waits until all transfers have ended, and says how many have; the error says that some had not when the time was over.
func (s *system) awaitRecovery(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	err = await(ctx, 20*time.Millisecond, "the transfers to end", func() (bool, error) {
		var open int
		var err error
		if ended, open, err = s.transfers(ctx); err != nil {
			return false, nil // the database is still starting
		}
		return ended == waitingRequests && open == 0, nil
	})
	return ended, err
}

// metricOfAll is the sum of a metric over the services.
func (s *system) metricOfAll(prefix string) (sum float64, err error) {
	for _, service := range serviceNames {
		n, err := s.metric(service, prefix)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// watchConsumers asks the broker until the given time how many consumers account's request queue has, and returns after how long there
// was none; 0 when there was one all the time.
func (s *system) watchConsumers(ctx context.Context, until time.Time) (left time.Duration, err error) {
	began := time.Now()
	conn, err := amqp.Dial(s.access.OperatorAMQPURL)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(until) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return left, ctx.Err()
		}
		queue, err := ch.QueueDeclarePassive(contract.TransferRequestedQueue, true, false, false, false, nil)
		if err != nil {
			return left, err
		}
		if queue.Consumers == 0 && left == 0 {
			left = time.Since(began)
		}
	}
	return left, nil
}
