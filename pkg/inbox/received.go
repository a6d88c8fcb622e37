package inbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Key is the key of a row: a message as one consumer has handled it.
type Key struct{ Consumer, MessageID string }

// Each key is looked up whole, as in compareSQL.
const receivedSQL = `
select consumer, id, received_at from (
    select consumer, id, (select received_at from inbox where inbox.consumer = k.consumer and message_id = id) as received_at
    from unnest($1::text[], $2::text[]) as k (consumer, id)
) as seen where received_at is not null`

// Received answers which of the messages have been handled, and when.
func Received(ctx context.Context, pool *pgxpool.Pool, keys []Key) (map[Key]time.Time, error) {
	consumers, ids := make([]string, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		consumers[i], ids[i] = key.Consumer, key.MessageID
	}
	received := map[Key]time.Time{}
	b := &pgx.Batch{}
	b.Queue(byKeySQL)
	b.Queue(receivedSQL, consumers, ids).Query(func(rows pgx.Rows) error {
		var key Key
		var at time.Time
		_, err := pgx.ForEachRow(rows, []any{&key.Consumer, &key.MessageID, &at}, func() error {
			received[key] = at
			return nil
		})
		return err
	})
	if err := pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("look into the inbox: %w", err)
	}
	return received, nil
}
