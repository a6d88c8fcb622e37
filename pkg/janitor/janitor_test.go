package janitor

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func newPool(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "janitor"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), `create table "Old things" (n int, "Seen at" timestamptz not null)`); err != nil {
		t.Fatal(err)
	}
	return pool
}

func fill(t *testing.T, pool *pgxpool.Pool, n int, age time.Duration) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), `insert into "Old things" select i, now() - $2::interval from generate_series(1, $1) i`, n, age); err != nil {
		t.Fatal(err)
	}
}

func TestSweepKeepsWhatIsYoung(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	fill(t, pool, 3000, 25*time.Hour)
	fill(t, pool, 2000, 23*time.Hour)
	asked := 0
	j := New(Config{
		Pool: pool, Table: "Old things", Column: "Seen at", Retention: 24 * time.Hour, Pages: 3, Pause: time.Microsecond,
		Also: func(context.Context) error { asked++; return errors.New("no") },
	})
	for _, want := range []int64{3000, 0} {
		if removed, err := j.Sweep(t.Context()); removed != want || err == nil || err.Error() != "no" {
			t.Errorf("removed %d (%v), want %d and the error of the rest", removed, err, want)
		}
	}
	var left int
	if err := pool.QueryRow(t.Context(), `select count(*) from "Old things"`).Scan(&left); err != nil || left != 2000 || asked != 2 {
		t.Errorf("%d rows are left (%v), the rest was done %d times", left, err, asked)
	}
}

var buffers = regexp.MustCompile(`(?:hit|read)=(\d+)`)

// A sweep reads a few pages at a time. Were the walk planned as a scan of the whole table, each of its steps would be one.
func TestSweepReadsOnlyThePagesOfItsStep(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	fill(t, pool, 50000, time.Hour)
	j := New(Config{Pool: pool, Table: "Old things", Column: "Seen at", Retention: 24 * time.Hour})
	var pages int
	if err := pool.QueryRow(t.Context(), j.pages).Scan(&pages); err != nil || pages < 100 {
		t.Fatalf("the table has %d pages, %v", pages, err)
	}
	rows, err := pool.Query(t.Context(), "explain (analyze, buffers, costs off, timing off) "+j.remove, 10, 14, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, line := range plan {
		if strings.Contains(line, "Buffers: shared") {
			for _, match := range buffers.FindAllStringSubmatch(line, -1) {
				n, _ := strconv.Atoi(match[1])
				read += n
			}
			break // the first node counts those below it
		}
	}
	if read < 4 || read > 10 {
		t.Errorf("a step over 4 of %d pages read %d:\n%s", pages, read, strings.Join(plan, "\n"))
	}
}
