package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Writable returns a probe of the pool's database: nil when it would take a write. It is for messaging.ConsumerConfig.Probe and
// ends with its context.
//
// It makes a connection of its own and closes it. A ping of the pool asks another question: it fails when the pool's connections are all
// in use, which says nothing about the server, and it succeeds over an old connection to a server that has become a standby,
// where no message can be handled. A server that has no connection left for anybody counts as away.
func Writable(pool *pgxpool.Pool) func(context.Context) error {
	config := pool.Config().ConnConfig
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // one round trip, and no statement to remember
	config.Tracer = nil                                           // once a second while the database is away
	return func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, config.Copy())
		if err != nil {
			return fmt.Errorf("probe the database: %w", err)
		}
		defer func() { _ = conn.Close(ctx) }() // the answer is known
		var standby, readOnly bool
		err = conn.QueryRow(ctx, "select pg_is_in_recovery(), current_setting('transaction_read_only')::boolean").Scan(&standby, &readOnly)
		switch {
		case err != nil:
			return fmt.Errorf("probe the database: %w", err)
		case standby:
			return errors.New("probe the database: it is a standby, or still in recovery")
		case readOnly:
			return errors.New("probe the database: it is read-only (default_transaction_read_only)")
		}
		return nil
	}
}
