package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// store is what HTTP reads and writes. How events change transfers is in work.go.
type store struct {
	pool *pgxpool.Pool
}

// transfer is a transfer as the outside sees it.
type transfer struct {
	ID          uuid.UUID
	Status      lifecycle.Status
	Source      uuid.UUID
	Destination uuid.UUID
	Money       contract.Money
	Reference   *string
	Reason      *string
	CreatedAt   time.Time
	UpdatedAt   time.Time
	Timeline    []timelineEntry // in the order in which the facts became known
}

type timelineEntry struct {
	Fact      lifecycle.Fact
	At        time.Time
	MessageID string
}

// accepted is a transfer that is to be stored, with the key it was asked for under, if any, and the message that starts it.
type accepted struct {
	id        uuid.UUID
	asked     newTransfer
	key       *string
	createdAt time.Time
	request   outbox.Message
}

// newAccepted gives a transfer its id and its first message.
func newAccepted(ctx context.Context, asked newTransfer, key *string) (accepted, error) {
	id, createdAt, err := newID()
	if err != nil {
		return accepted{}, err
	}
	_, message := lifecycle.Request(id, asked.Source, asked.Destination, asked.Money)
	request, err := outgoing(message, "", service.TraceParent(ctx), createdAt)
	if err != nil {
		return accepted{}, err
	}
	return accepted{id: id, asked: asked, key: key, createdAt: createdAt, request: request}, nil
}

// The timeline comes with its transfer in one statement, hence of one snapshot: it never shows a fact that the status does
// not know yet.
const selectTransfer = `
select t.id, t.status, t.source_account_id, t.destination_account_id, t.amount_minor, t.currency, t.reference, t.reason,
       t.created_at, t.updated_at, f.facts, f.ats, f.message_ids
from transfers t
cross join lateral (
    select array_agg(fact) as facts, array_agg(at) as ats, array_agg(message_id) as message_ids
    from facts where transfer_id = t.id
) f `

const (
	selectByID  = selectTransfer + `where t.id = $1`
	selectByKey = selectTransfer + `join idempotency_keys k on k.transfer_id = t.id where k.key = $1 and k.request_hash = $2`
)

// find reads one transfer; pgx.ErrNoRows says that there is none.
func (s *store) find(ctx context.Context, id uuid.UUID) (transfer, error) {
	return s.one(ctx, "find transfer", selectByID, id)
}

func (s *store) replay(ctx context.Context, key string, hash []byte) (transfer, error) {
	t, err := s.one(ctx, "replay transfer", selectByKey, key, hash)
	if errors.Is(err, pgx.ErrNoRows) {
		return transfer{}, errKeyReused
	}
	return t, err
}

func (s *store) one(ctx context.Context, operation, query string, args ...any) (transfer, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return transfer{}, fmt.Errorf("%s: %w", operation, err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, scanTransfer)
	if err != nil {
		return transfer{}, fmt.Errorf("%s: %w", operation, err)
	}
	return t, nil
}

func scanTransfer(row pgx.CollectableRow) (transfer, error) {
	var t transfer
	var facts, messageIDs []string
	var ats []time.Time
	err := row.Scan(&t.ID, &t.Status, &t.Source, &t.Destination, &t.Money.Minor, &t.Money.Currency, &t.Reference, &t.Reason,
		&t.CreatedAt, &t.UpdatedAt, &facts, &ats, &messageIDs)
	if err != nil {
		return transfer{}, err
	}
	t.Timeline = make([]timelineEntry, len(facts))
	for i, name := range facts {
		fact, ok := lifecycle.ParseFact(name)
		if !ok {
			return transfer{}, fmt.Errorf("transfer %s has the unknown fact %q", t.ID, name)
		}
		t.Timeline[i] = timelineEntry{Fact: fact, At: ats[i], MessageID: messageIDs[i]}
	}
	slices.SortFunc(t.Timeline, func(a, b timelineEntry) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return int(a.Fact) - int(b.Fact)
	})
	return t, nil
}

// Newest first is descending by id: ids are UUIDv7. An open status is looked for among the open transfers, of which there
// are few; a terminal one is a range of the index.
const (
	listAll   = selectTransfer + `where t.id < $1 order by t.id desc limit $2`
	listOpen  = selectTransfer + `where t.outcome is null and t.status = $3 and t.id < $1 order by t.id desc limit $2`
	listEnded = selectTransfer + `where t.outcome = $3 and t.id < $1 order by t.id desc limit $2`
)

// list reads up to limit transfers, newest first, that are older than before and, unless status is "", of that status.
func (s *store) list(ctx context.Context, status lifecycle.Status, before uuid.UUID, limit int) ([]transfer, error) {
	query, args := listAll, []any{before, limit}
	if status != "" {
		query, args = listOpen, append(args, string(status))
		if status.Terminal() {
			query = listEnded
		}
	}
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("list transfers: %w", err)
	}
	transfers, err := pgx.CollectRows(rows, scanTransfer)
	if err != nil {
		return nil, fmt.Errorf("list transfers: %w", err)
	}
	return transfers, nil
}

// Open transfers are counted, ended ones are not: their number is the sum of a few increments. So this costs the same however
// many transfers there are. Both are read in one statement, so no transfer is missing or counted twice.
const countTransfers = `
select status, count(*) from transfers where outcome is null group by status
union all
select outcome, sum(n)::bigint from outcome_counts group by outcome`

// summary counts the transfers of each status; those there are none of are not in the map.
func (s *store) summary(ctx context.Context) (map[lifecycle.Status]int64, error) {
	rows, err := s.pool.Query(ctx, countTransfers)
	if err != nil {
		return nil, fmt.Errorf("count transfers: %w", err)
	}
	counts := map[lifecycle.Status]int64{}
	var status lifecycle.Status
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&status, &n}, func() error {
		counts[status] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count transfers: %w", err)
	}
	return counts, nil
}

// newID makes the id of a new transfer and reads from it the time of its creation, so that the order of ids is the order of time.
func newID() (uuid.UUID, time.Time, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.UUID{}, time.Time{}, fmt.Errorf("make transfer id: %w", err)
	}
	return id, idTime(id), nil
}

// idTime is the time inside a UUIDv7: its first 48 bits are Unix milliseconds.
func idTime(id uuid.UUID) time.Time {
	var ms int64
	for _, b := range id[:6] {
		ms = ms<<8 | int64(b)
	}
	return time.UnixMilli(ms).UTC()
}

// firstID is the smallest id that a transfer created at t, or later, can have. No id is older than 1970, where the 48 bits begin; an
// earlier time must not wrap around to the far future, or every transfer would be older than it.
func firstID(t time.Time) uuid.UUID {
	var id uuid.UUID
	ms := max(t.UnixMilli(), 0)
	for i := 5; i >= 0; i-- {
		id[i] = byte(ms)
		ms >>= 8
	}
	return id
}

// lastID is above every id of a transfer.
var lastID = uuid.UUID(bytes.Repeat([]byte{0xff}, 16))

// known answers which of the ids, as they are spelled, are those of a transfer.
func (s *store) known(ctx context.Context, ids []string) (map[string]bool, error) {
	spelled := make(map[uuid.UUID][]string, len(ids))
	wanted := make([]uuid.UUID, 0, len(ids))
	for _, text := range ids {
		if id, ok := contract.ParseID(text); ok {
			spelled[id] = append(spelled[id], text)
			wanted = append(wanted, id)
		}
	}
	rows, err := s.pool.Query(ctx, `select id from transfers where id = any ($1)`, wanted)
	if err != nil {
		return nil, fmt.Errorf("look for transfers: %w", err)
	}
	known := make(map[string]bool, len(ids))
	var id uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		for _, text := range spelled[id] {
			known[text] = true
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for transfers: %w", err)
	}
	return known, nil
}
