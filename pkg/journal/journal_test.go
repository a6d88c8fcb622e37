package journal

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

const patience = time.Minute

func newJournal(t *testing.T) *Journal {
	t.Helper()
	return journalAt(t, testenv.New(t).Database(t, "journal"))
}

func journalAt(t *testing.T, url string) *Journal {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), Schema); err != nil {
		t.Fatal(err)
	}
	return New(Config{Pool: pool, Registerer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
}

// run runs the journal; stop ends it and waits.
func run(t *testing.T, j *Journal) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- j.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("the journal does not stop")
		}
	}
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

func attempt(transfer uuid.UUID, id string, n int) messaging.Attempt {
	return messaging.Attempt{
		Queue: "work", MessageID: id, Type: "T", TransferID: transfer.String(), Attempt: n, Class: retry.NotFound, Error: "no",
		Outcome: messaging.AttemptRetried, Delay: 5 * time.Second, At: start.Add(time.Duration(n) * time.Second),
	}
}

func (j *Journal) of(t *testing.T, transfer uuid.UUID) []messaging.Attempt {
	t.Helper()
	got, err := Of(t.Context(), j.pool, transfer)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i].At = got[i].At.UTC()
	}
	return got
}

func TestWhatIsObservedIsRead(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	transfer := uuid.New()
	first, last := attempt(transfer, "m", 1), attempt(transfer, "m", 2)
	last.Outcome, last.Reason, last.Delay = messaging.AttemptQuarantined, retry.ReasonMaxAttempts, 0
	spelled := last
	spelled.TransferID = strings.ToUpper(spelled.TransferID)
	j.Observe(spelled)
	j.Observe(first)
	j.Observe(attempt(uuid.New(), "m", 1))
	nobody := first
	nobody.TransferID = "not-a-real-id"
	j.Observe(nobody)
	run(t, j)() // what is there at the stop is written
	if got, want := j.of(t, transfer), []messaging.Attempt{first, last}; !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%+v\nwant\n%+v", got, want)
	}
	if n := testutil.ToFloat64(j.metrics.written); n != 3 {
		t.Errorf("%v rows were written", n)
	}
}

func TestTextOfOthersIsStored(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	defer run(t, j)()
	transfer := uuid.New()
	a := attempt(transfer, "nul \x00 in \xff it", 1)
	a.Type, a.Error = strings.Repeat("é", 1<<20), strings.Repeat("\x00", 1<<20)
	j.Observe(a)
	await(t, "the row", func() bool { return len(j.of(t, transfer)) == 1 })
	got := j.of(t, transfer)[0]
	if got.MessageID != "nul \uFFFD in \uFFFD it" || len(got.Type) != longestText || len(got.Error) > longestError || len(got.Error) < longestError-3 {
		t.Errorf("stored as %q, type %d bytes, error %d bytes", got.MessageID, len(got.Type), len(got.Error))
	}
}

func TestRowsOfOneMessageAndOneTransferAreBounded(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	write := func(all ...messaging.Attempt) {
		t.Helper()
		for _, a := range all {
			if err := j.write(t.Context(), []entry{{a, uuid.MustParse(a.TransferID)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	flapping, flooded := uuid.New(), uuid.New()
	for n := range perMessage + 10 {
		spared := attempt(flapping, "m", 1000+n)
		spared.Outcome = messaging.AttemptSpared
		write(attempt(flapping, "m", n), spared)
	}
	if got := j.of(t, flapping); len(got) != 2*perMessage || got[0].Attempt != 0 || got[perMessage-1].Attempt != perMessage-1 {
		t.Errorf("%d rows of one message, %d and as many spared ones were expected", len(got), perMessage)
	}
	if n := testutil.ToFloat64(j.metrics.surplus); n != 20 {
		t.Errorf("%v were counted as surplus", n)
	}
	batch := make([]entry, batchSize)
	for range perTransfer/batchSize + 2 {
		for i := range batch {
			batch[i] = entry{attempt(flooded, uuid.NewString(), 1), flooded}
		}
		if err := j.write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := j.of(t, flooded); len(got) != perTransfer {
		t.Errorf("%d rows of one transfer", len(got))
	}
}

// A batch alone keeps to the bounds, whatever is there before it, and it is the oldest of it that are kept.
func TestOneBatchKeepsToTheBounds(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	write := func(batch ...entry) {
		t.Helper()
		if err := j.write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	of := func(transfer uuid.UUID, id string, outcome messaging.AttemptOutcome, first, n int) (batch []entry) {
		for i := range n {
			a := attempt(transfer, id, first+n-1-i) // the newest first
			a.Outcome = outcome
			batch = append(batch, entry{a, transfer})
		}
		return batch
	}
	count := func(transfer uuid.UUID) map[string]int {
		n := map[string]int{}
		for _, a := range j.of(t, transfer) {
			n[a.MessageID+" "+string(a.Outcome)]++
			n["last "+a.MessageID] = a.Attempt
		}
		return n
	}
	const failed, spared = messaging.AttemptRetried, messaging.AttemptSpared

	// Two messages of one transfer, and a transfer beside it: what is counted apart is so within a batch, too.
	apart, beside := uuid.New(), uuid.New()
	write(of(apart, "m", failed, 0, 10)...)
	write(slices.Concat(of(apart, "m", failed, 1000, perMessage), of(apart, "m", spared, 2000, 30), of(apart, "other", failed, 0, 10), of(beside, "m", failed, 0, 10))...)
	if got, want := count(apart), map[string]int{"m RETRY": perMessage, "m SPARED": 30, "other RETRY": 10, "last m": 2029, "last other": 9}; !maps.Equal(got, want) {
		t.Errorf("%v are there, want %v", got, want)
	}
	if got, want := count(beside), map[string]int{"m RETRY": 10, "last m": 9}; !maps.Equal(got, want) {
		t.Errorf("%v are there of the transfer beside it, want %v", got, want)
	}

	alone := uuid.New()
	write(of(alone, "m", failed, 0, batchSize)...)
	if got, want := count(alone), map[string]int{"m RETRY": perMessage, "last m": perMessage - 1}; !maps.Equal(got, want) {
		t.Errorf("%v are there of one batch about one message, want %v", got, want)
	}

	// Room for ten is left in the transfer, and for five in one of its messages. What the message has no room for takes none of the ten.
	full := uuid.New()
	write(of(full, "m", failed, 0, perMessage-5)...)
	for left := perTransfer - 10 - (perMessage - 5); left > 0; left -= 5 {
		write(of(full, uuid.NewString(), failed, 0, 5)...)
	}
	write(append(of(full, "m", failed, 1000, 20), of(full, "other", failed, 2000, 10)...)...)
	if got := count(full); len(j.of(t, full)) != perTransfer || got["m RETRY"] != perMessage || got["other RETRY"] != 5 || got["last other"] != 2004 {
		t.Errorf("%d rows of one transfer, %d of one message and %d of the other, up to %d; want %d, %d and 5, up to 2004",
			len(j.of(t, full)), got["m RETRY"], got["other RETRY"], got["last other"], perTransfer, perMessage)
	}
}

// The answer to a write may be lost: the batch is written again, and is there once.
func TestBatchWrittenTwiceIsThereOnce(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	transfer := uuid.New()
	batch := []entry{{attempt(transfer, "m", 1), transfer}, {attempt(transfer, "m", 2), transfer}, {attempt(transfer, "m", 2), transfer}}
	for range 2 {
		if err := j.write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	if got := j.of(t, transfer); len(got) != 2 {
		t.Errorf("%d rows", len(got))
	}
}

// Nobody waits for the journal: with the database away ten thousand failures are taken or dropped at once, and what was taken is written
// when it is back.
func TestFloodWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "journal")
	proxy := testenv.NewProxy(t, url)
	j := journalAt(t, proxy.URL(url))
	j.pause = time.Millisecond
	proxy.Refuse()
	proxy.Cut()
	stop := run(t, j)
	const flood = 10_000
	began := time.Now()
	transfers := make([]uuid.UUID, flood)
	for i := range transfers {
		transfers[i] = uuid.New()
		j.Observe(attempt(transfers[i], fmt.Sprint(i), 1))
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("observing %d failures took %s", flood, took)
	}
	dropped := testutil.ToFloat64(j.metrics.dropped)
	if dropped < flood-buffered-batchSize || dropped > flood-buffered {
		t.Errorf("%v of %d were dropped, the buffer holds %d", dropped, flood, buffered)
	}
	proxy.Accept()
	await(t, "the first batch", func() bool { return testutil.ToFloat64(j.metrics.written) >= batchSize })
	stop() // writes the rest
	if written := testutil.ToFloat64(j.metrics.written); written+dropped != flood {
		t.Errorf("%v written and %v dropped of %d", written, dropped, flood)
	}
	if got := j.of(t, transfers[0]); len(got) != 1 {
		t.Errorf("the first of them has %d rows", len(got))
	}
}

func TestDatabaseThatHangsForAMoment(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	transfer := uuid.New()
	lock, err := j.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.Background()) }()
	if _, err := lock.Exec(t.Context(), `lock table attempts in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	defer run(t, j)()
	j.Observe(attempt(transfer, "m", 1))
	await(t, "the journal to meet the lock", func() bool {
		var waiting int
		err := lock.QueryRow(t.Context(), `select count(*) from pg_locks where not granted and relation = 'attempts'::regclass`).Scan(&waiting)
		return err == nil && waiting > 0
	})
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "the row", func() bool { return len(j.of(t, transfer)) == 1 })
}

func TestJanitorKeepsAWeekAtMost(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	transfer := uuid.New()
	for _, age := range []time.Duration{6 * 24 * time.Hour, 8 * 24 * time.Hour} {
		a := attempt(transfer, age.String(), 1)
		a.At = time.Now().Add(-age)
		if err := j.write(t.Context(), []entry{{a, transfer}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		retention time.Duration
		left      int
	}{{30 * 24 * time.Hour, 1}, {24 * time.Hour, 0}} {
		if _, err := NewJanitor(janitor.Config{Pool: j.pool, Retention: c.retention}).Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := j.of(t, transfer); len(got) != c.left {
			t.Errorf("retention %s leaves %d rows", c.retention, len(got))
		}
	}
}

// The plans are made over an empty table, and kept while it grows.
func TestPlansUseTheKey(t *testing.T) {
	t.Parallel()
	j := newJournal(t)
	conn, err := j.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set plan_cache_mode = force_generic_plan; set enable_seqscan = off; prepare read as `+ofSQL); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `prepare write (uuid[], text[], text[], timestamptz[], text[], integer[], text[], text[], text[], bigint[], text[], bigint, bigint) as `+insertSQL); err != nil {
		t.Fatal(err)
	}
	for statement, scans := range map[string]int{"read (null)": 1, "write (null,null,null,null,null,null,null,null,null,null,null,50,500)": 2} {
		rows, _ := conn.Query(t.Context(), "explain execute "+statement)
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(plan, "\n")
		if strings.Contains(text, "Seq Scan") || strings.Count(text, "attempts_pkey") < scans {
			t.Errorf("%s:\n%s", statement, text)
		}
	}
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
