package control

import (
	"context"

	"example.com/banking/pkg/fault"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema creates the table. Each service has it in its own migrations; a test there compares the migrated table with this text.
//
// A counted fault that is used up stays, with nothing remaining, until it is deleted: how often it has fired is what an
// exercise wants to see.
const Schema = `
create table faults (
    id         uuid        primary key, -- version 7: in the order in which they were armed
    point      text        not null,
    action     text        not null,
    class      text,
    delay      interval,
    message_id text,
    remaining  bigint      check (remaining >= 0), -- null: until it is deleted
    fired      bigint      not null default 0,
    created_at timestamptz not null default now()
);`

// store is the table.
type store struct{ pool *pgxpool.Pool }

const insertSQL = `
insert into faults (id, point, action, class, delay, message_id, remaining)
values ($1, $2, $3, nullif($4, ''), nullif($5::interval, '0'), nullif($6, ''), $7)`

func (s *store) insert(ctx context.Context, f fault.Fault) error {
	_, err := s.pool.Exec(ctx, insertSQL, f.ID, string(f.Point), string(f.Action), string(f.Class), f.Delay, f.MessageID, f.Remaining)
	return err
}

const listSQL = `
select id, point, action, coalesce(class, ''), coalesce(delay, '0'), coalesce(message_id, ''), remaining, fired
from faults order by id`

func (s *store) list(ctx context.Context) ([]fault.Fault, error) {
	rows, err := s.pool.Query(ctx, listSQL)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fault.Fault, err error) {
		err = row.Scan(&f.ID, &f.Point, &f.Action, &f.Class, &f.Delay, &f.MessageID, &f.Remaining, &f.Fired)
		return f, err
	})
}

const takeSQL = `update faults set remaining = remaining - 1, fired = fired + 1 where id = $1 and remaining > 0`

// Take implements fault.Ledger. The row's lock is what lets replicas take one after another.
func (s *store) Take(ctx context.Context, id uuid.UUID) (bool, error) {
	tag, err := s.pool.Exec(ctx, takeSQL, id)
	return tag.RowsAffected() == 1, err
}

const noteSQL = `update faults set fired = fired + $2 where id = $1`

// Note implements fault.Ledger.
func (s *store) Note(ctx context.Context, id uuid.UUID, firings int64) error {
	_, err := s.pool.Exec(ctx, noteSQL, id, firings)
	return err
}

// remove deletes one fault and says whether it was there.
func (s *store) remove(ctx context.Context, id uuid.UUID) (bool, error) {
	tag, err := s.pool.Exec(ctx, `delete from faults where id = $1`, id)
	return tag.RowsAffected() == 1, err
}

// clear deletes all faults.
func (s *store) clear(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `delete from faults`)
	return err
}

var _ fault.Ledger = (*store)(nil)
