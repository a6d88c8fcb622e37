package pipeline

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// scanSettings undoes, for one transaction, what service.OpenPool switches off for statements that find their rows by a key. Compiling
// stays off: it takes longer than it saves unless a query runs for many seconds.
const scanSettings = `
select set_config('transaction_read_only', 'on', true),
       set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true), set_config('enable_mergejoin', 'on', true)`

// Scan runs a statement that reads whole tables on purpose, such as a sum over all accounts, in one read-only transaction and one round
// trip. Any other statement of a service's pool is planned as if reading a whole table were the worst there is, which makes
// one that has to do so walk along an index instead: twice the time. read gets the rows before Scan returns.
//
// The statement should be one that only Scan runs: a connection keeps the plan it made first.
func Scan(ctx context.Context, pool *pgxpool.Pool, statement string, read func(pgx.Rows) error) error {
	b := &pgx.Batch{}
	b.Queue(scanSettings) // the batch is the transaction
	b.Queue(statement).Query(read)
	return pool.SendBatch(ctx, b).Close()
}
