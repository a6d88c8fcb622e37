package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Starts keeps the notes on messages that may be ending the process (messaging.Starts) in the table starts. It lies beside
// the inbox, so that all replicas of a service read the same notes.
type Starts struct {
	pool *pgxpool.Pool
}

var _ messaging.Starts = (*Starts)(nil)

// NewStarts makes the notes in the pool's database.
func NewStarts(pool *pgxpool.Pool) *Starts { return &Starts{pool: pool} }

const beginSQL = `
insert into starts (consumer, key, starts) values ($1, $2, $3::integer + 1)
on conflict (consumer, key) do update set starts = starts.starts + 1, noted_at = now()
returning starts`

// Begin notes a start before it is made, see messaging.Starts.
func (s *Starts) Begin(ctx context.Context, consumer string, key [32]byte, first int) (starts int, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return 0, fmt.Errorf("note a start: %w", err)
	}
	defer conn.Release()
	err = conn.QueryRow(ctx, beginSQL, consumer, key[:], first).Scan(&starts)
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return starts, nil
	case errors.As(err, &answer) || pgconn.SafeToRetry(err): // the server refused it, or has not heard of it
		return 0, fmt.Errorf("note a start: %w", err)
	}
	return 0, fmt.Errorf("note a start: %w: %w", messaging.ErrPerhapsNoted, err)
}

const endSQL = `delete from starts where consumer = $1 and key = any ($2)`

// End forgets keys, see messaging.Starts.
func (s *Starts) End(ctx context.Context, consumer string, keys ...[32]byte) error {
	b := &pgx.Batch{}
	// An end that the server loses in a crash of its own makes the next redelivery of this message look one start older; nobody
	// should wait for a disk for that.
	b.Queue("select set_config('synchronous_commit', 'off', true)")
	b.Queue(endSQL, consumer, sorted(keys))
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("note an end: %w", err)
	}
	return nil
}

const excuseBegunSQL = `
update starts set starts = greatest(starts - 1, 0), noted_at = now() where consumer = $1 and key = any ($2)`

const excuseHeldSQL = `
insert into starts (consumer, key, starts) select $1, key, 0 from unnest($2::bytea[]) as held (key)
on conflict do nothing`

// Excuse notes a stop in good order, see messaging.Starts.
func (s *Starts) Excuse(ctx context.Context, consumer string, begun, held [][32]byte) error {
	b := &pgx.Batch{}
	b.Queue(excuseBegunSQL, consumer, sorted(begun))
	b.Queue(excuseHeldSQL, consumer, sorted(held))
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("excuse starts: %w", err)
	}
	return nil
}

// sorted is the keys in one order, so that two replicas that stop at the same time with the same keys do not deadlock.
func sorted(keys [][32]byte) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = keys[i][:]
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}
