package inbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deadline is generous: the machine may be busy, and a test that waits for a condition ends as soon as it holds.
const deadline = time.Minute

// tallySchema is the smallest state worth protecting: a sum per name.
const tallySchema = `create table tallies (name text primary key, total bigint not null)`

// command is what the messages of these tests ask for.
type command struct {
	Tally  string
	Amount int64
	Do     string // "fail" or "panic" after changing the work, "insert" ignores what was loaded
}

// tally is a unit of work that adds amounts to tallies.
type tally struct {
	totals map[string]int64
	insert []string
	hooks  *hooks
}

// hooks let a test stand inside the unit of work.
type hooks struct {
	begin, load, save func()
	saves             int
}

func call(f func()) {
	if f != nil {
		f()
	}
}

func (w *tally) Load(b *pgx.Batch, commands []command) {
	call(w.hooks.load)
	names := make([]string, len(commands))
	for i, c := range commands {
		names[i] = c.Tally
	}
	const lock = `select name, total from tallies where name = any ($1) order by name for update`
	b.Queue(lock, names).Query(func(rows pgx.Rows) error {
		var name string
		var total int64
		_, err := pgx.ForEachRow(rows, []any{&name, &total}, func() error { w.totals[name] = total; return nil })
		return err
	})
}

func (w *tally) Apply(m *messaging.Message, c command) ([]outbox.Message, error) {
	switch c.Do {
	case "fail":
		return nil, retry.Errorf(retry.NotFound, "no such transfer")
	case "panic":
		w.totals[c.Tally] += 1_000_000 // what a panic leaves behind must not be saved
		var nothing *command
		return nil, fmt.Errorf("%s", nothing.Tally)
	case "insert":
		w.insert = append(w.insert, c.Tally)
		return nil, nil
	}
	w.totals[c.Tally] += c.Amount
	out, err := outbox.NewMessage(outbox.Draft{
		Type: contract.AccountDebited, CausationID: m.MessageID, OccurredAt: time.Now(), Data: []byte(`{}`),
	})
	return []outbox.Message{out}, err
}

func (w *tally) Save(b *pgx.Batch) {
	w.hooks.saves++
	call(w.hooks.save)
	for _, name := range w.insert {
		b.Queue(`insert into tallies values ($1, 0)`, name)
	}
	var names []string
	var totals []int64
	for name, total := range w.totals {
		names, totals = append(names, name), append(totals, total)
	}
	const upsert = `insert into tallies select * from unnest($1::text[], $2::bigint[]) on conflict (name) do update set total = excluded.total`
	b.Queue(upsert, names, totals)
}

func parseCommand(m *messaging.Message) (command, error) {
	var c command
	if err := json.Unmarshal(m.Data, &c); err != nil {
		return command{}, retry.Errorf(retry.Validation, "data: %w", err)
	}
	if c.Do == "panic in Parse" {
		var nothing *command
		return *nothing, nil
	}
	return c, nil
}

// bench is a database with an inbox, an outbox and tallies, and a handler over it.
type bench struct {
	pool    *pgxpool.Pool
	outbox  *outbox.Outbox
	hooks   hooks
	handler messaging.Handler
}

func newBench(t testing.TB, change ...func(*Config[command])) *bench {
	t.Helper()
	return newBenchAt(t, testenv.New(t).Database(t, "inbox"), change...)
}

func newBenchAt(t testing.TB, url string, change ...func(*Config[command])) *bench {
	t.Helper()
	b := &bench{}
	b.pool = connect(t, url, nil)
	if _, err := b.pool.Exec(t.Context(), Schema+outbox.Schema+tallySchema); err != nil {
		t.Fatal(err)
	}
	b.handler = b.newHandler(b.pool, change...)
	return b
}

func connect(t testing.TB, url string, tracer pgx.QueryTracer) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns, config.ConnConfig.Tracer = 12, tracer
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// newHandler makes a handler as one more instance of the service would have it.
func (b *bench) newHandler(pool *pgxpool.Pool, change ...func(*Config[command])) messaging.Handler {
	b.outbox = outbox.New(outbox.Config{Pool: pool, Publisher: nobody{}, Exchange: contract.EventsExchange,
		Logger: slog.New(slog.DiscardHandler)})
	config := Config[command]{
		Pool: pool, Consumer: "tallies", Outbox: b.outbox, Parse: parseCommand,
		Begin: func() Work[command] { call(b.hooks.begin); return &tally{totals: map[string]int64{}, hooks: &b.hooks} },
	}
	for _, f := range change {
		f(&config)
	}
	return Handler(config)
}

// nobody publishes nothing: these tests look at what lies in the outbox.
type nobody struct{}

func (nobody) Publish(_ context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
	return make([]messaging.Outcome, len(batch)), nil
}

func message(id, data string) *messaging.Message {
	return &messaging.Message{Envelope: messaging.Envelope{MessageID: id, Type: "Tally.Add", OccurredAt: time.Now(), Data: []byte(data)}}
}

// handle handles a batch that must not fail as a whole.
func (b *bench) handle(t testing.TB, batch ...*messaging.Message) []error {
	t.Helper()
	results, err := b.handler(context.Background(), batch)
	if err != nil {
		t.Fatalf("the batch failed: %v", err)
	}
	if len(results) != len(batch) {
		t.Fatalf("%d results for %d messages", len(results), len(batch))
	}
	return results
}

func (b *bench) total(t testing.TB, name string) int64 {
	t.Helper()
	return b.number(t, "select coalesce((select total from tallies where name = $1), 0)", name)
}

func (b *bench) number(t testing.TB, query string, arguments ...any) (n int64) {
	t.Helper()
	if err := b.pool.QueryRow(context.Background(), query, arguments...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// expect compares what is in the database: the sum of one tally, the messages seen, the messages to send.
func (b *bench) expect(t testing.TB, total, seen, outgoing int64) {
	t.Helper()
	if got := b.total(t, "a"); got != total {
		t.Errorf("the total is %d, want %d", got, total)
	}
	if got := b.number(t, "select count(*) from inbox"); got != seen {
		t.Errorf("%d rows in the inbox, want %d", got, seen)
	}
	if got := b.number(t, "select count(*) from outbox"); got != outgoing {
		t.Errorf("%d rows in the outbox, want %d", got, outgoing)
	}
}

// idle fails the test when a connection was not returned, or was returned inside a transaction.
func (b *bench) idle(t testing.TB) {
	t.Helper()
	// The pool closes a broken connection in the background.
	eventually(t, "all connections are returned", func() bool { return b.pool.Stat().AcquiredConns() == 0 })
	const open = `select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`
	if n := b.number(t, open); n != 0 {
		t.Errorf("%d connections idle in a transaction", n)
	}
}

func class(t testing.TB, err error, want retry.Class) {
	t.Helper()
	if got := retry.ClassOf(err); got != want {
		t.Errorf("class %q, want %q: %v", got, want, err)
	}
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for timeout := time.After(deadline); !holds(); {
		select {
		case <-ticker.C:
		case <-timeout:
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}
