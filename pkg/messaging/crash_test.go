package messaging_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5/pgxpool"
)

// These variables make a copy of the test binary a service that dies of some messages: of those whose id begins with "exit" at once, of
// "late" when it is decided what becomes of it, of "second" in its second attempt, while those that begin with "hang" wait for a stop, or
// for somebody to kill it.
const (
	mortalBroker    = "MORTAL_AMQP_URL"
	mortalDatabase  = "MORTAL_DATABASE_URL"
	mortalInProcess = "MORTAL_IN_PROCESS" // not empty: messages wait in it between two attempts
)

func TestMain(m *testing.M) {
	if os.Getenv(mortalBroker) != "" {
		if err := mortal(); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// mortal is that service.
func mortal() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv(mortalDatabase))
	if err != nil {
		return err
	}
	defer pool.Close()
	s, c := transfer(succeed)
	s.URLs = []string{os.Getenv(mortalBroker)}
	c.Prefetch, c.BatchSize, c.BatchWait, c.Grace = 20, 20, 50*time.Millisecond, time.Second
	c.Breaker, c.Budget, c.Probe, c.Starts = &retry.BreakerConfig{}, true, pool.Ping, inbox.NewStarts(pool)
	if os.Getenv(mortalInProcess) != "" {
		c.Road, c.Policy = messaging.Road{QuarantineExchange: contract.DeadLetterExchange}, processPolicy(lapDelay, lapDelay)
	}
	c.Handler = func(ctx context.Context, batch []*messaging.Message) ([]error, error) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer func() { _ = tx.Rollback(ctx) }()
		for _, m := range batch {
			if _, err := pool.Exec(ctx, "insert into runs values ($1)", m.MessageID); err != nil {
				return nil, err
			}
			switch {
			case strings.HasPrefix(m.MessageID, "exit"), strings.HasPrefix(m.MessageID, "second") && m.Attempt == 2:
				os.Exit(137)
			case strings.HasPrefix(m.MessageID, "second"):
				return nil, errors.New("it fails")
			case strings.HasPrefix(m.MessageID, "late"):
				return nil, errors.New("it fails")
			case strings.HasPrefix(m.MessageID, "hang"):
				fmt.Println("hanging")
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if _, err := tx.Exec(ctx, "insert into effects values ($1) on conflict do nothing", m.MessageID); err != nil {
				return nil, err
			}
		}
		return make([]error, len(batch)), tx.Commit(ctx)
	}
	c.Observe = func(a messaging.Attempt) {
		if strings.HasPrefix(a.MessageID, "late") && a.Reason != retry.ReasonCrashLoop {
			os.Exit(137)
		}
	}
	session := messaging.NewSession(s)
	consumer, err := session.NewConsumer(c)
	if err != nil {
		return err
	}
	broker, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { err = errors.Join(err, session.Run(broker)) })
	consumed := consumer.Run(ctx)
	end()
	running.Wait()
	return errors.Join(consumed, err)
}

// graveyard is a queue whose consumers die, and the database in which they leave their traces.
type graveyard struct {
	*fixture
	database string
	pool     *pgxpool.Pool
	settings []string // of the consumers, in their environment
}

func newGraveyard(t *testing.T) *graveyard {
	t.Helper()
	env := testenv.New(t)
	s, _ := transfer(succeed)
	g := &graveyard{fixture: startOn(t, env, s, messaging.ConsumerConfig{}), database: env.Database(t, "graveyard")}
	var err error
	if g.pool, err = pgxpool.New(t.Context(), g.database); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.pool.Close)
	if _, err := g.pool.Exec(t.Context(), inbox.Schema+"create table runs (id text); create table effects (id text primary key)"); err != nil {
		t.Fatal(err)
	}
	return g
}

// born starts a consumer. It tells when it hangs, and is killed when the test ends before it does.
func (g *graveyard) born() (consumer *exec.Cmd, hanging <-chan struct{}) {
	g.Helper()
	self, err := os.Executable()
	if err != nil {
		g.Fatal(err)
	}
	cmd := exec.CommandContext(g.Context(), self)
	cmd.Env = append(os.Environ(), mortalBroker+"="+g.env.AMQPURL, mortalDatabase+"="+g.database)
	cmd.Env = append(cmd.Env, g.settings...)
	cmd.Stderr = g.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		g.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.Fatal(err)
	}
	said := make(chan struct{}, 1)
	go func() {
		defer close(said)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			said <- struct{}{}
		}
	}()
	return cmd, said
}

// ended waits for the end of a consumer, by an exit or a signal.
func (g *graveyard) ended(consumer *exec.Cmd, want string) {
	g.Helper()
	_ = consumer.Wait()
	if got := consumer.ProcessState.String(); got != want {
		g.Fatalf("the consumer ended by %q, want %q", got, want)
	}
}

// dies lets a consumer live until a message ends it.
func (g *graveyard) dies() {
	g.Helper()
	consumer, hanging := g.born()
	for range hanging {
		g.Error("it hangs")
	}
	g.ended(consumer, "exit status 137")
}

// hangs lets a consumer live until a message hangs it, and sends it a signal then.
func (g *graveyard) hangs(sent os.Signal, want string) {
	g.Helper()
	consumer, hanging := g.born()
	for range hanging {
		_ = consumer.Process.Signal(sent)
	}
	g.ended(consumer, want)
}

// survives lets a consumer live until what must happen has happened, and stops it then.
func (g *graveyard) survives(until func()) {
	g.Helper()
	consumer, hanging := g.born()
	until()
	_ = consumer.Process.Signal(syscall.SIGTERM)
	for range hanging {
		g.Error("it hangs")
	}
	g.ended(consumer, "exit status 0")
}

func (g *graveyard) number(sql string, arguments ...any) (n int) {
	g.Helper()
	if err := g.pool.QueryRow(g.Context(), sql, arguments...).Scan(&n); err != nil {
		g.Fatal(err)
	}
	return n
}

// onlyEffects waits until so many neighbours are handled and nothing else is left: no message anywhere, no start noted.
func (g *graveyard) onlyEffects(n int) {
	g.Helper()
	g.eventually("the neighbours to be handled", func() error {
		if effects, noted := g.number("select count(*) from effects"), g.number("select count(*) from starts"); effects != n || noted != 0 {
			return fmt.Errorf("%d effects, %d starts noted", effects, noted)
		}
		return nil
	})
	g.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
}

const runsOf = "select count(*) from runs where id = $1"

func TestMessageThatKillsItsConsumerIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	g := newGraveyard(t)
	for i := range 20 {
		id := fmt.Sprint("good-", i)
		if i == 7 {
			id = "exit"
		}
		g.publishBody(debited, body(id))
	}
	for range 3 {
		g.dies()
	}
	g.survives(func() {
		d := g.parkedAfter(3, retry.ReasonCrashLoop, retry.Unknown)
		if string(d.Body) != body("exit") || !strings.Contains(fmt.Sprint(d.Headers["x-last-error"]), "did not come to an end 3 times") {
			t.Errorf("%s, %v", d.Body, d.Headers["x-last-error"])
		}
		g.onlyEffects(19)
	})
	if n := g.number(runsOf, "exit"); n != 3 {
		t.Errorf("it was started %d times", n)
	}
}

// A message can also end its process after its handler: by what we make of its failure, a panic over its headers for instance.
func TestMessageWhoseFailureKillsItsConsumerIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	g := newGraveyard(t)
	for _, id := range []string{"good-1", "late", "good-2"} {
		g.publishBody(debited, body(id))
	}
	for range 3 {
		g.dies()
	}
	g.survives(func() {
		if d := g.parkedAfter(3, retry.ReasonCrashLoop, retry.Unknown); string(d.Body) != body("late") {
			t.Errorf("%s is parked", d.Body)
		}
		g.onlyEffects(2)
	})
}

// The first attempt of this one ends well enough each time, with an error. On the road in process that must not hide that the second does not.
func TestMessageThatKillsItsConsumerInALaterAttemptIsQuarantinedAlone(t *testing.T) {
	t.Parallel()
	g := newGraveyard(t)
	g.settings = []string{mortalInProcess + "=yes"}
	for _, id := range []string{"good-1", "second", "good-2"} {
		g.publishBody(debited, body(id))
	}
	for range 3 {
		g.dies()
	}
	g.survives(func() {
		if d := g.parkedAfter(3, retry.ReasonCrashLoop, retry.Unknown); string(d.Body) != body("second") {
			t.Errorf("%s is parked", d.Body)
		}
		g.onlyEffects(2)
	})
	// Twice in each process, and in the first once more: there it fails in the company of others, and then alone.
	if n := g.number(runsOf, "second"); n < 6 || n > 7 {
		t.Errorf("it was started %d times", n)
	}
}

func TestStopsInGoodOrderBetweenCrashesDoNotCount(t *testing.T) {
	t.Parallel()
	g := newGraveyard(t)
	g.publishBody(debited, body("good-1"))
	g.publishBody(debited, body("hang"))
	g.publishBody(debited, body("good-2"))
	g.hangs(syscall.SIGTERM, "exit status 0")
	for range 2 {
		g.hangs(syscall.SIGKILL, "signal: killed")
		g.hangs(syscall.SIGTERM, "exit status 0")
	}
	g.hangs(syscall.SIGKILL, "signal: killed")
	g.survives(func() {
		g.parkedAfter(3, retry.ReasonCrashLoop, retry.Unknown)
		g.onlyEffects(2)
	})
	if n := g.number(runsOf, "hang"); n != 6 {
		t.Errorf("it was started %d times", n)
	}
}

func TestTwoMessagesThatKillTheirConsumer(t *testing.T) {
	t.Parallel()
	g := newGraveyard(t)
	for _, id := range []string{"good-1", "exit-1", "good-2", "exit-2", "good-3"} {
		g.publishBody(debited, body(id))
	}
	// The second one was in the hands of a process that ended, so its first start is taken to have been that.
	for range 3 + 2 {
		g.dies()
	}
	g.survives(func() {
		for _, id := range []string{"exit-1", "exit-2"} {
			if d := g.parkedAfter(3, retry.ReasonCrashLoop, retry.Unknown); string(d.Body) != body(id) {
				t.Errorf("%s, want %s", d.Body, id)
			}
		}
		g.onlyEffects(3)
	})
	if first, second := g.number(runsOf, "exit-1"), g.number(runsOf, "exit-2"); first != 3 || second != 2 {
		t.Errorf("they were started %d and %d times", first, second)
	}
}
