package main

import (
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/jackc/pgx/v5/pgxpool"
)

// requestQueue is one queue of account and the one type of request that travels through it.
type requestQueue struct {
	name string
	read func(*messaging.Message) (command, error)
}

// Each type has a queue of its own, so that a flood of new transfers does not hold up the end of those that are under way.
var requestQueues = []requestQueue{
	{contract.TransferRequestedQueue, readRequested},
	{contract.CreditRequestedQueue, readCreditRequested},
	{contract.RefundRequestedQueue, readRefundRequested},
}

// readRequested reads "debit the source".
func readRequested(m *messaging.Message) (command, error) { return read(m, ledger.Requested) }

// readCreditRequested reads "credit the destination".
func readCreditRequested(m *messaging.Message) (command, error) {
	return read(m, ledger.CreditRequested)
}

// readRefundRequested reads "give the money back to the source".
func readRefundRequested(m *messaging.Message) (command, error) {
	return read(m, ledger.RefundRequested)
}

// read demands what the contract demands of a request of this kind. Every error is of class VALIDATION: the message can
// never be handled.
func read(m *messaging.Message, kind ledger.Kind) (command, error) {
	if m.Type != string(kind) {
		return command{}, retry.Errorf(retry.Validation, "type %.200q does not belong into %s", m.Type, m.Queue)
	}
	data, err := contract.ParseData(m.Data)
	if err != nil {
		return command{}, err
	}
	demand := data.Request
	if kind == ledger.RefundRequested {
		demand = data.Refund
	}
	request, err := demand()
	if err != nil {
		return command{}, err
	}
	return command{kind: kind, request: request}, nil
}

// consumerConfig says how a request queue is consumed. A failed request waits in this process, RETRY_INTERVALS long, and is given
// up into its queue's error queue. The database is all that the handlers depend on.
func consumerConfig(cfg config, queue requestQueue, handler messaging.Handler, pool *pgxpool.Pool, faults *fault.Points,
	observe func(messaging.Attempt),
) messaging.ConsumerConfig {
	return messaging.ConsumerConfig{
		Queue:       queue.name,
		Handler:     handler,
		Policy:      cfg.policy(),
		Road:        messaging.InProcess(contract.ErrorQueue(queue.name)),
		Service:     serviceName,
		Prefetch:    cfg.Prefetch,
		Concurrency: cfg.Concurrency,
		BatchSize:   cfg.BatchSize,
		BatchWait:   cfg.BatchWait,
		Faults:      faults,
		Grace:       cfg.ShutdownGrace / 3, // the rest is for HTTP before them, the relay and the pool after them
		Breaker:     cfg.BreakerConfig(),
		Budget:      bool(cfg.RetryBudget),
		RateLimit:   cfg.RateLimit,
		Probe:       service.Writable(pool),
		Starts:      inbox.NewStarts(pool),
		Observe:     observe,
	}
}

// quarantineConfig says what is account's of the quarantine: the error queue of each request queue, and the way back from there.
func quarantineConfig(cfg config, c quarantine.Config) quarantine.Config {
	for _, queue := range requestQueues {
		c.Queues = append(c.Queues, contract.ErrorQueue(queue.name))
		c.Targets = append(c.Targets, queue.name)
	}
	c.Consumed = c.Targets
	c.Exchanges = []string{contract.EventsExchange}
	c.LongestRoad = quarantine.LongestRoad(cfg.policy())
	c.Parse = func(m *messaging.Message) error {
		for _, queue := range requestQueues {
			if queue.name == m.Queue {
				_, err := queue.read(m)
				return err
			}
		}
		return nil
	}
	return c
}
