package main

import (
	"strings"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxReason bounds the reason of a refusal, in characters. Ours are much shorter; a foreign one is stored as it is.
const maxReason = 200

// parseEvent demands of an event what can be demanded without knowing the transfer: one of the five types that account
// publishes, members of the right JSON types, and a transferId, be it the id of something or not. The rest is compared with the
// transfer once it is found (lifecycle.Transfer.Hear).
func parseEvent(m *messaging.Message) (command, error) {
	if _, ok := lifecycle.FactOf(m.Type); !ok {
		return command{}, retry.Errorf(retry.Validation, "type %.100q is not an event of an account", m.Type)
	}
	data, err := contract.ParseData(m.Data)
	if err != nil {
		return command{}, err
	}
	if !data.TransferID.Present {
		return command{}, retry.Errorf(retry.Validation, "data.transferId is missing")
	}
	if utf8.RuneCountInString(data.Reason.Value) > maxReason || strings.ContainsRune(data.Reason.Value, 0) {
		return command{}, retry.Errorf(retry.Validation, "data.reason is longer than %d characters or holds U+0000", maxReason)
	}
	id, _ := contract.ParseID(data.TransferID.Value)
	return command{transfer: id, data: data}, nil
}

// consumerConfig says how account's events are consumed. A failed event waits at the broker, on the lap or in the tiers, and is given up
// into the parking lot. The database is all that the handler depends on.
func consumerConfig(cfg config, handler messaging.Handler, pool *pgxpool.Pool, faults *fault.Points,
	observe func(messaging.Attempt),
) messaging.ConsumerConfig {
	return messaging.ConsumerConfig{
		Queue:       contract.AccountEventsQueue,
		Handler:     handler,
		Policy:      cfg.policy(),
		Road:        cfg.road(),
		Service:     serviceName,
		Prefetch:    cfg.Prefetch,
		Concurrency: cfg.Concurrency,
		BatchSize:   cfg.BatchSize,
		BatchWait:   cfg.BatchWait,
		Faults:      faults,
		Grace:       cfg.ShutdownGrace / 3, // the rest is for HTTP before it, the relay and the pool after it
		Breaker:     cfg.BreakerConfig(),
		Budget:      bool(cfg.RetryBudget),
		RateLimit:   cfg.RateLimit,
		Probe:       service.Writable(pool),
		Starts:      inbox.NewStarts(pool),
		Observe:     observe,
	}
}

// quarantineConfig says what is transfer's of the quarantine: the parking lot. What the broker itself takes out of account's queues
// ends there too (it expired, for instance), so their names are among those to which a message may go back.
func quarantineConfig(cfg config, c quarantine.Config) quarantine.Config {
	c.Queues = []string{contract.ParkingLot}
	c.Targets = []string{
		contract.AccountEventsQueue,
		contract.TransferRequestedQueue, contract.CreditRequestedQueue, contract.RefundRequestedQueue,
	}
	c.Consumed = []string{contract.AccountEventsQueue}
	c.Exchanges = []string{contract.EventsExchange}
	road := cfg.policy()
	if cfg.RetryProfile == tiered {
		road.Jitter = cfg.RetryJitter // which the queues have, and the policy does not
	}
	c.LongestRoad = quarantine.LongestRoad(road)
	c.Parse = func(m *messaging.Message) error {
		_, err := parseEvent(m)
		return err
	}
	c.KnownTransfers = (&store{pool: c.Pool}).known
	return c
}
