package invariants

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// statusFollowsFacts: a transfer's status is a function of what it has been told; here it is computed once more, in SQL.
func statusFollowsFacts(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "facts", Promise: "every transfer's status is what its facts say", Verdict: Held}
	return check, offenders(ctx, tx, &check, `
		with told as (select transfer_id, array_agg(fact order by fact) as facts from facts group by transfer_id)
		select 'transfer ' || coalesce(t.id, f.transfer_id) || ' is ' || coalesce(t.status, 'missing') || ', its facts: '
			|| coalesce(array_to_string(f.facts, ', '), 'none')
		from transfers t full join told f on f.transfer_id = t.id
		where t.id is null or f.facts is null or t.status <> case
			when 'CREDITED' = any(f.facts) then 'COMPLETED'
			when 'REFUNDED' = any(f.facts) then 'REFUNDED'
			when 'DEBIT_REJECTED' = any(f.facts) then 'REJECTED'
			when 'CREDIT_REJECTED' = any(f.facts) or 'TIMED_OUT' = any(f.facts) then 'REFUNDING'
			when 'DEBITED' = any(f.facts) then 'DEBITED'
			else 'REQUESTED' end
		order by 1`)
}

// countsAddUp: the summary of ended transfers is kept as increments; here the transfers are counted.
func countsAddUp(ctx context.Context, tx pgx.Tx) (Check, error) {
	check := Check{Name: "summary", Promise: "the summary counts every transfer once", Verdict: Held}
	return check, offenders(ctx, tx, &check, `
		with counted as (select outcome, count(*) as n from transfers where outcome is not null group by outcome),
			kept as (select outcome, sum(n) as n from outcome_counts group by outcome)
		select coalesce(c.outcome, k.outcome) || ': ' || coalesce(c.n, 0) || ' transfers, the summary says ' || coalesce(k.n, 0)
		from counted c full join kept k on k.outcome = c.outcome
		where coalesce(c.n, 0) <> coalesce(k.n, 0)
		order by 1`)
}
