package outbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// holdSnapshot opens a transaction that looks at the database as it is now, like a report or a backup that runs for
// hours. Until it ends no deleted row may be removed, and none can be skipped cheaply.
func holdSnapshot(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	tx, err := pool.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(context.Background(), "select count(*) from outbox"); err != nil {
		t.Fatal(err)
	}
}

// relayMany sends n messages through the relay, one batch after the other.
func relayMany(t testing.TB, o *Outbox, n int) {
	t.Helper()
	messages := newMessages(t, o.config.BatchSize)
	for n > 0 {
		size := min(n, len(messages))
		insert(t, o, messages[:size]...)
		if _, err := o.relayBatch(context.Background(), o.frontier.low(time.Now())); err != nil {
			t.Fatal(err)
		}
		n -= size
	}
}

var bufferCount = regexp.MustCompile(`(?:hit|read)=(\d+)`)

// claimPages says how many pages of memory one claim of the relay touches, with one row waiting.
func claimPages(t testing.TB, o *Outbox, after int64) int {
	t.Helper()
	ctx := context.Background()
	tx, err := o.config.Pool.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // the row, too
	if _, err := tx.Exec(ctx, configureSQL); err != nil {
		t.Fatal(err)
	}
	b := &pgx.Batch{}
	forRelay(o, b, newMessages(t, 1)...)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(ctx, "explain (analyze, buffers, costs off, timing off, summary off) "+claimSQL, after, o.config.BatchSize)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Join(lines, "\n")
	if strings.Contains(plan, "Sort") || !strings.Contains(plan, "Index Scan using outbox_pkey") {
		t.Fatalf("the claim does not walk along the key:\n%s", plan)
	}
	_, buffers, found := strings.Cut(plan, "Buffers: shared")
	if !found {
		t.Fatalf("no buffers in the plan:\n%s", plan)
	}
	buffers, _, _ = strings.Cut(buffers, "\n")
	pages := 0
	for _, match := range bufferCount.FindAllStringSubmatch(buffers, -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		pages += n
	}
	return pages
}

// settled waits until the frontier counts everything sent so far as finished.
func settled(t testing.TB, o *Outbox) int64 {
	t.Helper()
	eventually(t, "the frontier is at the last id", func() bool { return o.frontier.low(time.Now()) == o.frontier.high() })
	return o.frontier.high()
}

// Sent rows leave dead entries in the index until vacuum comes, and beside an old transaction it cannot. A claim that reads them
// all again gets slower with every message; ours must cost the same after 50,000.
func TestClaimStaysCheapBesideAnOldTransaction(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	o := newOutbox(Config{Pool: pool, Publisher: &broker{}, BatchSize: 500})
	holdSnapshot(t, pool)
	var pages []int
	for range 10 {
		relayMany(t, o, 5000)
		pages = append(pages, claimPages(t, o, settled(t, o)))
	}
	fromTheBeginning := claimPages(t, o, 0)
	t.Logf("pages of a claim after every 5,000 messages: %v; from id 0 at the end: %d", pages, fromTheBeginning)
	if fromTheBeginning < 1000 {
		t.Fatalf("from id 0 only %d pages: there are no dead rows to be afraid of, this test shows nothing", fromTheBeginning)
	}
	for i, n := range pages {
		if n > 15 {
			t.Errorf("after %d messages a claim reads %d pages", (i+1)*5000, n)
		}
	}
}

// The statistics say that the table is tiny, as they do after most visits of vacuum; meanwhile it may have grown a lot.
func TestPlansDoNotTrustStatistics(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	o := newOutbox(Config{Pool: pool, Publisher: &broker{}})
	insert(t, o, newMessages(t, 3)...)
	if _, err := pool.Exec(t.Context(), "analyze outbox"); err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), configureSQL); err != nil {
		t.Fatal(err)
	}
	ids := []int64{1, 2, 3}
	for query, arguments := range map[string][]any{
		claimSQL:    {0, 256},
		deleteSQL:   {ids},
		postponeSQL: {ids, ids, []string{"", "", ""}, []time.Duration{0, 0, 0}, []bool{false, false, false}},
	} {
		rows, err := tx.Query(t.Context(), "explain (costs off) "+query, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		plan := strings.Join(lines, "\n")
		if strings.Contains(plan, "Sort") || strings.Contains(plan, "Seq Scan on outbox") || !strings.Contains(plan, "outbox_pkey") {
			t.Errorf("does not go by the key:\n%s", plan)
		}
	}
}

// A sweep that has to walk over a million dead rows must not do so every second.
func TestExpensiveSweepsBecomeRare(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ scan, poll, want time.Duration }{
		{0, time.Second, time.Second},
		{time.Millisecond, time.Second, time.Second},
		{100 * time.Millisecond, time.Second, 5 * time.Second},
		{10 * time.Second, time.Second, maxSweepPause},
		{0, time.Minute, time.Minute},
	} {
		if got := sweepPause(test.scan, test.poll); got != test.want {
			t.Errorf("sweepPause(%s, %s) = %s, want %s", test.scan, test.poll, got, test.want)
		}
	}
}

// BenchmarkClaim shows the cost of a claim and of a sweep after so many messages, with a transaction held open all the
// time and without.
func BenchmarkClaim(b *testing.B) {
	for _, held := range []bool{false, true} {
		for _, size := range []int{10_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("held=%t/messages=%d", held, size), func(b *testing.B) {
				pool := newPool(b)
				o := newOutbox(Config{Pool: pool, Publisher: &broker{}, BatchSize: 500})
				if held {
					holdSnapshot(b, pool)
				}
				relayMany(b, o, size)
				low := settled(b, o)
				claim, sweep := claimPages(b, o, low), claimPages(b, o, 0)
				for b.Loop() {
					if _, err := o.relayBatch(context.Background(), low); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(claim), "pages/claim")
				b.ReportMetric(float64(sweep), "pages/sweep")
			})
		}
	}
}
