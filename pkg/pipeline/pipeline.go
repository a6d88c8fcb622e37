// Package pipeline runs a PostgreSQL transaction in as few round trips as there are decisions in it.
//
// The usual way sends a statement, waits, sends the next: begin, read, write, write and commit are five waits, and on a busy
// machine the waits and the wake-ups cost more than the statements. Here the statements that can be known together
// travel together: begin with the reads, and after the program has decided, the writes with the commit. Two round trips.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// rollbackTimeout bounds the good-bye to a server that may be gone; the connection is closed when it does not answer.
const rollbackTimeout = 5 * time.Second

// Tx is a transaction that has begun. It is used by one goroutine.
type Tx struct {
	conn  *pgxpool.Conn
	begun context.Context // Begin's, which bounds the rollback too
}

// Begin takes a connection and sends begin and the statements that queue adds, in one round trip. Results are read by the
// callbacks of the queued statements before Begin returns. With an error there is no transaction.
//
// The isolation level is READ COMMITTED whatever the server's default is: each statement sees what was committed before it
// started, hence also what it has waited for.
func Begin(ctx context.Context, pool *pgxpool.Pool, queue func(*pgx.Batch)) (*Tx, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, acquireError(pool, err)
	}
	tx := &Tx{conn: conn, begun: ctx}
	begun := false
	defer func() {
		if !begun { // also when a callback panicked
			tx.Rollback()
		}
	}()
	b := &pgx.Batch{}
	b.Queue("begin isolation level read committed")
	queue(b)
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	begun = true
	return tx, nil
}

// acquireError tells a pool that is used up from a database that does not answer. Whatever else keeps a connection from coming
// about (TLS is refused, something else listens there, the pool is closed) is no fault of the message that needs it.
func acquireError(pool *pgxpool.Pool, err error) error {
	stat := pool.Stat()
	if errors.Is(err, context.DeadlineExceeded) && stat.AcquiredConns() >= stat.MaxConns() {
		return retry.Errorf(retry.RateLimited, "all %d database connections are in use: %w", stat.MaxConns(), err)
	}
	err = fmt.Errorf("acquire database connection: %w", err)
	if retry.ClassOf(err) == retry.Unknown {
		return &retry.Error{Class: retry.Timeout, Err: err}
	}
	return err
}

// Commit sends the statements that queue adds and the commit, in one round trip. An error of a statement prevents the commit.
// An error of the connection leaves it unknown, and one of a callback comes after it: only the server can stop what it
// already has.
func (t *Tx) Commit(ctx context.Context, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	queue(b)
	b.Queue("commit").Exec(func(tag pgconn.CommandTag) error {
		// The server answers the commit of a failed transaction with a friendly ROLLBACK and no error.
		if tag.String() != "COMMIT" {
			return fmt.Errorf("the server answered %s", tag)
		}
		return nil
	})
	return t.finish(ctx, "commit", b)
}

// Discard sends the statements that queue adds and a rollback, in one round trip: for what is only to be read, at the
// price of no write to disk.
func (t *Tx) Discard(ctx context.Context, queue func(*pgx.Batch)) error {
	b := &pgx.Batch{}
	queue(b)
	b.Queue("rollback")
	return t.finish(ctx, "rollback", b)
}

func (t *Tx) finish(ctx context.Context, operation string, b *pgx.Batch) error {
	defer t.Rollback() // returns the connection; rolls back when the batch has failed
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("%s: %w", operation, err)
	}
	return nil
}

// Rollback gives up the transaction if it is still open, and the connection. It may be called at any time and more than once, so
// that it can be deferred. Once the context given to Begin has ended it says nothing to the server and closes the
// connection, which rolls back as well: who was told to stop does not wait for a server that hangs.
func (t *Tx) Rollback() {
	if t.conn == nil {
		return
	}
	if pg := t.conn.Conn().PgConn(); !pg.IsClosed() && !pg.IsBusy() && pg.TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(t.begun, rollbackTimeout)
		defer cancel()
		_, _ = t.conn.Exec(ctx, "rollback") // its failure leaves the connection in a state that Release recognises
	}
	t.conn.Release() // a connection that is busy, closed or in a transaction is destroyed, not returned to the pool
	t.conn = nil
}
