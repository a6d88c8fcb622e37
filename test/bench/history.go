package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

// history is a past that a bank did not have: completed transfers with all that the services leave behind, and inbox rows beyond theirs.
// It is written by a few statements instead of being lived, which would take an hour for each few million.
//
// Transfer number i goes from account i to the next one, in a circle, and all are of one amount. When each account has had as many turns as
// every other, all balances are what they were.
type history struct {
	transfers int      // a multiple of the number of accounts
	inbox     int      // rows in each inbox; not fewer than the transfers' own messages
	accounts  []string // ids
	until     time.Time
}

// Each statement gets: $1 transfers, $2 accounts, $3 the first transfer's time in ms. Ids are UUIDv7s as the services make them, one a
// millisecond, with the same "random" rest on both sides: both databases must know the same transfers.
const (
	historyIDs = `
with past as (
    select i, to_timestamp(($3::bigint + i) / 1000.0) as at,
        (lpad(to_hex($3::bigint + i), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid as id,
        ($2::uuid[])[1 + i % cardinality($2::uuid[])] as source, ($2::uuid[])[1 + (i + 1) % cardinality($2::uuid[])] as destination
    from generate_series(0, $1::int - 1) i
)`

	historyLegs = historyIDs + `
insert into legs (id, state, source_account_id, destination_account_id, amount_minor, currency, updated_at)
select id, 'CREDITED', source, destination, 100, 'EUR', at from past`

	historyEntries = historyIDs + `
insert into entries (id, ledger, account_id, transfer_id, kind, amount_minor, currency, posted_at)
select (lpad(to_hex($3::bigint + i), 12, '0') || '7' || lpad(to_hex(n), 3, '0') || '9' || substr(md5(i::text), 1, 15))::uuid,
    ledger, case n when 1 then source when 3 then destination end, id, kind, amount, 'EUR', at
from past, (values (1, 'CUSTOMER', 'DEBIT', -100), (2, 'TRANSIT', 'DEBIT', 100), (3, 'CUSTOMER', 'CREDIT', 100), (4, 'TRANSIT', 'CREDIT', -100))
    as e (n, ledger, kind, amount)`

	historyTransfers = historyIDs + `
insert into transfers (id, source_account_id, destination_account_id, amount_minor, currency, status, created_at, updated_at)
select id, source, destination, 100, 'EUR', 'COMPLETED', at, at from past`

	historyFacts = historyIDs + `
insert into facts (transfer_id, fact, at, message_id)
select id, fact, at, md5(fact || i)::uuid::text from past, unnest(array['REQUESTED', 'DEBITED', 'CREDITED']) fact`

	historyCount = `insert into outcome_counts (outcome, n) values ('COMPLETED', $1)`
)

// Rows of a consumer's inbox: $1 how many, $2 its name, $3 the time of the last. The ids of messages begin with the time of their transfer,
// as contract.Say derives them.
const historyInbox = `
insert into inbox (consumer, message_id, payload_hash, received_at)
select $2, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '8' || substr(md5($2 || i), 1, 3) || '8' || substr(md5($2 || i), 4, 15))::uuid::text,
    sha256(i::text::bytea), at
from generate_series(1, $1::int) i, lateral (select $3::timestamptz - ($1::int - i) * interval '1 millisecond' as at) as its`

// write writes it all, into both databases at once. It is not one transaction: after an error the bank is of no use.
func (h history) write(ctx context.Context, account, transfer *pgxpool.Pool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.writeSide(ctx, account, historyLegs, historyEntries) })
	group.Go(func() error {
		if err := h.writeSide(ctx, transfer, historyTransfers, historyFacts); err != nil {
			return err
		}
		_, err := transfer.Exec(ctx, historyCount, h.transfers)
		return err
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("write the history: %w", err)
	}
	return nil
}

func (h history) writeSide(ctx context.Context, pool *pgxpool.Pool, statements ...string) error {
	if err := h.writeInbox(ctx, pool); err != nil {
		return fmt.Errorf("inbox: %w", err)
	}
	for _, sql := range statements {
		if _, err := pool.Exec(ctx, sql, h.transfers, h.accounts, h.until.UnixMilli()-int64(h.transfers)); err != nil {
			return err
		}
	}
	return nil
}

// writeInbox gives each consumer that the inbox knows an equal share of the rows.
func (h history) writeInbox(ctx context.Context, pool *pgxpool.Pool) error {
	var consumers []string
	if err := pool.QueryRow(ctx, "select coalesce(array_agg(distinct consumer order by consumer), '{}') from inbox").Scan(&consumers); err != nil {
		return err
	}
	if len(consumers) == 0 {
		return errors.New("it is empty: no message has been handled yet, so the names of its consumers are not known")
	}
	for _, consumer := range consumers {
		if _, err := pool.Exec(ctx, historyInbox, h.inbox/len(consumers), consumer, h.until); err != nil {
			return err
		}
	}
	return nil
}
