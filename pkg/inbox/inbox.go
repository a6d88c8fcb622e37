// Package inbox makes a message that arrives any number of times take effect once.
//
// Brokers deliver at least once: after a crash, a lost ack or an operator's replay the same message comes again. The inbox notes the
// messageId of everything a consumer has handled, in the very transaction of the effect. So "seen" and "done" are one
// fact: either both are in the database or neither is, and the second copy finds the first one's row.
package inbox

import (
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Work is a service's unit of work for one batch of commands: it loads what they concern, decides in memory, and writes what has
// changed. A new one is begun for every transaction and is used by one goroutine.
type Work[C any] interface {
	// Load queues the reads of what the commands concern, locked and in the service's one lock order, with callbacks that
	// keep the rows. Commands of messages that turn out to be duplicates are among them.
	Load(b *pgx.Batch, commands []C)
	// Apply carries out one command in memory and returns the messages to send. It is atomic: with an error the work is as it was
	// before. It reads no database and no clock that a repetition would read differently.
	Apply(m *messaging.Message, command C) ([]outbox.Message, error)
	// Save queues the writes of everything that was applied. It is not called when nothing was. The commit travels with them, so
	// their callbacks come too late to stop it: what must not be written is for a constraint of the database to refuse.
	Save(b *pgx.Batch)
}

// Config is what a handler needs; Classifiers, Timeout, Registerer and Faults may be left out.
type Config[C any] struct {
	Pool     *pgxpool.Pool
	Consumer string // part of the inbox key: two consumers of one message do not hide it from each other
	Outbox   *outbox.Outbox
	// Parse demands of a body what the contract demands. A message it refuses never reaches the database.
	Parse func(*messaging.Message) (C, error)
	// Begin makes the unit of work of one transaction.
	Begin func() Work[C]

	Classifiers []retry.Classifier    // for errors of Load and Save that retry.ClassOf does not know
	Timeout     time.Duration         // for one transaction, the wait for a connection included; default 30 s
	Registerer  prometheus.Registerer // default none
	Faults      *fault.Points         // default none: nothing fails on order
}

// Handler makes the handler of a consumer out of a service's unit of work. It panics when a required part of the
// configuration is missing, which is a mistake in wiring.
//
// A batch is one transaction of two round trips, see processor.transact. Each message of it has its own result:
//
//   - nil: its effect and its outgoing messages are committed, or it was a duplicate;
//   - an error of Parse or Apply: nothing of it is left, its neighbours are committed;
//   - INVARIANT: its id was seen before with another payload.
//
// The error for the batch as a whole carries a class too. It is CANCELLED only when the caller's context was cancelled; a
// unique violation is a CONFLICT, because what Load did not see and Save collided with was committed in between.
func Handler[C any](config Config[C]) messaging.Handler {
	if config.Pool == nil || config.Consumer == "" || config.Outbox == nil || config.Parse == nil || config.Begin == nil {
		panic("inbox.Handler: Pool, Consumer, Outbox, Parse and Begin are required")
	}
	if config.Timeout <= 0 {
		config.Timeout = 30 * time.Second
	}
	p := &processor[C]{config: config, metrics: newMetrics(config.Registerer, config.Consumer)}
	return p.handle
}
