package outbox

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestListWaiting(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	const fill = `
insert into outbox (message_id, type, routing_key, body, correlation_id, mandatory, occurred_at, attempts, last_error, set_aside_at)
select $1 || i, 'T', 'k', '{}', $2, true, now(), i, nullif($3, ''), case when $3 = 'refused' then now() end from generate_series(0, $4 - 1) i`
	list := func(correlation string) ([]Waiting, bool) {
		t.Helper()
		rows, all, err := ListWaiting(t.Context(), pool, correlation)
		if err != nil {
			t.Fatal(err)
		}
		return rows, all
	}
	add := func(id, correlation, lastError string, n int) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), fill, id, correlation, lastError, n); err != nil {
			t.Fatal(err)
		}
	}
	if rows, all := list("t"); len(rows) != 0 || !all {
		t.Errorf("an empty outbox: %v, all %v", rows, all)
	}
	add("first-", "t", "refused", 2)
	add("other-", "u", "", 7)
	rows, all := list("t")
	if len(rows) != 2 || !all || rows[1].MessageID != "first-1" || rows[1].Attempts != 1 || rows[1].Error != "refused" || !rows[1].SetAside || rows[1].OccurredAt.IsZero() {
		t.Errorf("listed %+v, all %v", rows, all)
	}
	add("middle-", "u", "", edge)
	add("hidden-", "t", "", 1)
	add("after-", "u", "", edge)
	add("last-", "t", "", 1)
	if rows, all = list("t"); all || len(rows) != 3 || rows[2].MessageID != "last-0" || rows[2].Error != "" || rows[2].SetAside {
		t.Errorf("in a long outbox: %+v, all %v", rows, all)
	}
}

// A long outbox is looked at from its ends, along the key.
func TestListWaitingReadsTheEnds(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan; set enable_seqscan = off; prepare waiting as `+listWaitingSQL); err != nil {
		t.Fatal(err)
	}
	rows, _ := conn.Query(t.Context(), `explain execute waiting ('t', 5000)`)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(plan, "\n"); strings.Contains(text, "Seq Scan") || strings.Count(text, "using outbox_pkey") != 2 {
		t.Errorf("the plan is\n%s", text)
	}
}
