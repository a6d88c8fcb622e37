package quarantine

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Two statements in one, each with its index: a message may name no transfer and be known by its id nevertheless.
const historySQL = `
select ` + entryColumns + ` from quarantine_audit where transfer_id = $1
union
select ` + entryColumns + ` from quarantine_audit where message_id = any ($2)
order by id limit $3`

// mostHistory bounds the answer: a transfer about which thousands of messages were parked has no life that anybody reads.
const mostHistory = 1000

// History reads the audit of one transfer, oldest first: of messages that name it, and of those with one of the ids.
func History(ctx context.Context, pool *pgxpool.Pool, transfer uuid.UUID, messageIDs []string) ([]Entry, error) {
	rows, err := pool.Query(ctx, historySQL, transfer, messageIDs, mostHistory)
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	entries, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Entry, err error) {
		return e, row.Scan(e.fields()...)
	})
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return entries, nil
}
