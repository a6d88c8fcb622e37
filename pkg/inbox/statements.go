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
	ids, hashes := idsOf(sorted), make([][]byte, len(sorted))
	for i, it := range sorted {
		hashes[i] = it.hash[:]
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

// The statements below are rare, so their plans are old: made when the table was small and a scan of all of it was cheap, and kept
// until the statistics change, while it grows by thousands of rows a second. Hence they look up one id at a time, in a
// subselect that gives the whole key, and the transaction forbids the scan. (With message_id = any ($2) PostgreSQL may still walk
// over all ids of the consumer.)
const byKeySQL = `select set_config('enable_seqscan', 'off', true)`

const forgetSQL = `
delete from inbox where ctid = any (array(
    select (select ctid from inbox where consumer = $1 and message_id = id) from unnest($2::text[]) as failed (id)))`

const compareSQL = `
select id, (select payload_hash from inbox where consumer = $1 and message_id = id) from unnest($2::text[]) as seen (id)`

// queueExceptions queues what ends a transaction with messages that were not simply new and done.
//
// The ids of failed ones are removed: they were not done, so they must not count as seen. Those that were seen before are compared
// with what was seen then; one with another payload gets its error. (A row that retention has removed just now cannot be
// compared any more, but the message was seen.)
func queueExceptions[C any](b *pgx.Batch, consumer string, failed, seen []*item[C]) {
	if len(failed)+len(seen) > 0 {
		b.Queue(byKeySQL)
	}
	if len(failed) > 0 {
		b.Queue(forgetSQL, consumer, idsOf(failed))
	}
	if len(seen) == 0 {
		return
	}
	byID := make(map[string]*item[C], len(seen))
	for _, it := range seen {
		byID[it.message.MessageID] = it
	}
	b.Queue(compareSQL, consumer, idsOf(seen)).Query(func(rows pgx.Rows) error {
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

func idsOf[C any](items []*item[C]) []string {
	ids := make([]string, len(items))
	for i, it := range items {
		ids[i] = it.message.MessageID
	}
	return ids
}

func otherPayload(m *messaging.Message) error {
	return retry.Errorf(retry.Invariant, "message %s was seen before with another payload", m.MessageID)
}

// panicError makes an error of a panic. The stack is the only trace of where it happened.
func panicError(cause any) error {
	return retry.Errorf(retry.Unknown, "panic: %v\n%s", cause, debug.Stack())
}
