package main

import (
	"errors"
	"slices"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/account/ledger"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// What a table is, line by line: columns in order, constraints, indexes and settings.
const describeTable = `
select format('%s %s %s %s %s', attnum, attname, format_type(atttypid, atttypmod) || attidentity::text,
    attnotnull, coalesce(pg_get_expr(adbin, adrelid), '') || coalesce((select collname from pg_collation where oid = attcollation), ''))
from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
where attrelid = $1::text::regclass and attnum > 0 and not attisdropped
union all select pg_get_constraintdef(oid) from pg_constraint where conrelid = $1::text::regclass
union all select pg_get_indexdef(indexrelid) from pg_index where indrelid = $1::text::regclass
union all select unnest(reloptions) from pg_class where oid = $1::text::regclass
order by 1`

// The packages own these tables, the migrations make them: neither may change alone.
func TestMigratedTablesAreThoseOfTheirPackages(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	migrated := bankAt(t, env.Database(t, "account"))
	wanted, err := pgx.Connect(t.Context(), env.Database(t, "wanted"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = wanted.Close(t.Context()) }()
	for _, schema := range []string{inbox.Schema, outbox.Schema, quarantine.Schema, control.Schema, journal.Schema} {
		if _, err := wanted.Exec(t.Context(), schema); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"inbox", "starts", "outbox", "quarantine_audit", "faults", "attempts"} {
		rows, _ := wanted.Query(t.Context(), describeTable, table)
		want, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		rows, _ = migrated.pool.Query(t.Context(), describeTable, table)
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if len(want) < 5 || !slices.Equal(got, want) {
			t.Errorf("%s is migrated as\n%q\nits package wants\n%q", table, got, want)
		}
	}
}

// The database itself refuses what must never be stored, should the code ever try.
func TestDatabaseGuardsTheLedger(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	account, other := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	tr := newTransfer(account, other, 30)
	b.ask(t, ledger.Requested, tr)
	b.ask(t, ledger.CreditRequested, tr)
	const entry = `insert into entries (id, ledger, account_id, transfer_id, kind, amount_minor, currency, posted_at)
select gen_random_uuid(), ledger, account_id, transfer_id, `
	for name, c := range map[string]struct {
		sql, constraint string
		argument        any
	}{
		"a balance below zero":       {`update accounts set balance_minor = -1 where id = $1`, "accounts_balance_minor_check", account},
		"no room for refunds":        {`update accounts set balance_minor = 9223372036854775807 where id = $1`, "accounts_room_for_refunds", account},
		"an unknown status":          {`update accounts set status = 'LOST' where id = $1`, "accounts_status_check", account},
		"an unknown state":           {`update legs set state = 'LOST' where id = $1`, "legs_state_check", tr.id},
		"a refusal without a reason": {`update legs set state = 'CREDIT_REJECTED' where id = $1`, "legs_refusal_has_reason", tr.id},
		"a second credit": {entry + `kind, amount_minor, currency, posted_at from entries where ledger = 'CUSTOMER' and kind = 'CREDIT' and transfer_id = $1`,
			"entries_once", tr.id},
		"a refund beside the credit": {entry + `'REFUND', amount_minor, currency, posted_at from entries where ledger = 'CUSTOMER' and kind = 'CREDIT' and transfer_id = $1`,
			"entries_once", tr.id},
		"a debit that gives": {entry + `kind, -amount_minor, currency, posted_at from entries where ledger = 'CUSTOMER' and kind = 'DEBIT' and transfer_id = $1`,
			"entries_sign", tr.id},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := b.pool.Exec(t.Context(), c.sql, c.argument)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.ConstraintName != c.constraint {
				t.Errorf("error %v, want one of %s", err, c.constraint)
			}
		})
	}
	expectInvariants(t, b.pool)
}

// The ledger shows a debit of which no leg knows: a contradiction that no repetition can cure, and not a race that is over in a moment.
func TestMovementWithoutLegIsAContradiction(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	tr := newTransfer(b.open(t, "EUR", 100), b.open(t, "EUR", 0), 30)
	b.ask(t, ledger.Requested, tr)
	if _, err := b.pool.Exec(t.Context(), `delete from legs where id = $1`, tr.id); err != nil {
		t.Fatal(err)
	}
	_, err := b.handlers[ledger.Requested](t.Context(), []*messaging.Message{tr.message(t, ledger.Requested)})
	if class := retry.ClassOf(err); class != retry.Invariant {
		t.Errorf("class %s of %v, want INVARIANT", class, err)
	}
}
