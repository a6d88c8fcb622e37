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
	calls     int
}

func (b *broker) Publish(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
	b.mu.Lock()
	b.calls++
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
	return b.calls
}

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

// insert writes messages in a transaction of their own, without waking anybody.
func insert(t testing.TB, o *Outbox, messages ...Message) {
	t.Helper()
	b := &pgx.Batch{}
	o.Queue(b, messages)
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

func TestRelaySendsWhatWasCommittedAndNothingElse(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b})

	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	o.Queue(batch, []Message{newMessage(t, "rolled-back")})
	if err := tx.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	send(t, o, newMessages(t, 3)...)
	awaitEmpty(t, pool)
	if b.count() != 3 || b.times("rolled-back") != 0 {
		t.Errorf("published %d messages, the rolled back one %d times", b.count(), b.times("rolled-back"))
	}
}

func TestQueueOfNothingAddsNoStatement(t *testing.T) {
	t.Parallel()
	b := &pgx.Batch{}
	New(Config{Pool: &pgxpool.Pool{}, Publisher: &broker{}, Exchange: "x"}).Queue(b, nil)
	if b.Len() != 0 {
		t.Errorf("%d statements", b.Len())
	}
}

// With the poll an hour away only the signal can be what sends.
func TestWakeSendsAtOnce(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b})
	for i := range 20 {
		id := fmt.Sprintf("m%d", i)
		started := time.Now()
		send(t, o, newMessage(t, id))
		eventually(t, id+" is published", func() bool { return b.times(id) == 1 })
		if took := time.Since(started); took > 5*time.Second {
			t.Errorf("message %d took %s", i, took)
		}
	}
}

func TestMoreThanOneBatchGoesWithOneSignal(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b, BatchSize: 10})
	send(t, o, newMessages(t, 101)...)
	awaitEmpty(t, pool)
	if b.count() != 101 {
		t.Errorf("published %d of 101", b.count())
	}
}

// A process that died after its commit has told nobody.
func TestSweepSendsWhatNobodySignalled(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, BatchSize: 10})
	insert(t, o, newMessages(t, 25)...) // before the start: more than the first sweep takes
	run(t, o)
	awaitEmpty(t, pool)
	insert(t, o, newMessage(t, "later"))
	awaitEmpty(t, pool)
	if b.count() != 26 {
		t.Errorf("published %d of 26", b.count())
	}
}

// Under a load that never ends a sweep must not go on for ever at the upper end: it is what finds late commits at the lower one.
func TestSweepEndsUnderEndlessLoad(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, BatchSize: 5})
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		insert(t, o, newMessages(t, 5)...) // as many again as were taken
		return ackAll(batch)
	})
	insert(t, o, newMessages(t, 5)...)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for range 3 {
		if _, err := o.sweepOnce(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if b.count() == 0 || b.count() > 50 {
		t.Errorf("three sweeps published %d messages", b.count())
	}
	select {
	case <-o.wake:
	default:
		t.Error("the relays were not told that there is more")
	}
}

// Ids are taken in one order and committed in another. A relay that remembers the highest id it has sent, and looks only above
// it, loses the message of a transaction that commits late.
func TestLateCommitIsSent(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := start(t, Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond})
	late, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	o.Queue(batch, []Message{newMessage(t, "late")})
	if err := late.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Fatal(err)
	}
	send(t, o, newMessages(t, 50)...)
	// The open transaction stalls nobody, and the frontier passes its id.
	eventually(t, "the frontier is above the late row", func() bool { return o.frontier.low(time.Now()) > 1 })
	if b.count() != 50 {
		t.Fatalf("published %d of 50 beside the open transaction", b.count())
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the late message is sent", func() bool { return b.times("late") == 1 })
}

func TestRelaysShareTheWork(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	one := start(t, Config{Pool: pool, Publisher: b, BatchSize: 16, Poll: 20 * time.Millisecond})
	two := start(t, Config{Pool: pool, Publisher: b, BatchSize: 16, Poll: 20 * time.Millisecond})
	messages := newMessages(t, 2000)
	for chunk := range slices.Chunk(messages, 50) {
		insert(t, one, chunk...)
		one.Wake()
		two.Wake()
	}
	awaitEmpty(t, pool)
	for _, m := range messages {
		if n := b.times(m.ID); n != 1 {
			t.Errorf("%s published %d times", m.ID, n)
		}
	}
}

// Stopping is not a reason to publish everything under way once more.
func TestStopLetsTheBatchUnderWayFinish(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	entered, release := make(chan struct{}), make(chan struct{})
	slow := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		close(entered)
		select {
		case <-release:
			return ackAll(batch)
		case <-ctx.Done():
			return make([]messaging.Outcome, len(batch)), ctx.Err()
		}
	})
	o := newOutbox(Config{Pool: pool, Publisher: slow})
	insert(t, o, newMessages(t, 5)...)
	stop := run(t, o)
	<-entered
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("Run ended with a batch under way")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	<-stopped
	if n := rowCount(t, pool, "true"); n != 0 {
		t.Errorf("%d rows are left to be sent again", n)
	}
}

// A broker that has stopped answering must not hold up the end of the process.
func TestStopDoesNotWaitForAHangingBroker(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	entered := make(chan struct{})
	hanging := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		close(entered)
		<-ctx.Done()
		return make([]messaging.Outcome, len(batch)), ctx.Err()
	})
	o := newOutbox(Config{Pool: pool, Publisher: hanging, PublishTimeout: time.Hour})
	insert(t, o, newMessage(t, "m"))
	stop := run(t, o)
	<-entered
	stop() // fails the test by itself when it takes too long
	if n := rowCount(t, pool, "attempts = 0"); n != 1 {
		t.Error("the row was lost or blamed")
	}
}

type publisherFunc func(context.Context, []messaging.Publishing) ([]messaging.Outcome, error)

func (f publisherFunc) Publish(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
	return f(ctx, batch)
}

var errNotConnected = errors.New("not connected")
