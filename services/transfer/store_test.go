package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

// The tables of packages are in our migrations, so that they lie beside our own; they must be the ones their packages are written for.
func TestMigratedTablesAreThoseOfTheirPackages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, err := d.db.Exec(t.Context(), `create schema wanted; set search_path = wanted; `+inbox.Schema+outbox.Schema+quarantine.Schema+control.Schema+journal.Schema+`; reset search_path`); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"inbox", "starts", "outbox", "quarantine_audit", "faults", "attempts"} {
		got, want := d.describe("public."+table), d.describe("wanted."+table)
		if len(got) < 4 || !slices.Equal(got, want) {
			t.Errorf("%s is\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// describe is everything that makes a table what it is: columns, constraints, indexes and storage settings.
func (d *desk) describe(table string) []string {
	d.t.Helper()
	var lines []string
	err := d.db.QueryRow(d.t.Context(), `
		select array_agg(line order by line) from (
			select concat_ws(' ', 'column', attnum, attname, format_type(atttypid, atttypmod), attnotnull, attidentity, attcollation::regcollation, pg_get_expr(adbin, adrelid))
			from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum where attrelid = $1::regclass and attnum > 0
			union all select concat_ws(' ', 'constraint', pg_get_constraintdef(oid)) from pg_constraint where conrelid = $1::regclass
			union all select replace(pg_get_indexdef(indexrelid), $2, '') from pg_index where indrelid = $1::regclass
			union all select concat_ws(' ', 'with', option) from pg_class, unnest(reloptions) as option where oid = $1::regclass
		) as all_of_it (line)`, table, strings.SplitAfter(table, ".")[0]).Scan(&lines)
	if err != nil {
		d.t.Fatal(err)
	}
	return lines
}

// The database holds the line when the code does not.
func TestDatabaseRefusesImpossibleRows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	insert := `insert into transfers (id, source_account_id, destination_account_id, amount_minor, currency, reference, status, created_at, updated_at)
		select $1, $2, $3, %s, now(), now()`
	for name, values := range map[string]string{
		"no amount":        `0, 'EUR', null, 'REQUESTED'`,
		"no currency":      `1, 'eur', null, 'REQUESTED'`,
		"unknown status":   `1, 'EUR', null, 'LOST'`,
		"longer reference": `1, 'EUR', repeat('x', 141), 'REQUESTED'`,
	} {
		if _, err := d.db.Exec(t.Context(), fmt.Sprintf(insert, values), uuid.New(), uuid.New(), uuid.New()); err == nil {
			t.Errorf("a transfer with %s was stored", name)
		}
	}
	same := uuid.New()
	if _, err := d.db.Exec(t.Context(), fmt.Sprintf(insert, `1, 'EUR', null, 'REQUESTED'`), uuid.New(), same, same); err == nil {
		t.Error("a transfer from an account to itself was stored")
	}
	if _, err := d.db.Exec(t.Context(), `insert into facts values ($1, 'FORGOTTEN', now(), 'm')`, uuid.New()); err == nil {
		t.Error("an unknown fact was stored")
	}
}

func TestListIsNewestFirstInPages(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var newest []uuid.UUID
	byStatus := map[lifecycle.Status][]uuid.UUID{}
	for i := range 25 {
		transfer := d.accept()
		newest = append(newest, transfer.ID)
		status := lifecycle.StatusRequested
		switch i % 4 {
		case 1:
			d.hear(tells(transfer, contract.AccountDebited))
			status = lifecycle.StatusDebited
		case 2:
			d.hear(tells(transfer, contract.AccountDebitRejected))
			status = lifecycle.StatusRejected
		case 3:
			d.hear(tells(transfer, contract.AccountDebited), tells(transfer, contract.AccountCredited))
			status = lifecycle.StatusCompleted
		}
		byStatus[status] = append(byStatus[status], transfer.ID)
	}
	byStatus[""] = newest
	for _, status := range append(lifecycle.Statuses(), "") {
		want := slices.Clone(byStatus[status])
		slices.Reverse(want)
		var got []uuid.UUID
		for before := lastID; ; {
			page, err := d.store.list(t.Context(), status, before, 4)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			for _, transfer := range page {
				got = append(got, transfer.ID)
				if status != "" && transfer.Status != status {
					t.Errorf("the list of %s has a transfer that is %s", status, transfer.Status)
				}
				if len(transfer.Timeline) == 0 {
					t.Errorf("transfer %s has no timeline", transfer.ID)
				}
			}
			before = page[len(page)-1].ID
		}
		if !slices.Equal(got, want) {
			t.Errorf("status %q: %v, want %v", status, got, want)
		}
	}
}

func TestSummaryCountsEveryTransferOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want := map[lifecycle.Status]int64{}
	for i := range 30 {
		transfer := d.accept()
		last := lifecycle.StatusRequested
		path := [][]string{
			{},
			{contract.AccountDebited},
			{contract.AccountDebited, contract.AccountCredited},
			{contract.AccountDebitRejected},
			{contract.AccountDebited, contract.AccountCreditRejected},
			{contract.AccountDebited, contract.AccountCreditRejected, contract.AccountRefunded},
		}[i%6]
		for _, messageType := range path {
			e := tells(transfer, messageType)
			d.hear(e)
			d.hear(e)
			d.hear(e.again())
		}
		last = d.find(transfer.ID).Status
		want[last]++
	}
	if len(want) != 6 {
		t.Fatalf("the paths lead to %v only", want)
	}
	got, err := d.store.summary(t.Context())
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("summary is %v (%v), want %v", got, err, want)
	}
}

func TestNoIDIsOlderThanTheirFirstInstant(t *testing.T) {
	t.Parallel()
	for _, at := range []time.Time{{}, time.UnixMilli(-1), time.Now().Add(-500_000 * time.Hour), time.UnixMilli(0)} {
		if first := firstID(at); first != uuid.Nil {
			t.Errorf("the first id at %s is %s", at, first)
		}
	}
}

func TestIDsAreInTheOrderOfTime(t *testing.T) {
	t.Parallel()
	var before uuid.UUID
	for range 10_000 {
		began := time.Now().Truncate(time.Millisecond)
		id, at, err := newID()
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Compare(before[:], id[:]) >= 0 {
			t.Fatalf("%s came after %s", id, before)
		}
		before = id
		first, next := firstID(at), firstID(at.Add(time.Millisecond))
		if bytes.Compare(first[:], id[:]) > 0 || bytes.Compare(id[:], next[:]) >= 0 || bytes.Compare(id[:], lastID[:]) >= 0 {
			t.Fatalf("%s is not between %s and %s", id, first, next)
		}
		if at.Before(began) || at.After(time.Now()) {
			t.Fatalf("%s was made at %s, between %s and now", id, at, began)
		}
	}
}
