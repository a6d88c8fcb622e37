package inbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/janitor"
)

// fillOld puts n rows into the inbox that were received the given time ago.
func (b *bench) fillOld(t testing.TB, prefix string, n int, age time.Duration) {
	t.Helper()
	const insert = `insert into inbox select 'tallies', $1 || i, sha256(i::text::bytea), now() - $3::interval from generate_series(1, $2) i`
	if _, err := b.pool.Exec(context.Background(), insert, prefix, n, age); err != nil {
		t.Fatal(err)
	}
}

func TestSweepRemovesOnlyWhatIsOld(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fillOld(t, "old-", 3000, 25*time.Hour)
	b.fillOld(t, "young-", 2000, 23*time.Hour)
	b.fillOld(t, "ancient-", 1000, 1000*time.Hour)
	j := NewJanitor(janitor.Config{Pool: b.pool, Retention: 24 * time.Hour, Pages: 3, Pause: time.Microsecond})
	removed, err := j.Sweep(t.Context())
	if err != nil || removed != 4000 {
		t.Errorf("removed %d: %v", removed, err)
	}
	if n := b.number(t, "select count(*) from inbox where message_id like 'young-%'"); n != 2000 {
		t.Errorf("%d of 2000 young rows are left", n)
	}
	if n := b.number(t, "select count(*) from inbox"); n != 2000 {
		t.Errorf("%d rows are left", n)
	}
	if removed, err := j.Sweep(t.Context()); err != nil || removed != 0 {
		t.Errorf("the second sweep removed %d: %v", removed, err)
	}
}

func TestSeveralJanitorsBesideTraffic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.fillOld(t, "old-", 5000, 25*time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	var janitors sync.WaitGroup
	for range 3 {
		j := NewJanitor(janitor.Config{Pool: b.pool, Retention: 24 * time.Hour, Interval: time.Millisecond, Pages: 4, Pause: time.Microsecond,
			Logger: slog.New(slog.DiscardHandler)})
		janitors.Go(func() {
			if err := j.Run(ctx); err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	for i := range 100 {
		b.handle(t, message(fmt.Sprintf("new-%d", i), `{"tally":"a","amount":1}`))
	}
	eventually(t, "the old rows are gone", func() bool { return b.number(t, "select count(*) from inbox where message_id like 'old-%'") == 0 })
	stop()
	janitors.Wait()
	b.expect(t, 100, 100, 100)
}
