package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The sums are made of whole tables, and reading those row by row along an index takes twice the time.
func TestLedgerReadsWholeTables(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	b.open(t, "EUR", 1)
	for range 2 { // the second time with the plan that was kept
		var before int
		scans := func() (n int) {
			if err := b.pool.QueryRow(t.Context(), `select seq_scan from pg_stat_user_tables where relname = 'accounts'`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before = scans()
		await(t, "the table to be read as a whole", func() bool { // statistics appear with a delay
			if _, err := b.ledger(t.Context()); err != nil {
				t.Fatal(err)
			}
			return scans() > before
		})
	}
	var setting string
	if err := b.pool.QueryRow(t.Context(), `show enable_seqscan`).Scan(&setting); err != nil || setting != "off" {
		t.Errorf("afterwards enable_seqscan is %s, %v", setting, err)
	}
}

var parameter = regexp.MustCompile(`\$\d+`)

// A connection keeps the plan of a statement, and on the first day it is made over empty tables, where reading everything looks
// cheap. It must be one that is still good when the tables have grown.
func TestPlansMadeOverEmptyTables(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan`); err != nil {
		t.Fatal(err)
	}
	for name, statement := range map[string]string{
		"lockLegs": lockLegs, "lockAccounts": lockAccounts, "selectMayReturn": selectMayReturn, "updateLegs": updateLegs,
		"updateBalances": updateBalances, "selectStatement": selectStatement, "selectAccounts": selectAccounts, "selectPostings": selectPostings,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := conn.Exec(t.Context(), "prepare "+name+" as "+statement); err != nil {
				t.Fatal(err)
			}
			parameters := parameter.FindAllString(statement, -1)
			slices.Sort(parameters)
			nulls := strings.TrimSuffix(strings.Repeat("null,", len(slices.Compact(parameters))), ",")
			rows, _ := conn.Query(t.Context(), fmt.Sprintf("explain execute %s(%s)", name, nulls))
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Join(plan, "\n")
			if strings.Contains(text, "Seq Scan") || !strings.Contains(text, "Index") {
				t.Errorf("reads a whole table:\n%s", text)
			}
		})
	}
}
