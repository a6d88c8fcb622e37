package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"example.com/banking/pkg/pipeline"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The store as HTTP uses it. What messages do to the same tables is in work.go.

var (
	errNoAccount = errors.New("no such account")
	errNoLeg     = errors.New("no such leg")
	// errOtherAccount is the answer to opening an account under an id that is taken by another one.
	errOtherAccount = errors.New("the id belongs to an account that was opened otherwise")
)

type store struct{ pool *pgxpool.Pool }

// storedAccount is an account with what only the store knows of it.
type storedAccount struct {
	ledger.Account
	CreatedAt time.Time
}

// One statement, so that account and entries are there together or not at all. The conflict clause waits for a
// concurrent opening under the same id and then does nothing, which the caller sees by the missing row.
const insertAccount = `
with opened as (
    insert into accounts (id, owner, currency, status, balance_minor, opening_minor, created_at)
    values ($1, $2, $3, $4, $5, $5, $6)
    on conflict (id) do nothing
    returning id, created_at
), posted as (
    insert into entries (id, ledger, account_id, kind, amount_minor, currency, posted_at)
    select e.id, e.ledger, case e.ledger when 'CUSTOMER' then opened.id end, e.kind, e.amount_minor, $3, opened.created_at
    from opened, unnest($7::uuid[], $8::text[], $9::text[], $10::bigint[]) as e (id, ledger, kind, amount_minor)
)
select created_at from opened`

const selectOpening = accountColumns + `, opening_minor from accounts where id = $1`

// openAccount opens an account with its opening balance in minor units, and says whether it is new. When the id is
// known already it answers the account as it is now, or errOtherAccount if it was opened with anything else.
func (s *store) openAccount(ctx context.Context, id uuid.UUID, owner, currency string, opening int64, now time.Time) (storedAccount, bool, error) {
	account, entries := ledger.OpenAccount(id, owner, currency, opening)
	var rows entryRows
	if err := rows.add(entries); err != nil {
		return storedAccount{}, false, fmt.Errorf("open account: %w", err)
	}
	opened := storedAccount{Account: account}
	err := s.pool.QueryRow(ctx, insertAccount, id, owner, currency, account.Status, opening, now,
		rows.ids, rows.books, rows.movements, rows.amounts).Scan(&opened.CreatedAt)
	if err == nil {
		return opened, true, nil
	}
	if !errors.Is(err, pgx.ErrNoRows) {
		return storedAccount{}, false, fmt.Errorf("open account: %w", err)
	}

	var before int64
	found, err := scanAccount(s.pool.QueryRow(ctx, selectOpening, id), &before)
	if err != nil {
		return storedAccount{}, false, fmt.Errorf("read account opened before: %w", err)
	}
	if found.Owner != owner || found.Currency != currency || before != opening {
		return storedAccount{}, false, errOtherAccount
	}
	return found, false, nil
}

const accountColumns = `select id, owner, currency, status, balance_minor, may_return_minor, created_at`

const selectAccount = accountColumns + ` from accounts where id = $1`

// scanAccount scans accountColumns and, behind them, more.
func scanAccount(row pgx.Row, more ...any) (storedAccount, error) {
	var a storedAccount
	into := []any{&a.ID, &a.Owner, &a.Currency, &a.Status, &a.Balance, &a.MayReturn, &a.CreatedAt}
	err := row.Scan(append(into, more...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoAccount
	}
	return a, err
}

func (s *store) account(ctx context.Context, id uuid.UUID) (storedAccount, error) {
	account, err := scanAccount(s.pool.QueryRow(ctx, selectAccount, id))
	if err != nil {
		return storedAccount{}, fmt.Errorf("read account: %w", err)
	}
	return account, nil
}

const selectAccounts = accountColumns + ` from accounts
where (created_at, id) < ($1, $2) order by created_at desc, id desc limit $3`

// accounts reads one page, newest first, and one row more if there is one.
func (s *store) accounts(ctx context.Context, page service.Page) ([]storedAccount, error) {
	from := pageStart(page)
	rows, _ := s.pool.Query(ctx, selectAccounts, from.Time, from.ID, page.Limit+1)
	accounts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (storedAccount, error) { return scanAccount(row) })
	if err != nil {
		return nil, fmt.Errorf("list accounts: %w", err)
	}
	return accounts, nil
}

// pageStart is the row behind which a page of a list begins that is read from the newest row down. Without a cursor it lies behind
// every row there can be, so that the first page is read by the same statement and plan as all others.
func pageStart(page service.Page) service.Cursor {
	if page.After != nil {
		return *page.After
	}
	return service.Cursor{Time: time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC), ID: uuid.Max}
}

// postedEntry is one line of a statement.
type postedEntry struct {
	ID         uuid.UUID
	TransferID uuid.NullUUID
	Kind       ledger.Movement
	Amount     int64
	PostedAt   time.Time
}

// An account's entries are made under the lock of its row, so the time-ordered ids are in the order of posting.
const selectStatement = `
select id, transfer_id, kind, amount_minor, posted_at from entries
where account_id = $1 and ledger = 'CUSTOMER' and id < $2 order by id desc limit $3`

const existsAccount = `select exists (select from accounts where id = $1)`

// statement reads one page of an account's entries, newest first, and one row more if there is one.
func (s *store) statement(ctx context.Context, account uuid.UUID, page service.Page) ([]postedEntry, error) {
	rows, _ := s.pool.Query(ctx, selectStatement, account, pageStart(page).ID, page.Limit+1)
	entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[postedEntry])
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if len(entries) > 0 {
		return entries, nil
	}
	var exists bool
	if err := s.pool.QueryRow(ctx, existsAccount, account).Scan(&exists); err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	if !exists {
		return nil, fmt.Errorf("read statement: %w", errNoAccount)
	}
	return nil, nil
}

// The row's lock makes the new status and a debit that is under way see each other: the one that comes second finds what the first
// one left.
const (
	lockAccount  = selectAccount + ` for update`
	updateStatus = `update accounts set status = $2 where id = $1`
)

// change applies a rule of the ledger to an account, under its lock, and stores the status.
func (s *store) change(ctx context.Context, id uuid.UUID, rule func(*ledger.Account) error) (storedAccount, error) {
	var account storedAccount
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var err error
		if account, err = scanAccount(tx.QueryRow(ctx, lockAccount, id)); err != nil {
			return err
		}
		before := account.Status
		if err := rule(&account.Account); err != nil || account.Status == before {
			return err
		}
		_, err = tx.Exec(ctx, updateStatus, id, account.Status)
		return err
	})
	if err != nil {
		return storedAccount{}, fmt.Errorf("change account: %w", err)
	}
	return account, nil
}

const selectLeg = legColumns + `, updated_at from legs where id = $1`

// leg answers what is known of a transfer and when it last changed.
func (s *store) leg(ctx context.Context, transfer uuid.UUID) (ledger.Leg, time.Time, error) {
	var updated time.Time
	leg, err := scanLeg(s.pool.QueryRow(ctx, selectLeg, transfer), &updated)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNoLeg
	}
	if err != nil {
		return ledger.Leg{}, time.Time{}, fmt.Errorf("read leg: %w", err)
	}
	return leg, updated, nil
}

const legColumns = `select id, state, coalesce(reason, ''), source_account_id, destination_account_id, amount_minor, currency`

// scanLeg scans legColumns and, behind them, more.
func scanLeg(row pgx.Row, more ...any) (ledger.Leg, error) {
	var leg ledger.Leg
	into := []any{&leg.Transfer, &leg.State, &leg.Reason, &leg.Source, &leg.Destination, &leg.Money.Minor, &leg.Money.Currency}
	err := row.Scan(append(into, more...)...)
	return leg, err
}

// currencySums is the ledger of one currency. The sums may be larger than an int64: only a single balance is bounded.
type currencySums struct {
	Currency                           string
	Customers, InTransit, Funding, Sum *big.Int
}

// One statement is one snapshot. The three sides come from three tables, written by different statements, so that their sum says
// something: the sum of all entries would be zero by the way they are made. Sums of bigint are numeric, hence exact.
const selectLedger = `
select currency, sum(customers)::text, sum(in_transit)::text, sum(funding)::text, sum(customers + in_transit + funding)::text
from (
    select currency, sum(balance_minor) as customers, 0 as in_transit, 0 as funding from accounts group by currency
    union all
    select currency, 0, sum(amount_minor), 0 from legs where state in ('DEBITED', 'CREDIT_REJECTED') group by currency
    union all
    select currency, 0, 0, sum(amount_minor) from entries where ledger = 'FUNDING' group by currency
) as sides
group by currency order by currency`

func (s *store) ledger(ctx context.Context) ([]currencySums, error) {
	var sums []currencySums
	err := pipeline.Scan(ctx, s.pool, selectLedger, func(rows pgx.Rows) (err error) {
		sums, err = pgx.CollectRows(rows, scanSums)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sum up ledger: %w", err)
	}
	return sums, nil
}

func scanSums(row pgx.CollectableRow) (currencySums, error) {
	var currency string
	var texts [4]string
	if err := row.Scan(&currency, &texts[0], &texts[1], &texts[2], &texts[3]); err != nil {
		return currencySums{}, err
	}
	var numbers [4]*big.Int
	for i, text := range texts {
		number, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return currencySums{}, fmt.Errorf("sum of %s is no integer: %q", currency, text)
		}
		numbers[i] = number
	}
	return currencySums{currency, numbers[0], numbers[1], numbers[2], numbers[3]}, nil
}
