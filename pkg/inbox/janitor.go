package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// JanitorConfig is what a janitor needs. Pool and Retention are required.
type JanitorConfig struct {
	Pool      *pgxpool.Pool
	Retention time.Duration // rows older than this go; a copy that arrives later is handled as a new message
	Logger    *slog.Logger  // default slog.Default()

	Interval time.Duration // from the end of one sweep to the next; default 1/100 of the retention, 1 s to 1 h
	Pages    int           // pages of the table per transaction; default 64, about 4,000 rows
	Pause    time.Duration // between two transactions, so that a sweep stays in the background; default 20 ms
}

// Janitor removes the rows of the inbox that have passed their retention, and with them starts of messages that have never come back.
//
// It finds them by walking over the pages of the table from the first to the last, a few at a time. An index on received_at would find
// them faster, but every message would pay for it, and nobody waits for the janitor. (A BRIN index, nearly free at first, is of no
// use after the first retention: new rows fill the gaps of removed ones, so that soon every page holds old and new.)
type Janitor struct {
	config JanitorConfig
}

// NewJanitor makes a janitor. It panics when a required part of the configuration is missing, which is a mistake in wiring.
func NewJanitor(config JanitorConfig) *Janitor {
	if config.Pool == nil || config.Retention <= 0 {
		panic("inbox.NewJanitor: Pool and Retention are required")
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
	return &Janitor{config: config}
}

// Run sweeps until ctx ends and returns nil then. Failures are logged and the next sweep tries again. Any number of processes may run it
// on the same table.
func (j *Janitor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		removed, err := j.Sweep(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			j.config.Logger.LogAttrs(ctx, slog.LevelWarn, "inbox sweep failed", slog.Int64("removed", removed), slog.Any("error", err))
		case removed > 0:
			j.config.Logger.LogAttrs(ctx, slog.LevelInfo, "inbox swept", slog.Int64("removed", removed))
		}
		sleep(ctx, j.config.Interval)
	}
	return nil
}

const pagesSQL = `select pg_relation_size('inbox') / current_setting('block_size')::bigint`

// Two janitors walk in the same direction: they may wait for each other for a moment, and never in a circle.
const removeSQL = `
delete from inbox
where ctid >= format('(%s,0)', $1::bigint)::tid and ctid < format('(%s,0)', $2::bigint)::tid
  and received_at < now() - $3::interval`

// Starts are few: those that end are forgotten at once.
const removeStartsSQL = `delete from starts where noted_at < now() - $1::interval`

// Sweep walks once over the whole inbox and says how many rows it has removed.
func (j *Janitor) Sweep(ctx context.Context) (removed int64, err error) {
	var pages int64
	if err := j.config.Pool.QueryRow(ctx, pagesSQL).Scan(&pages); err != nil {
		return 0, fmt.Errorf("size of the inbox: %w", err)
	}
	step := int64(j.config.Pages)
	for first := int64(0); first < pages && ctx.Err() == nil; first += step {
		n, err := j.remove(ctx, first, first+step)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("remove old inbox rows: %w", err)
		}
		sleep(ctx, j.config.Pause)
	}
	if ctx.Err() == nil {
		if _, err := j.config.Pool.Exec(ctx, removeStartsSQL, j.config.Retention); err != nil {
			return removed, fmt.Errorf("remove old starts: %w", err)
		}
	}
	return removed, ctx.Err()
}

// remove removes the old rows of the pages from first up to, not including, end. The batch is one transaction.
func (j *Janitor) remove(ctx context.Context, first, end int64) (removed int64, err error) {
	b := &pgx.Batch{}
	b.Queue("select set_config('synchronous_commit', 'off', true)") // a removal lost in a crash is made again
	b.Queue(removeSQL, first, end, j.config.Retention).Exec(func(tag pgconn.CommandTag) error {
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
