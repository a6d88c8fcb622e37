// Package outbox sends messages that must go out if and only if a transaction commits.
//
// A service cannot write to its database and to its broker in one atomic step. So it writes the message beside the business
// change, in the same transaction, and publishes it after the commit, from memory when all goes well (see direct.go) and otherwise by a
// relay that reads the table, as often as it takes to get the broker's confirm. The message is sent at least once; the
// receiver's inbox makes that once.
package outbox

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Publisher publishes with confirms. *messaging.Session is one.
type Publisher interface {
	// Publish returns one outcome for each publishing, once all are known or the deadline has passed; the error says why
	// some are Unknown and is nil when none is.
	Publish(ctx context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error)
}

// Config is what an outbox needs. Pool, Publisher and Exchange are required; zero values of the rest mean the default.
type Config struct {
	Pool       *pgxpool.Pool
	Publisher  Publisher
	Exchange   string                // where all messages are published
	AppID      string                // AMQP app_id: the service's name
	Logger     *slog.Logger          // default slog.Default()
	Registerer prometheus.Registerer // default none: the metrics are kept and not shown

	BatchSize      int           // rows per claim; default 256
	Concurrency    int           // batches in flight; default 2, so that one is claimed while another waits for its confirms
	Poll           time.Duration // how often to look for what nobody signalled; default 1 s
	PublishTimeout time.Duration // for the confirms of one batch; default 5 s
	StopGrace      time.Duration // for the batch that is under way when the relay is told to stop; default 2 s
	MaxAttempts    int           // tries of a row that the broker refuses for itself, before it is set aside; default 5
	Faults         *fault.Points // fail on order after the confirm; default none
}

// Outbox writes messages into the table and relays them to the broker. It is safe for concurrent use.
type Outbox struct {
	config   Config
	metrics  *metrics
	frontier frontier
	wake     chan struct{}
	direct   direct
	hold     time.Duration // see defaultHold
	// solo is held shared while rows are published together and exclusively while one is published alone: publishers may
	// share a channel, and a channel exception must be about the only message that was on it.
	solo sync.RWMutex
}

// New makes an outbox. It panics when a required part of the configuration is missing, which is a mistake in wiring.
func New(config Config) *Outbox {
	if config.Pool == nil || config.Publisher == nil || config.Exchange == "" {
		panic("outbox.New: Pool, Publisher and Exchange are required")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	defaultTo(&config.BatchSize, 256)
	defaultTo(&config.Concurrency, 2)
	defaultTo(&config.Poll, time.Second)
	defaultTo(&config.PublishTimeout, 5*time.Second)
	defaultTo(&config.StopGrace, 2*time.Second)
	defaultTo(&config.MaxAttempts, 5)
	return &Outbox{
		config:  config,
		metrics: newMetrics(config.Registerer),
		// One place is enough: a signal says "look", and who looks sees everything that was committed before.
		wake:   make(chan struct{}, 1),
		hold:   defaultHold,
		direct: direct{settle: make(chan struct{}, 1)},
	}
}

func defaultTo[T int | time.Duration](value *T, byDefault T) {
	if *value <= 0 {
		*value = byDefault
	}
}

const insertSQL = `
insert into outbox (message_id, type, routing_key, body, correlation_id, trace_parent, mandatory, occurred_at, next_attempt_at)
select *, clock_timestamp() + $9::interval
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::boolean[], $8::timestamptz[])
returning id, message_id`

// Queue adds the insert of the messages to a batch that runs in the transaction of the business change: one statement,
// however many there are, and none when there is none. After the commit the caller calls Committed on what it gets.
func (o *Outbox) Queue(b *pgx.Batch, messages []Message) *Queued {
	q := o.Prepare(messages)
	q.insert(b)
	return q
}

func (q *Queued) insert(b *pgx.Batch) {
	n := len(q.messages)
	if n == 0 {
		return
	}
	ids, types, keys, bodies := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	correlations, traces, mandatory, occurred := make([]string, n), make([]string, n), make([]bool, n), make([]time.Time, n)
	for i, m := range q.messages {
		ids[i], types[i], keys[i], bodies[i] = m.ID, m.Type, m.RoutingKey, string(m.Body)
		correlations[i], traces[i], mandatory[i], occurred[i] = m.CorrelationID, m.TraceParent, m.Mandatory, m.OccurredAt
	}
	b.Queue(insertSQL, ids, types, keys, bodies, correlations, traces, mandatory, occurred, q.Hold()).Query(func(rows pgx.Rows) error {
		var id int64
		var messageID string
		_, err := pgx.ForEachRow(rows, []any{&id, &messageID}, func() error {
			q.Keep(id, messageID)
			return nil
		})
		return err
	})
}

// Wake tells the relay of this process to look for rows, for instance those that something else than Queue has inserted. It
// never blocks, and many calls at once are one. A forgotten or lost call costs the poll interval, not the message.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
