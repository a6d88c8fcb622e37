package life_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/life"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A service tells what it knows from its own tables: what happened, what it has said, what it may have been told. Read adds what the tables of
// the packages know of these messages, here an attempt that failed, and puts all of it in order.
func ExampleRead() {
	t, end := testenv.Example()
	defer end()
	pool, err := pgxpool.New(t.Context(), testenv.New(t).Database(t, "shop"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), inbox.Schema+outbox.Schema+journal.Schema+quarantine.Schema); err != nil {
		fmt.Println(err)
		return
	}
	transfer, asked := uuid.New(), time.Now().Add(-time.Minute)
	note(t.Context(), pool, messaging.Attempt{
		Queue: "shop.events", MessageID: life.MessageID(transfer, contract.AccountDebited), Type: contract.AccountDebited, TransferID: transfer.String(),
		Attempt: 1, Class: retry.Timeout, Error: "the warehouse does not answer", Outcome: messaging.AttemptRetried, Delay: 5 * time.Second,
		At: asked.Add(time.Second),
	})

	told, err := life.Read(t.Context(), pool, "shop", transfer, life.Told{
		Events: []life.Event{
			{At: asked.Add(7 * time.Second), Kind: life.Fact, Detail: "DEBITED"},
			{At: asked, Kind: life.Accepted},
		},
		Said:  []life.Said{{At: asked, Type: contract.TransferRequested}},
		Heard: []life.Heard{life.Hears(transfer, "shop.events", contract.AccountDebited)},
	})
	for _, e := range told.Events {
		fmt.Printf("+%.0fs %-8s %s\n", e.At.Sub(asked).Seconds(), e.Kind, cmp.Or(e.Detail, e.Type, "asked for"))
	}
	fmt.Println(err)
	// Output:
	// +0s ACCEPTED asked for
	// +0s SENT     Transfers.Transfer.Requested
	// +1s FAILED   the warehouse does not answer
	// +7s FACT     DEBITED
	// <nil>
}

// note keeps an attempt in the journal, as the consumer of a service does.
func note(ctx context.Context, pool *pgxpool.Pool, attempt messaging.Attempt) {
	j := journal.New(journal.Config{Pool: pool, Logger: slog.New(slog.DiscardHandler), StopGrace: time.Minute})
	j.Observe(attempt)
	ctx, stop := context.WithCancel(ctx)
	stop()
	if err := j.Run(ctx); err != nil {
		fmt.Println(err)
	}
}

// The id of a message follows from what it says, so that anybody can compute which message must be there, and ask for it.
func ExampleMessageID() {
	transfer := uuid.MustParse("01890000-0000-7000-8000-000000000001")
	fmt.Println(life.MessageID(transfer, contract.AccountDebited) == contract.Say(transfer, contract.AccountDebited, contract.Data{}).ID.String())
	// Output: true
}
