// Package journal keeps the attempts that did not end well, so that somebody who asks what happened to a transfer is not sent to the logs.
//
// It is a convenience and behaves like one: nothing waits for it, nothing fails because of it, and a message that is handled at the first
// attempt, which is nearly all of them, costs it nothing. What it is told goes into a buffer of a fixed size and is written in batches;
// when the buffer is full, because the database is away or because of a flood, attempts are dropped and counted. The log has a line for
// each of them all the same.
package journal

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// The bounds. A row has little more than 2 KB at most.
const (
	buffered    = 2000 // attempts that wait to be written: the first four seconds of a flood
	batchSize   = 100
	perSecond   = 500 // rows written by one process, so that a flood of failures leaves the database to the work
	perMessage  = 50  // rows of one message that cost an attempt, and as many that cost none
	perTransfer = 500 // rows of one transfer, whatever messages they are about

	longestError = 1 << 10 // bytes
	longestText  = 200     // bytes of a type
)

// MostRetention is how long an attempt is kept at most: who asks later asks the quarantine's audit, which is kept.
const MostRetention = 7 * 24 * time.Hour

// Config is what a journal needs; only Pool is required.
type Config struct {
	Pool       *pgxpool.Pool
	Registerer prometheus.Registerer // default none
	Logger     *slog.Logger          // default slog.Default()
	StopGrace  time.Duration         // for what is left to write at the stop; default 1 s
}

// Journal writes attempts into the table attempts of a service's database.
type Journal struct {
	pool    *pgxpool.Pool
	log     *slog.Logger
	metrics metrics
	buffer  chan entry
	grace   time.Duration
	pause   time.Duration // after a failure
}

// entry is an attempt at a message about a transfer.
type entry struct {
	messaging.Attempt
	transfer uuid.UUID
}

// New makes a journal. Any number of consumers may tell it something.
func New(config Config) *Journal {
	if config.Pool == nil {
		panic("journal.New: Pool is required")
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.StopGrace <= 0 {
		config.StopGrace = time.Second
	}
	return &Journal{
		pool: config.Pool, log: config.Logger, metrics: newMetrics(config.Registerer), buffer: make(chan entry, buffered),
		grace: config.StopGrace, pause: time.Second,
	}
}

// NewJanitor makes the janitor that removes old attempts: after config.Retention, or MostRetention when that is less.
func NewJanitor(config janitor.Config) *janitor.Janitor {
	config.Table, config.Column, config.Retention = "attempts", "at", min(config.Retention, MostRetention)
	return janitor.New(config)
}

// Observe takes an attempt, and never waits; it is a messaging.ConsumerConfig.Observe. What names no transfer is left out, since it is
// by their transfer that attempts are asked for.
func (j *Journal) Observe(a messaging.Attempt) {
	transfer, ok := contract.ParseID(a.TransferID)
	if !ok {
		return
	}
	a.MessageID, a.Type, a.Error = storable(a.MessageID, 4*messaging.MaxMessageID), storable(a.Type, longestText), storable(a.Error, longestError)
	a.At = a.At.Truncate(time.Microsecond) // as PostgreSQL keeps it
	select {
	case j.buffer <- entry{a, transfer}:
	default:
		j.metrics.dropped.Inc()
	}
}

// storable makes a text one that PostgreSQL can hold, of so many bytes at most, and lets go of the memory of a longer one.
func storable(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > limit {
		text = strings.Clone(strings.ToValidUTF8(text[:limit], "")) // without half a character at its end
	}
	return text
}

// Run writes until ctx ends, then what is left within the stop's grace, and returns nil. Start it before the consumers, so that it stops
// after them.
func (j *Journal) Run(ctx context.Context) error {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx)) // what is being written when ctx ends is written to its end
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(j.grace, cancel) })()
	for {
		select {
		case <-ctx.Done():
			j.finish(live)
			return nil
		case first := <-j.buffer:
			batch := j.gather(first)
			if !j.insist(ctx, live, batch) {
				j.finish(live, batch...)
				return nil
			}
			wait(ctx, time.Duration(len(batch))*time.Second/perSecond)
		}
	}
}

// gather takes what else is there.
func (j *Journal) gather(batch ...entry) []entry {
	for len(batch) < batchSize {
		select {
		case e := <-j.buffer:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// insist writes a batch, and waits for a database that is away: attempts fail just then, and tell why. Meanwhile the buffer fills up. It
// answers false when ctx ends before.
func (j *Journal) insist(ctx, live context.Context, batch []entry) bool {
	for {
		err := j.writeSoon(live, batch)
		switch class := retry.ClassOf(err); {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		case class != retry.Timeout && class != retry.RateLimited && class != retry.Conflict:
			j.drop(batch, err)
			return true
		}
		if !wait(ctx, j.pause) {
			return false
		}
	}
}

// writeSoon gives up on a database that hangs: another try may reach another server.
func (j *Journal) writeSoon(ctx context.Context, batch []entry) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return j.write(ctx, batch)
}

// finish writes what is left, until live ends.
func (j *Journal) finish(live context.Context, batch ...entry) {
	for batch = j.gather(batch...); len(batch) > 0; batch = j.gather() {
		if err := j.write(live, batch); err != nil {
			j.drop(batch, fmt.Errorf("at the stop: %w", err))
		}
	}
}

func (j *Journal) drop(batch []entry, err error) {
	j.metrics.dropped.Add(float64(len(batch)))
	j.log.Warn("failed attempts are not in the journal", "attempts", len(batch), "error", err)
}

// wait answers false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
