package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// sweeper times out transfers that have been open for too long, which turns them back unless they are on their way already, and
// keeps the table of outcome counts short.
type sweeper struct {
	pool     *pgxpool.Pool
	outbox   *outbox.Outbox
	timeout  time.Duration // SAGA_TIMEOUT; 0 turns nothing back
	interval time.Duration
	batch    int // transfers in one transaction
	now      func() time.Time
	log      *slog.Logger
	overdue  prometheus.Gauge
}

// newOverdue makes the gauge that a sweeper sets. Every replica counts the same transfers, so it is to be read with max(), not sum().
func newOverdue(registry prometheus.Registerer) prometheus.Gauge {
	overdue := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "transfers_overdue",
		Help: "Transfers that are still open after SAGA_TIMEOUT, at the last sweep, up to 10000; 0 without a timeout.",
	})
	registry.MustRegister(overdue)
	return overdue
}

// sweepInterval is how often to look: a tenth of the timeout, so that a transfer is turned back at most that much late.
func sweepInterval(timeout time.Duration) time.Duration {
	const slowest = 15 * time.Second
	if timeout == 0 {
		return slowest
	}
	return min(max(timeout/10, 100*time.Millisecond), slowest)
}

// run sweeps until ctx ends. A failure is logged and the next round tries again: what was not swept is still there.
func (s *sweeper) run(ctx context.Context) error {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := errors.Join(s.round(ctx), s.count(ctx)); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "sweep failed", "error", err)
		}
	}
}

// round sweeps until nothing is left that is overdue.
func (s *sweeper) round(ctx context.Context) error {
	for {
		n, err := s.sweep(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			s.log.InfoContext(ctx, "transfers timed out", "count", n)
		}
		if n < s.batch {
			return nil
		}
	}
}

// A range of the index that holds what is open, and no more of it than tells a few from very many.
const countOverdue = `select count(*) from (select from transfers where outcome is null and id < $1 limit 10000) as overdue`

// count counts the transfers that are open after their timeout. Those that were turned back are among them until account has
// answered: turning back is no end.
func (s *sweeper) count(ctx context.Context) error {
	if s.timeout == 0 {
		return nil
	}
	var n float64
	if err := s.pool.QueryRow(ctx, countOverdue, firstID(s.now().Add(-s.timeout))).Scan(&n); err != nil {
		return fmt.Errorf("count overdue transfers: %w", err)
	}
	s.overdue.Set(n)
	return nil
}

// One replica sweeps at a time; the others have nothing to do. The lock ends with the transaction, also when the process dies.
const becomeSweeper = `select pg_try_advisory_xact_lock(hashtext('transfer.sweeper'))`

// Rows that a consumer is working on are left out: waiting for them in an order of our own could deadlock, and by the next
// round they have moved. A REFUNDING transfer that was turned back by something else is overdue too, and learns it. Each overdue
// transfer costs one look into the key of facts, and there are few: they are what account has not answered for.
const lockOverdue = `
select id, source_account_id, destination_account_id, amount_minor, currency, coalesce(reason, '')
from transfers
where outcome is null and id < $1 and not exists (select from facts where transfer_id = transfers.id and fact = 'TIMED_OUT')
order by id limit $2
for update skip locked`

// Only above a number of rows that a summary would feel.
const foldOutcomes = `
with folded as (
    delete from outcome_counts where (select count(*) from outcome_counts) > 200
    returning outcome, n
)
insert into outcome_counts (outcome, n) select outcome, sum(n)::bigint from folded group by outcome`

// sweep does one transaction's worth and says how many transfers it has timed out.
func (s *sweeper) sweep(ctx context.Context) (int, error) {
	swept := 0
	var queued *outbox.Queued
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var active bool
		if err := tx.QueryRow(ctx, becomeSweeper).Scan(&active); err != nil || !active {
			return err
		}
		if _, err := tx.Exec(ctx, foldOutcomes); err != nil {
			return fmt.Errorf("fold outcome counts: %w", err)
		}
		if s.timeout == 0 {
			return nil
		}
		n, messages, err := s.timeOut(ctx, tx)
		swept, queued = n, messages
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("sweep: %w", err)
	}
	if queued != nil {
		queued.Committed()
	}
	return swept, nil
}

func (s *sweeper) timeOut(ctx context.Context, tx pgx.Tx) (int, *outbox.Queued, error) {
	w := newWork(s.now)
	rows, err := tx.Query(ctx, lockOverdue, firstID(s.now().Add(-s.timeout)), s.batch)
	if err == nil {
		err = w.scanTransfers(rows)
	}
	if err != nil || len(w.transfers) == 0 {
		return 0, nil, err
	}

	ids := make([]uuid.UUID, 0, len(w.transfers))
	for id := range w.transfers {
		ids = append(ids, id)
	}
	rows, err = tx.Query(ctx, readFacts, ids)
	if err == nil {
		err = w.scanFacts(rows)
	}
	if err != nil {
		return 0, nil, err
	}

	var out []outbox.Message
	for _, t := range w.transfers {
		messages, err := w.timeOut(t, service.TraceParent(ctx))
		if err != nil {
			return 0, nil, err
		}
		out = append(out, messages...)
	}
	var b pgx.Batch
	w.Save(&b)
	queued := s.outbox.Queue(&b, out)
	return len(ids), queued, tx.SendBatch(ctx, &b).Close()
}
