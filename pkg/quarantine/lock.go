package quarantine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// hold is the right to look into queues, kept by one connection to the database. Audit rows are written over the same connection: when it
// breaks the right is gone, and so nothing more can be written, and nothing more is done.
type hold struct {
	conn *pgxpool.Conn
	slot <-chan struct{}
}

const (
	lockSQL    = `select pg_advisory_lock(hashtextextended('quarantine ' || $1, 0))`
	tryLockSQL = `select pg_try_advisory_lock(hashtextextended('quarantine ' || $1, 0))`
)

// sqlTime bounds a statement of a run, whose context has no deadline of its own.
const sqlTime = 10 * time.Second

// lockMargin is for the database's own answers, beside the waiting for others. With it and LockWait every call that waits for its queues is
// answered within 10 s, also by a database that says nothing at all.
const lockMargin = 3 * time.Second

// errBusy says that another look or run holds a queue.
var errBusy = errors.New("another look or run is under way")

// hold takes the queues, waiting for others for the time of LockWait in all. Everybody takes them in one order, so that two who want several
// never wait for each other.
func (q *Quarantine) hold(ctx context.Context, queues []string) (*hold, error) {
	deadline := time.Now().Add(q.LockWait)
	ctx, cancel := context.WithTimeout(ctx, q.LockWait+lockMargin)
	defer cancel()
	over := time.NewTimer(q.LockWait)
	defer over.Stop()
	select {
	case q.slot <- struct{}{}:
	case <-over.C:
		return nil, errBusy
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	conn, err := q.Pool.Acquire(ctx)
	if err != nil {
		<-q.slot
		return nil, fmt.Errorf("hold the quarantine: %w", err)
	}
	h := &hold{conn, q.slot}
	for _, queue := range slices.Sorted(slices.Values(queues)) {
		wait := fmt.Sprintf("%dms", max(1, time.Until(deadline).Milliseconds()))
		batch := &pgx.Batch{}
		batch.Queue(`select set_config('lock_timeout', $1, false)`, wait)
		batch.Queue(lockSQL, queue)
		if err := conn.SendBatch(ctx, batch).Close(); err != nil {
			h.release()
			var refused *pgconn.PgError
			if errors.As(err, &refused) && refused.Code == "55P03" { // lock_not_available
				return nil, errBusy
			}
			return nil, fmt.Errorf("hold the quarantine: %w", err)
		}
	}
	return h, nil
}

// tryHold takes one queue, or nothing when somebody else has it.
func (q *Quarantine) tryHold(ctx context.Context, queue string) (*hold, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case q.slot <- struct{}{}:
	default:
		return nil, nil
	}
	conn, err := q.Pool.Acquire(ctx)
	if err != nil {
		<-q.slot
		return nil, err
	}
	h := &hold{conn, q.slot}
	var taken bool
	if err := conn.QueryRow(ctx, tryLockSQL, queue).Scan(&taken); err != nil || !taken {
		h.release()
		return nil, err
	}
	return h, nil
}

// release gives everything back, at the latest with the connection.
func (h *hold) release() {
	defer func() { <-h.slot }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	batch := &pgx.Batch{}
	batch.Queue(`select pg_advisory_unlock_all()`)
	batch.Queue(`reset lock_timeout`)
	if err := h.conn.SendBatch(ctx, batch).Close(); err != nil {
		_ = h.conn.Hijack().Close(ctx) // the server lets go of the locks when it notices
		return
	}
	h.conn.Release()
}

// busy is the answer to a call that cannot have its queues.
func busy(queues []string) *service.Problem {
	p := service.Conflict("Another look or run is under way in " + strings.Join(queues, ", ") + "; try again when it has ended.")
	p.RetryAfter = 2 * time.Second
	return p
}
