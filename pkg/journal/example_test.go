package journal_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A consumer tells the journal of each attempt that did not end well (ConsumerConfig.Observe). Nothing waits for it; what it has when it is
// told to stop is still written.
func ExampleJournal() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), journal.Schema); err != nil {
		fmt.Println(err)
		return
	}
	j := journal.New(journal.Config{Pool: pool, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), StopGrace: time.Minute})
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- j.Run(ctx) }()

	transfer := uuid.New()
	j.Observe(messaging.Attempt{
		Queue: "shop.orders", MessageID: "m-1", Type: "Shop.Order.Placed", TransferID: transfer.String(), Attempt: 1,
		Class: retry.Timeout, Error: "the warehouse does not answer", Outcome: messaging.AttemptRetried, Delay: time.Second, At: time.Now(),
	})
	stop()
	fmt.Println("stopped:", <-stopped)

	attempts, err := journal.Of(t.Context(), pool, transfer)
	for _, a := range attempts {
		fmt.Printf("attempt %d of %s: %s, %s, next after %s: %s\n", a.Attempt, a.MessageID, a.Class, a.Outcome, a.Delay, a.Error)
	}
	fmt.Println(err)
	// Output:
	// stopped: <nil>
	// attempt 1 of m-1: TIMEOUT, RETRY, next after 1s: the warehouse does not answer
	// <nil>
}

// A service gives its janitors one retention. The journal is for what happened lately, and keeps nothing for longer than MostRetention.
func ExampleNewJanitor() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	_, err = pool.Exec(t.Context(), journal.Schema+`
		insert into attempts
		select gen_random_uuid(), 'm-' || n, 'shop.orders', now() - n * interval '1 day' + interval '1 hour', 'Shop.Order.Placed', 1, 'TIMEOUT', 'RETRY', '', 1000, ''
		from generate_series(1, 10) n`)
	if err != nil {
		fmt.Println(err)
		return
	}
	old := journal.NewJanitor(janitor.Config{Pool: pool, Retention: 30 * 24 * time.Hour})
	fmt.Println(old.Sweep(t.Context()))
	// Output:
	// 3 <nil>
}
