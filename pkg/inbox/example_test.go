package inbox_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// visit is what a message asks for: to count a visitor.
type visit struct{ name string }

func readVisit(m *messaging.Message) (visit, error) {
	if m.Type != "Museum.Visitor.Came" {
		return visit{}, retry.Errorf(retry.Validation, "type %q is nothing that is counted", m.Type)
	}
	return visit{name: m.CorrelationID}, nil
}

// tally is the unit of work of one batch: it reads, decides in memory and writes, and knows nothing of duplicates.
type tally struct{ seen map[string]int }

func (t *tally) Load(b *pgx.Batch, visits []visit) {
	names := make([]string, len(visits))
	for i, v := range visits {
		names[i] = v.name
	}
	b.Queue(`select name, n from visitors where name = any($1) order by name for update`, names).Query(func(rows pgx.Rows) error {
		var name string
		var n int
		_, err := pgx.ForEachRow(rows, []any{&name, &n}, func() error { t.seen[name] = n; return nil })
		return err
	})
}

func (t *tally) Apply(_ *messaging.Message, v visit) ([]outbox.Message, error) {
	t.seen[v.name]++
	return nil, nil
}

func (t *tally) Save(b *pgx.Batch) {
	for name, n := range t.seen {
		b.Queue(`insert into visitors values ($1, $2) on conflict (name) do update set n = excluded.n`, name, n)
	}
}

// A handler takes a batch in one transaction. The message that comes twice counts once; the one that nobody can read has an error of its own
// and does not hold up its neighbours.
func ExampleHandler() {
	t, end := testenv.Example()
	defer end()
	ctx := t.Context()
	pool, err := pgxpool.New(ctx, testenv.New(t).Database(t, "museum"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, inbox.Schema+outbox.Schema+`create table visitors (name text primary key, n integer not null)`); err != nil {
		fmt.Println(err)
		return
	}
	handle := inbox.Handler(inbox.Config[visit]{
		Pool:     pool,
		Consumer: "museum.visits",
		Outbox:   outbox.New(outbox.Config{Pool: pool, Publisher: nobody{}, Exchange: "banking.events"}),
		Parse:    readVisit,
		Begin:    func() inbox.Work[visit] { return &tally{seen: map[string]int{}} },
	})

	came := func(id, messageType, name string) *messaging.Message {
		return &messaging.Message{Envelope: messaging.Envelope{MessageID: id, Type: messageType, CorrelationID: name}}
	}
	results, err := handle(ctx, []*messaging.Message{
		came("m-1", "Museum.Visitor.Came", "ada"), came("m-2", "Museum.Visitor.Left", "ada"), came("m-3", "Museum.Visitor.Came", "ada"),
	})
	fmt.Println("first:", results, err)
	results, err = handle(ctx, []*messaging.Message{came("m-1", "Museum.Visitor.Came", "ada")}) // the broker did not hear the ack
	fmt.Println("again:", results, err)

	var n int
	err = pool.QueryRow(ctx, `select n from visitors where name = 'ada'`).Scan(&n)
	fmt.Println("visits:", n, err)
	// Output:
	// first: [<nil> type "Museum.Visitor.Left" is nothing that is counted <nil>] <nil>
	// again: [<nil>] <nil>
	// visits: 2 <nil>
}

// nobody is a publisher that is never asked: these visits say nothing to others.
type nobody struct{}

func (nobody) Publish(context.Context, []messaging.Publishing) ([]messaging.Outcome, error) {
	return nil, nil
}

// museum is a database in which two consumers have handled a message, one of them long ago.
func museum() (ctx context.Context, pool *pgxpool.Pool, end func()) {
	t, drop := testenv.Example()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "museum"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), inbox.Schema+`insert into inbox values
		('museum.visits', 'm-1', sha256('{}'), now() - interval '40 days'), ('museum.tickets', 'm-1', sha256('{}'), now())`); err != nil {
		t.Fatal(err)
	}
	return t.Context(), pool, func() { pool.Close(); drop() }
}

// Whether a message has taken effect is known for each consumer by itself.
func ExampleReceived() {
	ctx, pool, end := museum()
	defer end()
	keys := []inbox.Key{{Consumer: "museum.tickets", MessageID: "m-1"}, {Consumer: "museum.tickets", MessageID: "m-2"}}
	received, err := inbox.Received(ctx, pool, keys)
	for _, key := range keys {
		_, handled := received[key]
		fmt.Println(key.MessageID, handled)
	}
	fmt.Println(err)
	// Output:
	// m-1 true
	// m-2 false
	// <nil>
}

// The inbox remembers for as long as a message may come again. In a service it is Run that sweeps, again and again.
func ExampleNewJanitor() {
	ctx, pool, end := museum()
	defer end()
	old := inbox.NewJanitor(janitor.Config{Pool: pool, Retention: 30 * 24 * time.Hour})
	fmt.Println(old.Sweep(ctx))
	fmt.Println(old.Sweep(ctx))
	// Output:
	// 1 <nil>
	// 0 <nil>
}

// A consumer notes the starts of a message that has been handed out before (ConsumerConfig.Starts). Here the process dies of it twice, which
// nothing but the notes remembers; then the message comes to an end, and the next start is counted anew.
func ExampleNewStarts() {
	ctx, pool, end := museum()
	defer end()
	starts, key := inbox.NewStarts(pool), sha256.Sum256([]byte(`{"messageId":"m-7"}`))
	fmt.Println(starts.Begin(ctx, "museum.visits", key, 1)) // the broker says that it is a redelivery: there was one start before
	fmt.Println(starts.Begin(ctx, "museum.visits", key, 1))
	fmt.Println(starts.End(ctx, "museum.visits", key))
	fmt.Println(starts.Begin(ctx, "museum.visits", key, 1))
	// Output:
	// 2 <nil>
	// 3 <nil>
	// <nil>
	// 2 <nil>
}
