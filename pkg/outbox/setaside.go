package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// SetAside is a row that the broker refused for itself so often that the relay gave it up. It stays in the table and is not sent.
type SetAside struct {
	ID        int64
	MessageID string
	Type      string
	Transfer  string // the correlation id
	Attempts  int
	Error     string
	At        time.Time
}

const listSetAsideSQL = `
select id, message_id, type, correlation_id, attempts, coalesce(last_error, ''), set_aside_at
from outbox where set_aside_at is not null order by id limit $1`

// Database is a connection, a pool or a transaction.
type Database interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// ListSetAside lists the rows that were set aside, oldest first, at most limit of them.
func ListSetAside(ctx context.Context, db Database, limit int) ([]SetAside, error) {
	rows, err := db.Query(ctx, listSetAsideSQL, limit)
	if err != nil {
		return nil, fmt.Errorf("list set aside messages: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SetAside])
	if err != nil {
		return nil, fmt.Errorf("list set aside messages: %w", err)
	}
	return list, nil
}

const retrySetAsideSQL = `
update outbox set set_aside_at = null, attempts = 0, next_attempt_at = null
where set_aside_at is not null and ($1::text[] is null or message_id = any ($1))`

// RetrySetAside gives the named rows (by messageId; all of them when none is named) their full number of attempts again, and says how
// many there were.
func RetrySetAside(ctx context.Context, db Database, messageIDs ...string) (int64, error) {
	tag, err := db.Exec(ctx, retrySetAsideSQL, messageIDs)
	if err != nil {
		return 0, fmt.Errorf("retry set aside messages: %w", err)
	}
	// Not Wake: these ids lie below the frontier, where only the sweep looks.
	return tag.RowsAffected(), nil
}
