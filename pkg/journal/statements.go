package journal

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The oldest rows of a message and of a transfer are kept, those beyond the bounds are not: how it began tells most. What was spared or
// cancelled is counted apart, so that a long outage does not use up the room of what follows it.
//
// A statement does not see its own rows, so the rows of a batch are numbered, and what is there already comes on top. Those that their
// message has no room for take none of their transfer's. Replicas that write at the same moment may go beyond by a batch.
const insertSQL = `
with batch as (
    select *, row_number() over (partition by transfer_id, message_id, outcome in ('SPARED', 'CANCELLED') order by at) as of_message
    from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::bigint[], $11::text[])
        as m (transfer_id, message_id, queue, at, type, attempt, class, outcome, reason, delay_ms, error)
), kept as (
    select *, row_number() over (partition by transfer_id order by at) as of_transfer
    from batch b
    where $12 >= of_message + (
        select count(*) from attempts a where a.transfer_id = b.transfer_id and a.message_id = b.message_id
        and (a.outcome in ('SPARED', 'CANCELLED')) = (b.outcome in ('SPARED', 'CANCELLED')))
)
insert into attempts (transfer_id, message_id, queue, at, type, attempt, class, outcome, reason, delay_ms, error)
select transfer_id, message_id, queue, at, type, attempt, class, outcome, reason, delay_ms, error
from kept k
where $13 >= of_transfer + (select count(*) from attempts a where a.transfer_id = k.transfer_id)
on conflict do nothing`

// write writes a batch.
func (j *Journal) write(ctx context.Context, batch []entry) error {
	n := len(batch)
	transfers, ids, queues, ats := make([]uuid.UUID, n), make([]string, n), make([]string, n), make([]time.Time, n)
	types, attempts, classes, outcomes := make([]string, n), make([]int32, n), make([]string, n), make([]string, n)
	reasons, delays, errors := make([]string, n), make([]int64, n), make([]string, n)
	for i, e := range batch {
		transfers[i], ids[i], queues[i], ats[i] = e.transfer, e.MessageID, e.Queue, e.At
		types[i], attempts[i], classes[i], outcomes[i] = e.Type, int32(e.Attempt.Attempt), string(e.Class), string(e.Outcome)
		reasons[i], delays[i], errors[i] = e.Reason, e.Delay.Milliseconds(), e.Error
	}
	var written int64
	b := &pgx.Batch{}
	// A row that the server loses in a crash of its own is one that was dropped; nobody should wait for a disk for it. The plan is made
	// while the table is small, and has to be good when it has grown.
	b.Queue("select set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true)")
	b.Queue(insertSQL, transfers, ids, queues, ats, types, attempts, classes, outcomes, reasons, delays, errors, perMessage, perTransfer).
		Exec(func(tag pgconn.CommandTag) error {
			written = tag.RowsAffected()
			return nil
		})
	if err := j.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	j.metrics.written.Add(float64(written))
	j.metrics.surplus.Add(float64(int64(n) - written))
	return nil
}

const ofSQL = `
select message_id, queue, at, type, attempt, class, outcome, reason, delay_ms, error
from attempts where transfer_id = $1 order by at, queue, message_id`

// Of reads the attempts of one transfer, oldest first. There are a few hundred at most.
func Of(ctx context.Context, pool *pgxpool.Pool, transfer uuid.UUID) ([]messaging.Attempt, error) {
	rows, err := pool.Query(ctx, ofSQL, transfer)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	attempts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (messaging.Attempt, error) {
		a := messaging.Attempt{TransferID: transfer.String()}
		var delay int64
		err := row.Scan(&a.MessageID, &a.Queue, &a.At, &a.Type, &a.Attempt, &a.Class, &a.Outcome, &a.Reason, &delay, &a.Error)
		a.Delay = time.Duration(delay) * time.Millisecond
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return attempts, nil
}
