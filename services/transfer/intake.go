package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	intakeBatch  = 64               // requests in one statement at most
	intakeAtOnce = 2                // statements under way: one is collected while another commits
	intakeTime   = 10 * time.Second // for one statement
	intakeApart  = 4                // requests at most that wait in the database for a key which another transaction holds
)

// intake stores what POST /transfers asks for. A request that comes when nothing is under way is stored at once, alone. Those that come
// while statements are under way wait for one of them to end and share the next: so a busy service commits once for many requests,
// and an idle one lets nobody wait for company.
type intake struct {
	pool   *pgxpool.Pool
	store  *store
	outbox *outbox.Outbox
	apart  chan struct{} // one for each that waits for a key

	mu      sync.Mutex
	waiting []*asking
	atWork  int
}

func newIntake(pool *pgxpool.Pool, s *store, o *outbox.Outbox) *intake {
	return &intake{pool: pool, store: s, outbox: o, apart: make(chan struct{}, intakeApart)}
}

// asking is a request on its way into the database.
type asking struct {
	accepted
	ctx    context.Context // the request's trace; its end does not end what is stored for others as well
	stored bool            // false: its key had been used before
	err    error
	done   chan struct{}
}

// errKeyReused is returned when an idempotency key was used for another body.
var errKeyReused = errors.New("the idempotency key was used for another transfer")

// accept stores a new transfer and the message that starts it, which is on its way when it returns. If the key had been used for the
// same transfer before, nothing is stored and the transfer of that time is returned as it is now; for another one, errKeyReused is.
func (i *intake) accept(ctx context.Context, a accepted) (t transfer, replayed bool, err error) {
	request := &asking{accepted: a, ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
	i.enter(request)
	select {
	case <-request.done:
	case <-ctx.Done():
		err := ctx.Err()
		if i.leave(request) {
			err = service.Repeatable(err)
		}
		return transfer{}, false, fmt.Errorf("accept transfer: %w", err)
	}
	switch {
	case request.err != nil:
		return transfer{}, false, fmt.Errorf("accept transfer: %w", request.err)
	case !request.stored:
		t, err := i.store.replay(ctx, *a.key, a.asked.hash())
		return t, true, err
	}
	return transfer{
		ID: a.id, Status: lifecycle.StatusRequested,
		Source: a.asked.Source, Destination: a.asked.Destination, Money: a.asked.Money, Reference: a.asked.Reference,
		CreatedAt: a.createdAt, UpdatedAt: a.createdAt,
		Timeline: []timelineEntry{{Fact: lifecycle.Requested, At: a.createdAt, MessageID: a.request.ID}},
	}, false, nil
}

func (i *intake) enter(request *asking) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = append(i.waiting, request)
	if i.atWork < intakeAtOnce {
		i.atWork++
		go i.work()
	}
}

// leave takes back a request whose client has gone or was told that it failed, and says whether it could. One whose statement is under way
// may be stored all the same; one that only waits must not be, minutes later, when the database is back: he may have asked again
// by then.
func (i *intake) leave(request *asking) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.waiting, request)
	if at < 0 {
		return false
	}
	i.waiting = slices.Delete(i.waiting, at, at+1)
	return true
}

// work stores what waits, until nothing does.
func (i *intake) work() {
	for {
		i.mu.Lock()
		n := min(len(i.waiting), intakeBatch)
		requests := slices.Clone(i.waiting[:n])
		i.waiting = slices.Delete(i.waiting, 0, n)
		if n == 0 {
			i.atWork--
		}
		i.mu.Unlock()
		if n == 0 {
			return
		}
		i.storeAll(requests[0].ctx, requests)
	}
}

// storeAll stores requests together. If that fails, and not because the database is away, each is tried alone, so that none fails
// because of its company. One that meets a key which another transaction holds waits for it apart: nobody else waits with it.
func (i *intake) storeAll(ctx context.Context, requests []*asking) {
	ctx, cancel := context.WithTimeout(ctx, intakeTime)
	defer cancel()
	err := i.insert(ctx, requests, true)
	switch {
	case err != nil && len(requests) > 1 && !service.TransientDB(err):
		var alone sync.WaitGroup
		for _, request := range requests {
			alone.Go(func() { i.storeAll(ctx, []*asking{request}) })
		}
		alone.Wait()
	case lockTimedOut(err):
		go i.storeApart(requests[0])
	default:
		for _, request := range requests {
			request.end(err)
		}
	}
}

// storeApart stores one request, however long the transaction takes that holds its key. Few may wait in this way at once: each needs a
// connection, and the consumer has to have some.
func (i *intake) storeApart(request *asking) {
	ctx, cancel := context.WithTimeout(request.ctx, intakeTime)
	defer cancel()
	select {
	case i.apart <- struct{}{}:
		defer func() { <-i.apart }()
		request.end(i.insert(ctx, []*asking{request}, false))
	case <-ctx.Done():
		request.end(ctx.Err())
	}
}

// end tells whoever waits for the request what became of it.
func (r *asking) end(err error) {
	r.err = err
	close(r.done)
}

// lockTimedOut says that a statement met a lock, in practice that of a key, which another transaction holds.
func lockTimedOut(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && answer.Code == "55P03"
}

// One statement for all of it, so that it costs one round trip and one commit. Of several requests with one key the first
// inserts the row of the key; the others wait for its commit in "on conflict", insert nothing anywhere, and learn that from
// what comes back. Keys are inserted in their order, so that two statements never wait for each other.
const acceptTransfers = `
with asked as (
    select * from unnest($1::uuid[], $2::text[], $3::bytea[], $4::uuid[], $5::uuid[], $6::bigint[], $7::text[], $8::text[], $9::timestamptz[],
                         $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::boolean[])
    as a (id, key, request_hash, source, destination, amount, currency, reference, at,
          message_id, type, routing_key, body, correlation_id, trace_parent, mandatory)
), keyed as (
    insert into idempotency_keys (key, request_hash, transfer_id)
    select key, request_hash, id from asked where key is not null order by key
    on conflict (key) do nothing
    returning transfer_id
), accepted as (
    insert into transfers (id, source_account_id, destination_account_id, amount_minor, currency, reference, status, created_at, updated_at)
    select id, source, destination, amount, currency, reference, 'REQUESTED', at, at
    from asked where key is null or id in (select transfer_id from keyed)
    returning id
), told as (
    insert into facts (transfer_id, fact, at, message_id)
    select id, 'REQUESTED', at, message_id from asked where id in (select id from accepted)
)
insert into outbox (message_id, type, routing_key, body, correlation_id, trace_parent, mandatory, occurred_at, next_attempt_at)
select message_id, type, routing_key, body, correlation_id, trace_parent, mandatory, at, clock_timestamp() + $17::interval
from asked where id in (select id from accepted)
returning id, message_id`

// A request whose key is being stored by somebody else is to wait for that, but not to let others wait.
const waitBriefly = `select set_config('lock_timeout', '20ms', true)`

// insert stores requests in one transaction, and sends their messages. For a key that another transaction holds it waits briefly, or until
// that ends.
func (i *intake) insert(ctx context.Context, requests []*asking, briefly bool) error {
	messages := make([]outbox.Message, len(requests))
	byMessage := make(map[string]*asking, len(requests))
	for n, r := range requests {
		r.stored = false
		messages[n], byMessage[r.request.ID] = r.request, r
	}
	queued := i.outbox.Prepare(messages)
	b := &pgx.Batch{}
	if briefly && slices.ContainsFunc(requests, func(r *asking) bool { return r.key != nil }) {
		b.Queue(waitBriefly)
	}
	b.Queue(acceptTransfers, append(columnsOf(requests), queued.Hold())...).Query(func(rows pgx.Rows) error {
		var id int64
		var messageID string
		_, err := pgx.ForEachRow(rows, []any{&id, &messageID}, func() error {
			byMessage[messageID].stored = true
			queued.Keep(id, messageID)
			return nil
		})
		return err
	})
	if err := i.pool.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	queued.Committed()
	return nil
}

// columnsOf turns requests into the arrays that acceptTransfers takes, in the order of its columns.
func columnsOf(requests []*asking) []any {
	return []any{
		column(requests, func(r *asking) uuid.UUID { return r.id }),
		column(requests, func(r *asking) *string { return r.key }),
		column(requests, (*asking).keyedHash),
		column(requests, func(r *asking) uuid.UUID { return r.asked.Source }),
		column(requests, func(r *asking) uuid.UUID { return r.asked.Destination }),
		column(requests, func(r *asking) int64 { return r.asked.Money.Minor }),
		column(requests, func(r *asking) string { return r.asked.Money.Currency }),
		column(requests, func(r *asking) *string { return r.asked.Reference }),
		column(requests, func(r *asking) time.Time { return r.createdAt }),

		column(requests, func(r *asking) string { return r.request.ID }),
		column(requests, func(r *asking) string { return r.request.Type }),
		column(requests, func(r *asking) string { return r.request.RoutingKey }),
		column(requests, func(r *asking) string { return string(r.request.Body) }),
		column(requests, func(r *asking) string { return r.request.CorrelationID }),
		column(requests, func(r *asking) string { return r.request.TraceParent }),
		column(requests, func(r *asking) bool { return r.request.Mandatory }),
	}
}

// column is what of gives for each request.
func column[T any](requests []*asking, of func(*asking) T) []T {
	values := make([]T, len(requests))
	for i, r := range requests {
		values[i] = of(r)
	}
	return values
}

// keyedHash is what a key is compared by when it comes again; nil without a key.
func (r *asking) keyedHash() []byte {
	if r.key == nil {
		return nil
	}
	return r.asked.hash()
}
