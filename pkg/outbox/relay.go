package outbox

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/banking/pkg/retry"
)

const (
	// sweepShare keeps the sweeps to a fiftieth of the time when they have become expensive, i.e. when an old
	// transaction holds back vacuum and each sweep walks over everything that was deleted since.
	sweepShare = 50
	// maxSweepPause is how long a late commit may have to wait then.
	maxSweepPause = 20 * time.Second
)

// relayBackoff is how the relay waits for a database or a broker that is not there.
var relayBackoff = retry.Backoff{Base: 100 * time.Millisecond, Factor: 2, Cap: 5 * time.Second}

// Run relays until ctx ends, then lets the batch that is under way finish, briefly, and returns nil. It outlives every failure of the
// database and the broker. Any number of processes may run it on the same table.
//
// Most messages never come here: they go the direct way. Two kinds of loops share the others. The relays wait for Wake and claim
// from the frontier on: that is fast and finds nearly everything. The sweep claims from the very beginning, once every poll
// interval: that finds the rest, which is what commits late, what a crashed process left and what waits for its next attempt.
func (o *Outbox) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	for range o.config.Concurrency {
		loops.Go(func() { o.relay(ctx) })
	}
	loops.Go(func() { o.sweep(ctx) })
	loops.Go(func() { o.settleDirect(ctx) })
	loops.Wait()
	o.farewell(ctx)
	return nil
}

// farewell sends what the last handlers have committed just before the relay was stopped, as far as it goes within the StopGrace. It would
// not be lost, but it would wait for the next process.
func (o *Outbox) farewell(stopped context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(stopped), o.config.StopGrace)
	defer cancel()
	o.stopDirect(ctx)
	if _, err := o.relayBatch(ctx, o.frontier.low(time.Now())); err != nil {
		o.config.Logger.LogAttrs(ctx, slog.LevelInfo, "outgoing messages are left for the next process", slog.Any("error", err))
	}
}

func (o *Outbox) relay(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		failures := 0
		for more := true; more && ctx.Err() == nil; {
			found, err := o.relayBatch(ctx, o.frontier.low(time.Now()))
			if err != nil {
				failures++
				o.pause(ctx, failures, err)
				continue
			}
			failures = 0
			if more = found.full; more {
				o.Wake() // there is work for another relay
			}
		}
	}
}

func (o *Outbox) sweep(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		scan, err := o.sweepOnce(ctx)
		if err != nil {
			failures++
			o.pause(ctx, failures, err)
			continue
		}
		failures = 0
		sleep(ctx, sweepPause(scan, o.config.Poll))
	}
}

// sweepPause is the time until the next sweep after one in which the database worked for scan.
func sweepPause(scan, poll time.Duration) time.Duration {
	return max(poll, min(sweepShare*scan, maxSweepPause))
}

// sweepOnce relays everything up to the frontier, and a batch above it, and then measures what is left: also when the broker is away, or
// nobody would see that messages pile up.
func (o *Outbox) sweepOnce(ctx context.Context) (took time.Duration, err error) {
	scan, sweepErr := o.sweepRows(ctx)
	measuring, err := o.measure(ctx)
	return scan + measuring, errors.Join(sweepErr, err)
}

// sweepRows relays row after row from the beginning. If there is more than its share, the relays are woken: under a load that never ends
// the sweep must come back to the beginning, and not be one more relay at the end.
func (o *Outbox) sweepRows(ctx context.Context) (scan time.Duration, _ error) {
	end := o.frontier.high()
	after, more := int64(0), true
	for more && ctx.Err() == nil {
		found, err := o.relayBatch(ctx, after)
		scan += found.scan
		if err != nil {
			return scan, err
		}
		after, more = found.last, found.full
		if more && after >= end {
			o.Wake()
			more = false
		}
	}
	return scan, nil
}

// Along the key, like a claim: after a busy minute the table has thousands of pages with nothing in them, which vacuum leaves to later rows.
// Reading all of them once a second was the dearest statement of all at 100 transfers a second. What is dead in the key has been marked
// by the sweep before it.
const measureSQL = `
select count(*) filter (where set_aside_at is null), count(*) filter (where set_aside_at is not null),
       coalesce(extract(epoch from now() - min(occurred_at) filter (where set_aside_at is null)), 0)::float8
from outbox where id > 0`

// measure refreshes the gauges and says how long that took.
func (o *Outbox) measure(ctx context.Context) (time.Duration, error) {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	var waiting, setAside int64
	var oldest float64
	err := o.config.Pool.QueryRow(ctx, measureSQL).Scan(&waiting, &setAside, &oldest)
	if err != nil {
		return time.Since(started), err
	}
	o.metrics.waiting.Set(float64(waiting))
	o.metrics.setAside.Set(float64(setAside))
	o.metrics.oldest.Set(max(oldest, 0)) // clocks differ
	return time.Since(started), nil
}

// pause waits after the n-th failure in a row; it ends early with ctx.
func (o *Outbox) pause(ctx context.Context, n int, err error) {
	if ctx.Err() != nil {
		return
	}
	wait := retry.Jitter(relayBackoff.Delay(n), 0.2, rand.Float64())
	o.config.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox relay waits",
		slog.String("class", string(retry.ClassOf(err))), slog.Int("failures", n), slog.Duration("retry_in", wait),
		slog.Any("error", err))
	sleep(ctx, wait)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
