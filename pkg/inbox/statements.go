package inbox

import (
	"bytes"
	"cmp"
	"runtime/debug"
	"slices"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
)

const insertSQL = `
insert into inbox (consumer, message_id, payload_hash)
select $1, id, hash from unnest($2::text[], $3::bytea[]) as m (id, hash)
on conflict do nothing
returning message_id`

// queueInsert queues the insert of all ids; fresh will hold those that were not there. Every transaction inserts in the order of the
// ids, so that two of them that share ids wait for each other in one direction only and never deadlock.
func queueInsert[C any](b *pgx.Batch, consumer string, items []*item[C], fresh *map[string]bool) {
	sorted := slices.SortedFunc(slices.Values(items), func(a, b *item[C]) int {
		return cmp.Compare(a.message.MessageID, b.message.MessageID)
	})
	ids, hashes := make([]string, len(sorted)), make([][]byte, len(sorted))
	for i, it := range sorted {
		ids[i], hashes[i] = it.message.MessageID, it.hash[:]
	}
	b.Queue(insertSQL, consumer, ids, hashes).Query(func(rows pgx.Rows) error {
		*fresh = make(map[string]bool, len(ids))
		var id string
		_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
			(*fresh)[id] = true
			return nil
		})
		return err
	})
}

const forgetSQL = `delete from inbox where consumer = $1 and message_id = any ($2::text[])`

// queueForget queues the removal of ids whose message failed: it was not done, so it must not count as seen.
func queueForget(b *pgx.Batch, consumer string, ids []string) {
	if len(ids) > 0 {
		b.Queue(forgetSQL, consumer, ids)
	}
}

// The subselect reads one row by its key for each id. A plain join may be planned as a scan of the whole table, from
// statistics of a time when the table was small.
const compareSQL = `
select id, (select payload_hash from inbox where consumer = $1 and message_id = id)
from unnest($2::text[]) as seen (id)`

// queueCompare queues the check that messages with known ids are what was seen under these ids; the others get their error. A row
// that retention has removed just now cannot be compared any more, but the message was seen.
func queueCompare[C any](b *pgx.Batch, consumer string, seen []*item[C]) {
	if len(seen) == 0 {
		return
	}
	ids, byID := make([]string, len(seen)), make(map[string]*item[C], len(seen))
	for i, it := range seen {
		ids[i], byID[it.message.MessageID] = it.message.MessageID, it
	}
	b.Queue(compareSQL, consumer, ids).Query(func(rows pgx.Rows) error {
		var id string
		var hash []byte
		_, err := pgx.ForEachRow(rows, []any{&id, &hash}, func() error {
			if it := byID[id]; hash != nil && !bytes.Equal(hash, it.hash[:]) {
				it.err = otherPayload(it.message)
			}
			return nil
		})
		return err
	})
}

func otherPayload(m *messaging.Message) error {
	return retry.Errorf(retry.Invariant, "message %s was seen before with another payload", m.MessageID)
}

// panicError makes an error of a panic. The stack is the only trace of where it happened.
func panicError(cause any) error {
	return retry.Errorf(retry.Unknown, "panic: %v\n%s", cause, debug.Stack())
}
