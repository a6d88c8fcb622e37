package inbox

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"example.com/banking/pkg/messaging"
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
	for name, query := range map[string]string{"compare": compareSQL, "forget": forgetSQL} {
		if _, err := conn.Exec(ctx, "set plan_cache_mode = force_generic_plan"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("prepare %s (text, text[]) as %s", name, query)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("execute %s ('tallies', array['x'])", name)); err != nil { // plans
			t.Fatal(err)
		}
	}
	b.fillOld(t, "m-", 50000, 0)
	for _, name := range []string{"compare", "forget"} {
		rows, err := conn.Query(ctx, fmt.Sprintf("explain (analyze, buffers, costs off, timing off) execute %s ('tallies', array['m-7', 'm-49999', 'm-25000'])", name))
		if err != nil {
			t.Fatal(err)
		}
		if pages := readPages(t, rows); pages > 60 {
			t.Errorf("%s read %d pages for 3 ids", name, pages)
		}
	}
}

// The cost of a message must not grow with the number of messages ever seen. Run with -bench; the large case takes a minute to
// prepare.
func BenchmarkInbox(b *testing.B) {
	for _, size := range []int{0, 5_000_000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			bench := newBench(b)
			bench.fillOld(b, "00000000-", size, 0)
			number := 0
			for b.Loop() {
				batch := make([]*messaging.Message, 50)
				for i := range batch {
					number++
					batch[i] = message(fmt.Sprintf("%08x-%d", number*2654435761, number), `{"tally":"a","amount":1}`)
				}
				if _, err := bench.handler(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(number), "µs/message")
		})
	}
}
