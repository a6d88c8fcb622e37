package inbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

var bufferCount = regexp.MustCompile(`(?:hit|read)=(\d+)`)

// readPages adds up the pages that the first node of a plan and all below it have touched.
func readPages(t testing.TB, plan pgx.Rows) int {
	t.Helper()
	lines, err := pgx.CollectRows(plan, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(line, "Buffers: shared") {
			continue
		}
		pages := 0
		for _, match := range bufferCount.FindAllStringSubmatch(line, -1) {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				t.Fatal(err)
			}
			pages += n
		}
		return pages
	}
	t.Fatalf("no buffers in the plan:\n%s", strings.Join(lines, "\n"))
	return 0
}

// The plans are made while the table is nearly empty and kept while it grows. They must be the right ones for a big table.
func TestPlansStayGoodWhileTheTableGrows(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	conn, err := b.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	ctx := t.Context()
	b.fillOld(t, "first-", 5, 0)
	if _, err := conn.Exec(ctx, "analyze inbox"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, "set enable_seqscan = off"); err != nil { // as byKeySQL does for the transaction
		t.Fatal(err)
	}
	consumerType := map[string]string{"compare": "text", "forget": "text", "received": "text[]"}
	consumers := map[string][2]string{
		"compare": {"'tallies'", "'tallies'"}, "forget": {"'tallies'", "'tallies'"},
		"received": {"array['tallies']", "array['tallies', 'tallies', 'tallies']"},
	}
	for name, query := range map[string]string{"compare": compareSQL, "forget": forgetSQL, "received": receivedSQL} {
		if _, err := conn.Exec(ctx, "set plan_cache_mode = force_generic_plan"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("prepare %s (%s, text[]) as %s", name, consumerType[name], query)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("execute %s (%s, array['x'])", name, consumers[name][0])); err != nil { // plans
			t.Fatal(err)
		}
	}
	b.fillOld(t, "m-", 50000, 0)
	for _, name := range []string{"compare", "forget", "received"} {
		rows, err := conn.Query(ctx, fmt.Sprintf("explain (analyze, buffers, costs off, timing off) execute %s (%s, array['m-7', 'm-49999', 'm-25000'])", name, consumers[name][1]))
		if err != nil {
			t.Fatal(err)
		}
		if pages := readPages(t, rows); pages > 60 {
			t.Errorf("%s read %d pages for 3 ids", name, pages)
		}
	}
}

// The cost of a message must not grow with the number of messages ever seen. Batches go alternately to an empty inbox and to one
// of five million rows, so that whatever else the machine does meets both. Run with -bench; filling takes minutes.
func BenchmarkInbox(b *testing.B) {
	const preload = `insert into inbox select 'tallies', gen_random_uuid(), sha256(i::text::bytea) from generate_series(1, 5000000) i`
	small, large := newBench(b), newBench(b)
	if _, err := large.pool.Exec(context.Background(), preload); err != nil {
		b.Fatal(err)
	}
	for _, bench := range []*bench{small, large} {
		if _, err := bench.pool.Exec(context.Background(), "vacuum analyze inbox"); err != nil {
			b.Fatal(err)
		}
	}
	for name, newID := range map[string]func() uuid.UUID{"random ids": uuid.New, "ordered ids": func() uuid.UUID { return uuid.Must(uuid.NewV7()) }} {
		b.Run(name, func(b *testing.B) {
			const size = 50
			var took [2]time.Duration
			for b.Loop() {
				for i, bench := range []*bench{small, large} {
					batch := make([]*messaging.Message, size)
					for j := range batch {
						batch[j] = message(newID().String(), `{"tally":"a","amount":1}`)
					}
					started := time.Now()
					bench.handle(b, batch...)
					took[i] += time.Since(started)
				}
			}
			b.ReportMetric(float64(took[0].Microseconds())/float64(b.N*size), "µs/message-empty")
			b.ReportMetric(float64(took[1].Microseconds())/float64(b.N*size), "µs/message-5M")
			b.ReportMetric(float64(took[0])/float64(took[1]), "rate-5M/rate-empty")
		})
	}
}
