package pipeline

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A pool that plans for keys plans a Scan as the server would by itself, and the next statement for keys again.
func TestScanMayReadWholeTables(t *testing.T) {
	t.Parallel()
	config := newPool(t).Config()
	config.MaxConns = 1
	for _, setting := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin"} {
		config.ConnConfig.RuntimeParams[setting] = "off"
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	const show = `select current_setting('enable_seqscan') || current_setting('enable_hashjoin') || current_setting('enable_mergejoin')`
	var during, after string
	err = Scan(t.Context(), pool, show, func(rows pgx.Rows) (err error) {
		during, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[string])
		return err
	})
	if err != nil || during != "ononon" {
		t.Errorf("during a scan: %s, %v", during, err)
	}
	if err := pool.QueryRow(t.Context(), show).Scan(&after); err != nil || after != "offoffoff" {
		t.Errorf("after it: %s, %v", after, err)
	}
}

func TestScanOnlyReads(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	ignore := func(rows pgx.Rows) error {
		rows.Close()
		return rows.Err()
	}
	if err := Scan(t.Context(), pool, `delete from notes`, ignore); err == nil {
		t.Error("a scan deleted rows")
	}
	if err := Scan(t.Context(), pool, `select 1/0`, ignore); err == nil {
		t.Error("a scan that failed: no error")
	}
	tx, err := Begin(t.Context(), pool, add(1)) // what comes after may write
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	expect(t, pool, 1)
}
