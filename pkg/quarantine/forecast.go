package quarantine

import (
	"context"
	"fmt"
	"slices"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
)

// Forecasts: what a replay of a message will do, as far as can be told now.
const (
	WillRun         = "RUN"              // it was never done here
	WillBeAbsorbed  = "DUPLICATE"        // it was done before: the inbox takes it for a copy
	WillContradict  = "CONTRADICTION"    // another message of this id was done: it comes back with INVARIANT
	WillBeInvalid   = "INVALID"          // nobody can read it: it comes back with VALIDATION
	WillFindNothing = "UNKNOWN_TRANSFER" // its transfer does not exist (yet): it comes back with NOT_FOUND
	RunsElsewhere   = "ELSEWHERE"        // another service takes it; what it will do with it cannot be told here
)

const inboxSQL = `
select n, payload_hash
from unnest($1::text[], $2::text[]) with ordinality as m (consumer, message_id, n)
     cross join lateral (select payload_hash from inbox where inbox.consumer = m.consumer and inbox.message_id = m.message_id) as seen`

// inInbox answers for each message whether its consumer has done it: 0 no, 1 yes, -1 it has done another message of this id.
func (h *hold) inInbox(ctx context.Context, work []*task) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, sqlTime)
	defer cancel()
	consumers, ids := make([]string, len(work)), make([]string, len(work))
	hashes := make([][32]byte, len(work))
	for i, t := range work {
		consumers[i], ids[i] = t.queue, t.MessageID
		var err error
		if hashes[i], err = t.envelope.PayloadHash(); err != nil {
			ids[i] = "" // which no inbox has
		}
	}
	rows, err := h.conn.Query(ctx, inboxSQL, consumers, ids)
	if err != nil {
		return nil, fmt.Errorf("ask the inbox: %w", err)
	}
	found := make([]int, len(work))
	var n int64
	var hash []byte
	if _, err := pgx.ForEachRow(rows, []any{&n, &hash}, func() error {
		if found[n-1] = -1; slices.Equal(hash, hashes[n-1][:]) {
			found[n-1] = 1
		}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("ask the inbox: %w", err)
	}
	return found, nil
}

// forecast says of each message what its replay will do.
func (q *Quarantine) forecast(ctx context.Context, h *hold, work []*task) error {
	var ours []*task
	for _, t := range work {
		switch {
		case t.Outcome == refused:
		case t.invalid != nil:
			t.Forecast = WillBeInvalid
		case !slices.Contains(q.Consumed, t.queue):
			t.Forecast = RunsElsewhere
		case q.Parse != nil && q.Parse(&messaging.Message{Envelope: t.envelope, Queue: t.queue, Headers: t.delivery.Headers}) != nil:
			t.Forecast = WillBeInvalid
		default:
			ours = append(ours, t)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	done, err := h.inInbox(ctx, ours)
	if err != nil {
		return err
	}
	var fresh []*task
	for i, t := range ours {
		switch done[i] {
		case 1:
			t.Forecast = WillBeAbsorbed
		case -1:
			t.Forecast = WillContradict
		default:
			t.Forecast = WillRun
			fresh = append(fresh, t)
		}
	}
	return q.forecastTransfers(ctx, fresh)
}

func (q *Quarantine) forecastTransfers(ctx context.Context, fresh []*task) error {
	if q.KnownTransfers == nil || len(fresh) == 0 {
		return nil
	}
	ids := make([]string, len(fresh))
	for i, t := range fresh {
		ids[i] = t.TransferID
	}
	ctx, cancel := context.WithTimeout(ctx, sqlTime)
	defer cancel()
	known, err := q.KnownTransfers(ctx, ids)
	if err != nil {
		return fmt.Errorf("ask for the transfers: %w", err)
	}
	for _, t := range fresh {
		if !known[t.TransferID] {
			t.Forecast = WillFindNothing
		}
	}
	return nil
}
