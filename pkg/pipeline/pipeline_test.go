package pipeline

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), testenv.New(t).Database(t, "pipeline"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "create table notes (id integer primary key deferrable initially deferred)"); err != nil {
		t.Fatal(err)
	}
	return pool
}

func add(id int) func(*pgx.Batch) {
	return func(b *pgx.Batch) { b.Queue("insert into notes values ($1)", id) }
}

func nothing(*pgx.Batch) {}

// expect compares the rows of the table and demands that no connection is left in a transaction.
func expect(t *testing.T, pool *pgxpool.Pool, want int) {
	t.Helper()
	var rows, open int
	const query = `select (select count(*) from notes),
		(select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%')`
	for timeout := time.Now().Add(time.Minute); ; {
		if err := pool.QueryRow(context.Background(), query).Scan(&rows, &open); err != nil {
			t.Fatal(err)
		}
		if open == 0 || time.Now().After(timeout) { // a broken connection is closed in the background
			break
		}
	}
	if rows != want || open != 0 {
		t.Errorf("%d rows, want %d; %d connections idle in a transaction", rows, want, open)
	}
}

func TestCommitAndDiscard(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	tx, err := Begin(t.Context(), pool, add(1))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context(), add(2)); err != nil {
		t.Fatal(err)
	}
	tx.Rollback() // as a deferred one would
	expect(t, pool, 2)

	tx, err = Begin(t.Context(), pool, add(3))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = tx.Discard(t.Context(), func(b *pgx.Batch) {
		b.Queue("select count(*) from notes").QueryRow(func(row pgx.Row) error { return row.Scan(&seen) })
	})
	if err != nil || seen != 3 {
		t.Errorf("saw %d rows: %v", seen, err)
	}
	expect(t, pool, 2)
}

// Whatever goes wrong, an error is returned, nothing is committed and no broken connection gets back into the pool.
func TestFailures(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	ctx := t.Context()
	divide := func(b *pgx.Batch) { b.Queue("select 1/0") }

	if _, err := Begin(ctx, pool, func(b *pgx.Batch) { add(1)(b); divide(b) }); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Errorf("failing statement behind begin: %v", err)
	}
	begin := func() *Tx {
		tx, err := Begin(ctx, pool, add(1))
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	if err := begin().Commit(ctx, divide); err == nil {
		t.Error("failing statement before commit: no error")
	}
	if err := begin().Commit(ctx, add(1)); err == nil {
		t.Error("commit that breaks a deferred constraint: no error")
	}
	if err := begin().Discard(ctx, divide); err == nil {
		t.Error("failing statement before rollback: no error")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := begin().Commit(ended, nothing); err == nil {
		t.Error("commit after the context has ended: no error")
	}
	expect(t, pool, 0)
}

// The server answers the commit of a transaction that has failed before with success and the word ROLLBACK. Who does not read it
// acknowledges a message whose effect is gone.
func TestCommitThatTheServerTurnsIntoARollback(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	tx, err := Begin(t.Context(), pool, add(1))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = tx.conn.Exec(t.Context(), "select 1/0") // its error got lost somewhere
	if err := tx.Commit(t.Context(), nothing); err == nil || !strings.Contains(err.Error(), "ROLLBACK") {
		t.Errorf("commit of a failed transaction: %v", err)
	}
	expect(t, pool, 0)
}

// The transaction of a Begin that panics is over, and its connection does not get back into the pool in the middle of an answer.
func TestPanicInACallback(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	func() {
		defer func() {
			if cause := recover(); cause != "boom" {
				t.Errorf("recovered %v", cause)
			}
		}()
		_, _ = Begin(t.Context(), pool, func(b *pgx.Batch) {
			add(1)(b)
			b.Queue("select 1").Exec(func(pgconn.CommandTag) error { panic("boom") })
			b.Queue("select 2")
		})
	}()
	expect(t, pool, 0)
}
