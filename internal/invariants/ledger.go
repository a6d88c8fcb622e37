package invariants

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// offenders runs a query that finds what breaks a check: one text for each offender.
func offenders(ctx context.Context, tx pgx.Tx, check *Check, query string) error {
	rows, err := tx.Query(ctx, query)
	if err != nil {
		return err
	}
	var offender string
	_, err = pgx.ForEachRow(rows, []any{&offender}, func() error { check.offend("%s", offender); return nil })
	return err
}

// conserved: money only moves. Every entry has its counterpart, so each currency sums to zero at every instant.
func conserved(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "conservation", Promise: "customers + transit + funding = 0 in every currency", Verdict: Held}
	const sums = `select currency,
			coalesce(sum(amount_minor) filter (where ledger = 'CUSTOMER'), 0)::text,
			coalesce(sum(amount_minor) filter (where ledger = 'TRANSIT'), 0)::text,
			coalesce(sum(amount_minor) filter (where ledger = 'FUNDING'), 0)::text,
			sum(amount_minor)::text
		from entries group by currency order by currency`
	rows, err := tx.Query(ctx, sums)
	if err != nil {
		return check, err
	}
	var currency, customers, transit, funding, sum string
	_, err = pgx.ForEachRow(rows, []any{&currency, &customers, &transit, &funding, &sum}, func() error {
		if check.Detail != "" {
			check.Detail += "; "
		}
		check.Detail += fmt.Sprintf("%s: %s + %s + %s = %s", currency, customers, transit, funding, sum)
		if sum != "0" {
			check.offend("%s: customers %s + transit %s + funding %s = %s", currency, customers, transit, funding, sum)
		}
		return nil
	})
	return check, err
}

// balanced: a balance is a sum kept ready; here it is summed again.
func balanced(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "balances", Promise: "every balance is the sum of its entries, none is below zero", Verdict: Held}
	return check, offenders(ctx, tx, &check, `
		select 'account ' || a.id || ': balance ' || a.balance_minor || ', sum of entries ' || coalesce(e.total, 0)
		from accounts a
		left join (select account_id, sum(amount_minor) as total from entries where ledger = 'CUSTOMER' group by account_id) e
			on e.account_id = a.id
		where a.balance_minor <> coalesce(e.total, 0) or a.balance_minor < 0
		order by a.id`)
}

// bookedOnce: the entries of a transfer are none, debit, debit and credit, or debit and refund, each movement once, with
// two entries of opposite sign and one amount throughout.
func bookedOnce(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "booked once", Promise: "a transfer's entries are: none, debit, debit + credit, or debit + refund", Verdict: Held}
	return check, offenders(ctx, tx, &check, `
		select 'transfer ' || transfer_id || ': ' || string_agg(ledger || ' ' || kind || ' ' || amount_minor, ', ' order by id)
		from entries
		where transfer_id is not null
		group by transfer_id
		having not (
			count(*) filter (where kind = 'DEBIT' and ledger = 'CUSTOMER') = 1
			and count(*) filter (where kind in ('CREDIT', 'REFUND') and ledger = 'CUSTOMER') <= 1
			and count(*) filter (where kind = 'DEBIT' and ledger = 'TRANSIT') = 1
			and count(*) filter (where kind = 'CREDIT' and ledger = 'TRANSIT')
				= count(*) filter (where kind = 'CREDIT' and ledger = 'CUSTOMER')
			and count(*) filter (where kind = 'REFUND' and ledger = 'TRANSIT')
				= count(*) filter (where kind = 'REFUND' and ledger = 'CUSTOMER')
			and count(*) = 2 * count(*) filter (where ledger = 'CUSTOMER')
			and sum(amount_minor) = 0
			and min(abs(amount_minor)) = max(abs(amount_minor))
			and min(currency) = max(currency))
		order by transfer_id`)
}

// legsMatchEntries: the leg says what happened, the entries say what was booked; they must be one story.
func legsMatchEntries(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "legs", Promise: "every leg's state is what its entries say", Verdict: Held}
	return check, offenders(ctx, tx, &check, `
		with booked as (
			select transfer_id, string_agg(kind, '+' order by kind) as kinds, min(abs(amount_minor)) as amount
			from entries where transfer_id is not null and ledger = 'CUSTOMER' group by transfer_id)
		select 'transfer ' || coalesce(l.id, b.transfer_id) || ': leg ' || coalesce(l.state, 'missing') || ', entries '
			|| coalesce(b.kinds, 'none') || ' of ' || coalesce(b.amount, 0)
		from legs l full join booked b on b.transfer_id = l.id
		where l.id is null
			or coalesce(b.amount, l.amount_minor) <> l.amount_minor
			or coalesce(b.kinds, '') <> case l.state
				when 'DEBITED' then 'DEBIT' when 'CREDIT_REJECTED' then 'DEBIT'
				when 'CREDITED' then 'CREDIT+DEBIT' when 'REFUNDED' then 'DEBIT+REFUND' else '' end
		order by 1`)
}
