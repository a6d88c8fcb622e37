package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// command is one request of transfer, read and complete.
type command struct {
	kind    ledger.Kind
	request contract.Request
}

// work is the unit of work of one batch of requests. However many requests a batch holds, it is a handful of statements: legs
// and accounts are locked and read by one each, the ledger decides in memory, and what changed is written by one
// statement per table. An account that a batch names fifty times is locked, read and written once.
//
// Lock order, the same everywhere: inbox rows (pkg/inbox), legs by id, accounts by id. Each request locks one
// account only, see ledger.AccountOf.
type work struct {
	clock    func() time.Time
	at       time.Time // when the batch is posted; zero before the first request
	legs     map[uuid.UUID]legRow
	accounts map[uuid.UUID]accountRow
	entries  entryRows
}

type legRow struct {
	ledger.Leg
	stored, changed bool
}

type accountRow struct {
	ledger.Account
	changed bool
}

func newWork(clock func() time.Time) *work {
	return &work{clock: clock, legs: map[uuid.UUID]legRow{}, accounts: map[uuid.UUID]accountRow{}}
}

// The sort stands below the locking, so rows are locked in the order of their ids and two batches never wait for each other in a
// circle. Each locking read is a statement of its own: it sees what the transactions have left that it waited for.
const (
	lockLegs     = legColumns + ` from legs where id = any($1) order by id for update`
	lockAccounts = `
select id, currency, status, balance_minor, may_return_minor from accounts where id = any($1) order by id for update`
)

// Computes anew what may still return to an account, where the stored bound stands in the way of what is to be credited; see
// ledger.Account.MayReturn. It runs after the account is locked, so no debit of it is under way; a credit elsewhere that
// is not committed yet makes the result too large, which is safe.
const selectMayReturn = `
select a.id, least(a.may_return_minor,
    (select coalesce(sum(l.amount_minor), 0) from legs l where l.source_account_id = a.id and l.state in ('DEBITED', 'CREDIT_REJECTED')))::bigint
from accounts a join unnest($1::uuid[], $2::bigint[]) as wanted (id, amount_minor) on a.id = wanted.id
where a.id = any($1) and a.balance_minor + a.may_return_minor > 9223372036854775807 - wanted.amount_minor`

// Load queues the locking reads of everything the requests concern.
func (w *work) Load(b *pgx.Batch, commands []command) {
	transfers := map[uuid.UUID]bool{}
	credits := map[uuid.UUID]int64{} // by account: what the batch would add, at most an int64
	for _, c := range commands {
		transfers[c.request.TransferID] = true
		account := ledger.AccountOf(c.kind, c.request)
		if c.kind == ledger.CreditRequested {
			credits[account] += min(c.request.Money.Minor, math.MaxInt64-credits[account])
		} else {
			credits[account] += 0
		}
	}
	accounts := sortedIDs(credits)
	var amounts []int64
	var total int64
	for _, id := range accounts {
		amounts = append(amounts, credits[id])
		total = max(total, credits[id])
	}
	b.Queue(lockLegs, sortedIDs(transfers)).Query(w.keepLegs)
	b.Queue(lockAccounts, accounts).Query(w.keepAccounts)
	if total > 0 {
		b.Queue(selectMayReturn, accounts, amounts).Query(w.keepMayReturn)
	}
}

func (w *work) keepLegs(rows pgx.Rows) error {
	for rows.Next() {
		leg, err := scanLeg(rows)
		if err != nil {
			return fmt.Errorf("read leg: %w", err)
		}
		w.legs[leg.Transfer] = legRow{Leg: leg, stored: true}
	}
	return rows.Err()
}

func (w *work) keepAccounts(rows pgx.Rows) error {
	for rows.Next() {
		var a accountRow
		if err := rows.Scan(&a.ID, &a.Currency, &a.Status, &a.Balance, &a.MayReturn); err != nil {
			return fmt.Errorf("read account: %w", err)
		}
		w.accounts[a.ID] = a
	}
	return rows.Err()
}

func (w *work) keepMayReturn(rows pgx.Rows) error {
	for rows.Next() {
		var id uuid.UUID
		var mayReturn int64
		if err := rows.Scan(&id, &mayReturn); err != nil {
			return fmt.Errorf("read what may return: %w", err)
		}
		a := w.accounts[id]
		a.MayReturn = mayReturn
		w.accounts[id] = a
	}
	return rows.Err()
}

// Apply lets the ledger decide one request on copies, and keeps them once the answer is made: an error leaves nothing behind.
func (w *work) Apply(m *messaging.Message, c command) ([]outbox.Message, error) {
	if w.at.IsZero() {
		// Not earlier: the rows are locked now, so times in a statement rise like the ids of its entries.
		w.at = w.clock()
	}
	leg := w.legs[c.request.TransferID]
	row, exists := w.accounts[ledger.AccountOf(c.kind, c.request)]
	var account *ledger.Account
	if exists {
		account = &row.Account
	}
	outcome, err := leg.Handle(c.kind, c.request, account)
	if err != nil {
		return nil, err
	}
	answer, err := w.answer(m, c, outcome.Message)
	if err != nil {
		return nil, err
	}
	if err := w.entries.add(outcome.Entries); err != nil {
		return nil, err
	}
	if outcome.Changed {
		leg.changed = true
		w.legs[leg.Transfer] = leg
	}
	if len(outcome.Entries) > 0 {
		row.changed = true
		w.accounts[row.ID] = row
	}
	return []outbox.Message{answer}, nil
}

func (w *work) answer(m *messaging.Message, c command, said contract.Message) (outbox.Message, error) {
	data, err := said.Data.Encode()
	if err != nil {
		return outbox.Message{}, fmt.Errorf("encode %s: %w", said.Type, err)
	}
	return outbox.NewMessage(outbox.Draft{
		ID:            said.ID.String(),
		Type:          said.Type,
		CorrelationID: c.request.TransferID.String(),
		CausationID:   m.MessageID,
		OccurredAt:    w.at,
		Data:          data,
		TraceParent:   service.TraceParent(service.WithTraceParent(context.Background(), m.TraceParent)),
	})
}

// The inserts are plain on purpose. When another transaction has made the same leg meanwhile (a refund that came together with
// the debit), the key's violation undoes the whole transaction, which is then run again and finds that leg; see
// classify. A conflict clause would go on instead, and commit entries for a leg that is somebody else's.
//
// The updates name the ids twice: the join alone lets a plan that was made while the tables were small read all of them for ever.
const (
	insertLegs = `
insert into legs (id, state, reason, source_account_id, destination_account_id, amount_minor, currency, updated_at)
select id, state, nullif(reason, ''), source, destination, amount_minor, currency, $8
from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::text[])
    as l (id, state, reason, source, destination, amount_minor, currency)`

	updateLegs = `
update legs set state = l.state, reason = nullif(l.reason, ''), updated_at = $4
from unnest($1::uuid[], $2::text[], $3::text[]) as l (id, state, reason)
where legs.id = l.id and legs.id = any($1)`

	updateBalances = `
update accounts set balance_minor = a.balance_minor, may_return_minor = a.may_return_minor
from unnest($1::uuid[], $2::bigint[], $3::bigint[]) as a (id, balance_minor, may_return_minor)
where accounts.id = a.id and accounts.id = any($1)`

	insertEntries = `
insert into entries (id, ledger, account_id, transfer_id, kind, amount_minor, currency, posted_at)
select id, ledger, account_id, transfer_id, kind, amount_minor, currency, $8
from unnest($1::uuid[], $2::text[], $3::uuid[], $4::uuid[], $5::text[], $6::bigint[], $7::text[])
    as e (id, ledger, account_id, transfer_id, kind, amount_minor, currency)`
)

// Save queues the writes. Balances are written as they are, not as differences: their rows are locked since they were read.
func (w *work) Save(b *pgx.Batch) {
	var made, moved legRows
	for _, id := range sortedIDs(w.legs) {
		switch leg := w.legs[id]; {
		case leg.changed && leg.stored:
			moved.add(leg.Leg)
		case leg.changed:
			made.add(leg.Leg)
		}
	}
	if len(made.ids) > 0 {
		b.Queue(insertLegs, made.ids, made.states, made.reasons, made.sources, made.destinations, made.amounts, made.currencies, w.at)
	}
	if len(moved.ids) > 0 {
		b.Queue(updateLegs, moved.ids, moved.states, moved.reasons, w.at)
	}

	var ids []uuid.UUID
	var balances, mayReturn []int64
	for _, id := range sortedIDs(w.accounts) {
		if a := w.accounts[id]; a.changed {
			ids, balances, mayReturn = append(ids, id), append(balances, a.Balance), append(mayReturn, a.MayReturn)
		}
	}
	if len(ids) > 0 {
		b.Queue(updateBalances, ids, balances, mayReturn)
	}

	if e := &w.entries; len(e.ids) > 0 {
		b.Queue(insertEntries, e.ids, e.books, e.accounts, e.transfers, e.movements, e.amounts, e.currencies, w.at)
	}
}

func sortedIDs[V any](byID map[uuid.UUID]V) []uuid.UUID {
	return slices.SortedFunc(maps.Keys(byID), func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
}

// classify recognises the two constraints that guard against what another transaction did meanwhile.
func classify(err error) (retry.Class, bool) {
	var broken *pgconn.PgError
	if !errors.As(err, &broken) {
		return "", false
	}
	switch broken.ConstraintName {
	case "legs_pkey": // the leg was made by a concurrent transaction: run again, and it is found
		return retry.Conflict, true
	case "entries_once": // a movement stands in the ledger that no leg knows of
		return retry.Invariant, true
	}
	return "", false
}
