package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// deadline is generous: the machine may be busy, and a test that waits for a condition ends as soon as it holds.
const deadline = time.Minute

// broker is a Publisher that does what the test says.
type broker struct {
	mu        sync.Mutex
	answer    func(batch []messaging.Publishing) ([]messaging.Outcome, error) // nil: acks all
	published []messaging.Publishing                                          // everything that was handed over
	calls     []time.Time
}

func (b *broker) Publish(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
	b.mu.Lock()
	b.calls = append(b.calls, time.Now())
	b.published = append(b.published, batch...)
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		answer = ackAll
	}
	return answer(batch)
}

func ackAll(batch []messaging.Publishing) ([]messaging.Outcome, error) {
	return slices.Repeat([]messaging.Outcome{messaging.Acked}, len(batch)), nil
}

// answers makes a broker decide message by message.
func answers(decide func(messaging.Publishing) messaging.Outcome) func([]messaging.Publishing) ([]messaging.Outcome, error) {
	return func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		outcomes := make([]messaging.Outcome, len(batch))
		for i, p := range batch {
			outcomes[i] = decide(p)
		}
		return outcomes, nil
	}
}

func (b *broker) set(answer func([]messaging.Publishing) ([]messaging.Outcome, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// times says how often a message was handed over.
func (b *broker) times(messageID string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, p := range b.published {
		if p.MessageId == messageID {
			n++
		}
	}
	return n
}

func (b *broker) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.published)
}

func (b *broker) callCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// between is the time from call i to call j, counted from 0.
func (b *broker) between(i, j int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls[j].Sub(b.calls[i])
}

type publisherFunc func(context.Context, []messaging.Publishing) ([]messaging.Outcome, error)

func (f publisherFunc) Publish(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
	return f(ctx, batch)
}

var errNotConnected = errors.New("not connected")

// newPool makes a database with an empty outbox.
func newPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return connect(t, testenv.New(t).Database(t, "outbox"))
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 8
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), Schema); err != nil {
		t.Fatal(err)
	}
	return pool
}

// start makes an outbox and runs its relay until the test ends. The poll interval is an hour unless the test says otherwise, so that
// a test about signals cannot be passed by the poll.
func start(t *testing.T, config Config) *Outbox {
	t.Helper()
	o := newOutbox(config)
	run(t, o)
	return o
}

func newOutbox(config Config) *Outbox {
	config.Exchange, config.AppID = contract.EventsExchange, "account"
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Poll == 0 {
		config.Poll = time.Hour
	}
	return New(config)
}

// run runs the relay; stop ends it and waits.
func run(t *testing.T, o *Outbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run ended with %v", err)
			}
		case <-time.After(deadline):
			t.Error("Run does not end")
		}
	})
	t.Cleanup(stop)
	return stop
}

func draft(id string) Draft {
	return Draft{
		ID: id, Type: contract.AccountDebited, CorrelationID: "0190a8a0-0000-7000-8000-000000000001", CausationID: "cause",
		OccurredAt: time.Now(), Data: []byte(`{"amountMinor":2500}`), TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
}

func newMessage(t testing.TB, id string) Message {
	t.Helper()
	m, err := NewMessage(draft(id))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newMessages(t testing.TB, n int) []Message {
	t.Helper()
	messages := make([]Message, n)
	for i := range messages {
		messages[i] = newMessage(t, fmt.Sprintf("message-%05d", i))
	}
	return messages
}

// forRelay queues messages as they are queued while the direct way is closed.
func forRelay(o *Outbox, b *pgx.Batch, messages ...Message) {
	(&Queued{outbox: o, messages: messages}).insert(b)
}

// insert writes messages for the relay in a transaction of their own, without waking anybody.
func insert(t testing.TB, o *Outbox, messages ...Message) {
	t.Helper()
	b := &pgx.Batch{}
	forRelay(o, b, messages...)
	if err := o.config.Pool.SendBatch(context.Background(), b).Close(); err != nil {
		t.Fatal(err)
	}
}

// send writes messages and wakes the relay.
func send(t testing.TB, o *Outbox, messages ...Message) {
	t.Helper()
	insert(t, o, messages...)
	o.Wake()
}

// eventually waits for a condition; it asks every few milliseconds because the database does not tell.
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

func rowCount(t testing.TB, pool *pgxpool.Pool, condition string) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(context.Background(), "select count(*) from outbox where "+condition).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func awaitEmpty(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	eventually(t, "the outbox is empty", func() bool { return rowCount(t, pool, "true") == 0 })
}
