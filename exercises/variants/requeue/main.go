// WRONG ON PURPOSE (exercise 13). Do not copy: read, run, kill, and compare wrong with right.

// Command requeue is wrong on purpose: when it fails it gives the message back (nack, requeue=true). The broker hands it out again at once,
// it fails at once, thousands of times a minute and more, for ever: the message spins, everything behind it waits, and this
// program, the broker and the database are busy with nothing. What the handler does before it fails is done each time again; here that is
// a credit in a transaction of its own, and bob becomes a millionaire.
//
// With --right what a message does is one transaction, a failure undoes all of it, there are three attempts with pauses between
// them, and then the message is parked: published to a quarantine, confirmed, and only then acked.
package main

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/exercises/variants/toybank"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	toybank.Main(toybank.Program{
		Name:    "requeue",
		Mistake: "it gives a message that fails back to the queue, at once and without end",
		Cure:    "it undoes what failed, tries three times with pauses, and parks the message",
		Serve:   serve,
	})
}

func serve(ctx context.Context, b *toybank.Bank) error {
	deliveries, err := b.Consume(toybank.Credits)
	if err != nil {
		return err
	}
	handle := wrong
	if b.Right {
		handle = right
	}
	for d := range deliveries {
		order, err := toybank.Read(d.Body)
		if err != nil {
			return err
		}
		if err := handle(ctx, b, d, order); err != nil {
			return err
		}
	}
	return nil
}

func wrong(ctx context.Context, b *toybank.Bank, d amqp.Delivery, order toybank.Order) error {
	if err := toybank.Credit(ctx, b.DB, order.Destination, order.Money.Minor); err != nil { // WRONG: stays, whatever comes next
		return err
	}
	if err := state(ctx, b.DB, order); err != nil {
		if err := failed(b, err); err != nil {
			return err
		}
		return d.Nack(false, true) // WRONG: now, again, and for ever
	}
	return d.Ack(false)
}

// pauses are those between the attempts. They are short so that nobody has to wait; the real service waits 1, 5 and 25 seconds.
var pauses = retry.Backoff{Base: 50 * time.Millisecond, Factor: 5, Cap: time.Second}

const attempts = 3

func right(ctx context.Context, b *toybank.Bank, d amqp.Delivery, order toybank.Order) error {
	for attempt := 1; ; attempt++ {
		err := pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
			noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
			if err != nil || noted.RowsAffected() == 0 {
				return err
			}
			if err := toybank.Credit(ctx, tx, order.Destination, order.Money.Minor); err != nil {
				return err
			}
			return state(ctx, tx, order) // an error here takes the credit and the note back
		})
		if err == nil {
			return d.Ack(false)
		}
		if err := failed(b, err); err != nil {
			return err
		}
		if attempt == attempts {
			break
		}
		time.Sleep(pauses.Delay(attempt))
	}
	if err := b.Publish(ctx, toybank.Parked, d.Body); err != nil { // confirmed: somewhere safe, and out of the way
		return err
	}
	return d.Ack(false)
}

// state puts the payment on the customer's statement. The column is too narrow for 1000.00 and more, and no repetition makes it wider.
func state(ctx context.Context, db toybank.Database, order toybank.Order) error {
	_, err := db.Exec(ctx, `insert into statement (payment, euros) values ($1, $2::bigint / 100.0) on conflict do nothing`,
		order.ID, order.Money.Minor)
	return err
}

var failures int

// failed counts a failure and says so at the first, the tenth, the hundredth.
func failed(b *toybank.Bank, err error) error {
	failures++
	switch failures {
	case 1, 10, 100, 1000, 10_000, 100_000:
		fmt.Printf("failure %d: %v\n", failures, err)
	}
	return b.Reach(fmt.Sprintf("failure %d", failures))
}
