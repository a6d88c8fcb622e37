package inbox

import (
	"context"
	"log/slog"
	"time"

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

// Janitor removes the rows of the inbox that have passed their retention.
type Janitor struct {
	config JanitorConfig
}

// NewJanitor makes a janitor. It panics when a required part of the configuration is missing.
func NewJanitor(config JanitorConfig) *Janitor { return &Janitor{config: config} }

// Run sweeps until ctx ends and returns nil then. Failures are logged and the next sweep tries again. Any number of processes may run it
// on the same table.
func (j *Janitor) Run(ctx context.Context) error { return nil }

// Sweep walks once over the whole table and says how many rows it has removed.
func (j *Janitor) Sweep(ctx context.Context) (int64, error) { return 0, nil }
