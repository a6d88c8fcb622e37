package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"example.com/banking/pkg/pipeline"
	"github.com/jackc/pgx/v5"
)

// configureSQL sets what is right for the relay's transactions and for no other.
//
// synchronous_commit: a delete that is lost in a crash of the server sends a duplicate, which the receivers' inboxes absorb.
// That is no reason to wait for the disk. (A row that is visible is durable: the transaction that wrote it did wait.)
//
// The plan: PostgreSQL believes that an outbox is about as small as it last saw it, and would like to read and sort all of it. With many
// dead rows in the table that is the one thing that must not happen; the walk along the key is always right here.
const configureSQL = `
select set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)`

// claimSQL takes rows for this transaction. A row that another relay holds is skipped, not waited for; when a relay dies, its locks
// die with its connection and the rows are free.
const claimSQL = `
select id, message_id, type, routing_key, body, correlation_id, trace_parent, mandatory, occurred_at, attempts
from outbox
where id > $1 and set_aside_at is null and (next_attempt_at is null or next_attempt_at <= now())
order by id limit $2
for update skip locked`

const deleteSQL = `delete from outbox where id = any ($1::bigint[])`

const postponeSQL = `
update outbox
set attempts = p.attempts, last_error = p.reason, next_attempt_at = clock_timestamp() + p.wait,
    set_aside_at = case when p.set_aside then clock_timestamp() end
from unnest($1::bigint[], $2::integer[], $3::text[], $4::interval[], $5::boolean[]) as p (id, attempts, reason, wait, set_aside)
where outbox.id = p.id`

// databaseTimeout is for claiming a batch, and for settling it.
const databaseTimeout = 10 * time.Second

// claimed says what a batch found.
type claimed struct {
	full bool          // there may be more
	last int64         // the highest id
	scan time.Duration // how long the database took to find it
}

// relayBatch claims a batch of rows with ids above after, publishes them, and deletes those that the broker has. The error says
// that this could not be done at all: no database, or no word from the broker.
//
// The rows stay locked while they are published: that is what keeps other relays from publishing them as well. When ctx ends, a claim
// is given up at once. A batch that is being published still has half the StopGrace to get its confirms, because cutting it off
// would send all of it again, and the other half to be settled; a database or a broker that hangs takes no longer than that.
func (o *Outbox) relayBatch(ctx context.Context, after int64) (claimed, error) {
	claiming, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	started := time.Now()
	tx, rows, err := o.claim(claiming, after)
	if err != nil {
		return claimed{}, fmt.Errorf("claim outbox rows: %w", err)
	}
	defer tx.Rollback()
	found := claimed{scan: time.Since(started)}
	if len(rows) == 0 {
		return found, nil
	}
	found.full, found.last = len(rows) == o.config.BatchSize, rows[len(rows)-1].id
	o.metrics.batchSize.Observe(float64(len(rows)))

	settling, endSettling := outlive(ctx, o.config.StopGrace)
	defer endSettling()
	publishing, endPublishing := outlive(ctx, o.config.StopGrace/2)
	defer endPublishing()
	publishErr := o.failConfirmed(publishing, rows, o.publish(publishing, rows))
	if err := o.settle(settling, tx, rows, publishErr); err != nil {
		return found, fmt.Errorf("settle outbox rows: %w", err)
	}
	for _, r := range rows {
		if r.resolved() {
			o.direct.allow(publishErr == nil)
			return found, nil
		}
	}
	return found, publishErr
}

// outlive is a context that ends a while after ctx does. The cancel function is to be called.
func outlive(ctx context.Context, while time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(while, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

func (o *Outbox) claim(ctx context.Context, after int64) (*pipeline.Tx, []*row, error) {
	var rows []*row
	tx, err := pipeline.Begin(ctx, o.config.Pool, func(b *pgx.Batch) {
		b.Queue(configureSQL)
		b.Queue(claimSQL, after, o.config.BatchSize).Query(func(found pgx.Rows) (err error) {
			rows, err = pgx.CollectRows(found, scanRow)
			return err
		})
	})
	return tx, rows, err
}

func scanRow(found pgx.CollectableRow) (*row, error) {
	r := &row{}
	err := found.Scan(&r.id, &r.ID, &r.Type, &r.RoutingKey, &r.Body, &r.CorrelationID, &r.TraceParent, &r.Mandatory,
		&r.OccurredAt, &r.attempts)
	return r, err
}

// settle writes each row's fate and commits.
func (o *Outbox) settle(ctx context.Context, tx *pipeline.Tx, rows []*row, publishErr error) error {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	var sent []int64
	var postponed postponement
	for _, r := range rows {
		switch r.fate {
		case acked:
			sent = append(sent, r.id)
		case untried:
		default:
			postponed.add(r, o.config.MaxAttempts)
		}
	}
	err := tx.Commit(ctx, func(b *pgx.Batch) {
		if len(sent) > 0 {
			b.Queue(deleteSQL, sent)
		}
		if len(postponed.ids) > 0 {
			b.Queue(postponeSQL, postponed.ids, postponed.attempts, postponed.reasons, postponed.waits, postponed.setAside)
		}
	})
	o.report(ctx, rows, postponed, publishErr)
	if err == nil && len(sent) > 0 {
		o.frontier.finished(sent[len(sent)-1], time.Now())
	}
	return err
}

// postponement holds the columns of the rows that stay.
type postponement struct {
	ids      []int64
	attempts []int
	reasons  []string
	waits    []time.Duration
	setAside []bool
}

func (p *postponement) add(r *row, maxAttempts int) {
	p.ids = append(p.ids, r.id)
	p.attempts = append(p.attempts, r.attempts)
	p.reasons = append(p.reasons, r.storableReason())
	p.waits = append(p.waits, r.wait(time.Now()))
	p.setAside = append(p.setAside, r.givenUp(maxAttempts))
}

func (r *row) givenUp(maxAttempts int) bool {
	return r.fate == refused && (r.hopeless || r.attempts >= maxAttempts)
}

// report counts every fate, logs a line for each row that is to blame, and one for all the others that stay.
func (o *Outbox) report(ctx context.Context, rows []*row, postponed postponement, publishErr error) {
	counts := o.metrics.tried(rows)
	for _, r := range rows {
		if r.fate == refused {
			o.config.Logger.LogAttrs(ctx, slog.LevelError, "outgoing message refused",
				slog.String("message_id", r.ID), slog.String("transfer_id", r.CorrelationID), slog.String("type", r.Type),
				slog.Int("attempt", r.attempts), slog.Int("max_attempts", o.config.MaxAttempts),
				slog.Bool("set_aside", r.givenUp(o.config.MaxAttempts)), slog.String("error", r.reason))
		}
	}
	if stay := len(postponed.ids) - counts[refused]; stay > 0 {
		o.config.Logger.LogAttrs(ctx, slog.LevelWarn, "outgoing messages stay in the outbox",
			slog.Int("returned", counts[returned]), slog.Int("nacked", counts[nacked]), slog.Int("unknown", counts[unknown]),
			slog.Any("error", publishErr))
	}
}
