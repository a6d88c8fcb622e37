package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

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
		"updateBalances": updateBalances, "selectStatement": selectStatement, "selectAccounts": selectAccounts,
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
