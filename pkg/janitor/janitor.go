// Package janitor removes the rows of a table that have passed their retention.
//
// It finds them by walking over the pages of the table from the first to the last, a few at a time. An index on the time would find them
// faster, but every message would pay for it, and nobody waits for the janitor. (A BRIN index, nearly free at first, is of no use
// after the first retention: new rows fill the gaps of removed ones, so that soon every page holds old and new.)
package janitor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what a janitor needs. Pool, Table, Column and Retention are required; packages that own a table set Table and Column.
type Config struct {
	Pool      *pgxpool.Pool
	Table     string        // names of our own making, never a client's
	Column    string        // the timestamptz that a row's age is counted from
	Retention time.Duration // rows older than this go
	Logger    *slog.Logger  // default slog.Default()

	Interval time.Duration // from the end of one sweep to the next; default 1/100 of the retention, 1 s to 1 h
	Pages    int           // pages of the table per transaction; default 64, for the inbox about 4,000 rows
	Pause    time.Duration // between two transactions, so that a sweep stays in the background; default 20 ms

	// Also is called at the end of each sweep, for what is so small that it needs no walk; default nothing.
	Also func(context.Context) error
}

// Janitor keeps one table.
type Janitor struct {
	config Config
	pages  string // the statements
	remove string
}

// New makes a janitor. It panics when a required part of the configuration is missing, which is a mistake in wiring.
func New(config Config) *Janitor {
	if config.Pool == nil || config.Table == "" || config.Column == "" || config.Retention <= 0 {
		panic("janitor.New: Pool, Table, Column and Retention are required")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Interval <= 0 {
		config.Interval = min(max(config.Retention/100, time.Second), time.Hour)
	}
	if config.Pages <= 0 {
		config.Pages = 64
	}
	if config.Pause <= 0 {
		config.Pause = 20 * time.Millisecond
	}
	table, column := pgx.Identifier{config.Table}.Sanitize(), pgx.Identifier{config.Column}.Sanitize()
	return &Janitor{
		config: config,
		pages:  fmt.Sprintf(`select pg_relation_size('%s') / current_setting('block_size')::bigint`, table),
		// Two janitors walk in the same direction: they may wait for each other for a moment, and never in a circle.
		remove: fmt.Sprintf(`
delete from %s
where ctid >= format('(%%s,0)', $1::bigint)::tid and ctid < format('(%%s,0)', $2::bigint)::tid
  and %s < now() - $3::interval`, table, column),
	}
}

// Run sweeps until ctx ends and returns nil then. Failures are logged and the next sweep tries again. Any number of processes may run it
// on the same table.
func (j *Janitor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		removed, err := j.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			j.config.Logger.LogAttrs(ctx, slog.LevelWarn, "sweep failed", slog.String("table", j.config.Table), slog.Int64("removed", removed), slog.Any("error", err))
		case removed > 0:
			j.config.Logger.LogAttrs(ctx, slog.LevelInfo, "swept", slog.String("table", j.config.Table), slog.Int64("removed", removed))
		}
		sleep(ctx, j.config.Interval)
	}
	return nil
}

// Sweep walks once over the whole table and says how many rows it has removed.
func (j *Janitor) Sweep(ctx context.Context) (removed int64, err error) {
	var pages int64
	if err := j.config.Pool.QueryRow(ctx, j.pages).Scan(&pages); err != nil {
		return 0, fmt.Errorf("size of %s: %w", j.config.Table, err)
	}
	step := int64(j.config.Pages)
	for first := int64(0); first < pages && ctx.Err() == nil; first += step {
		n, err := j.removeOld(ctx, first, first+step)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("remove old rows of %s: %w", j.config.Table, err)
		}
		sleep(ctx, j.config.Pause)
	}
	if ctx.Err() == nil && j.config.Also != nil {
		if err := j.config.Also(ctx); err != nil {
			return removed, err
		}
	}
	return removed, ctx.Err()
}

// removeOld removes the old rows of the pages from first up to, not including, end. The batch is one transaction.
func (j *Janitor) removeOld(ctx context.Context, first, end int64) (removed int64, err error) {
	b := &pgx.Batch{}
	b.Queue("select set_config('synchronous_commit', 'off', true)") // a removal lost in a crash is made again
	b.Queue(j.remove, first, end, j.config.Retention).Exec(func(tag pgconn.CommandTag) error {
		removed = tag.RowsAffected()
		return nil
	})
	err = j.config.Pool.SendBatch(ctx, b).Close()
	return removed, err
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
