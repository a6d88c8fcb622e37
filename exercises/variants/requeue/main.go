// WRONG ON PURPOSE (exercise 13). Do not copy: read, run, kill, and compare wrong with right.

// Command requeue is wrong on purpose: when it fails it gives the message back (nack, requeue=true). The broker hands it out again at once,
// it fails at once, some hundred or thousand times a second, for ever: the message spins, everything behind it waits, and this
// program, the broker and the database are busy with nothing. What the handler does before it fails is done each time again; here that is
// a credit in a transaction of its own, and a payment of a thousand makes bob a millionaire.
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
		if err := handle(ctx, b, d); err != nil {
			return err
		}
	}
	return nil
}

func wrong(ctx context.Context, b *toybank.Bank, d amqp.Delivery) error {
	order, err := toybank.Read(d.Body)
	if err == nil {
		err = post(ctx, b.DB, order) // WRONG: two transactions, and the first one stays when the second fails
	}
	if err == nil {
		return d.Ack(false)
	}
	if err := failed(b, err); err != nil {
		return err
	}
	return d.Nack(false, true) // WRONG: now, again, and for ever
}

// pauses are those between the attempts. They are short so that nobody has to wait; the real service waits 1, 5 and 25 seconds.
var pauses = retry.Backoff{Base: 50 * time.Millisecond, Factor: 5, Cap: time.Second}

const attempts = 3

func right(ctx context.Context, b *toybank.Bank, d amqp.Delivery) error {
	for attempt := 1; ; attempt++ {
		err := once(ctx, b.DB, d.Body)
		if err == nil {
			return d.Ack(false)
		}
		if err := failed(b, err); err != nil {
			return err
		}
		if attempt == attempts || retry.ClassOf(err) == retry.Validation { // what cannot be read will not be readable later
			break
		}
		time.Sleep(pauses.Delay(attempt)) // on purpose: the wait between attempts is what is shown here
	}
	if err := b.Publish(ctx, toybank.Parked, d.Body); err != nil { // confirmed: somewhere safe, and out of the way
		return err
	}
	return d.Ack(false)
}

// once posts a payment in one transaction with the note that it was seen: an error takes all of it back.
func once(ctx context.Context, db *pgx.Conn, body []byte) error {
	order, err := toybank.Read(body)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
		if err != nil || noted.RowsAffected() == 0 {
			return err
		}
		return post(ctx, tx, order)
	})
}

// post credits bob and puts the payment on his statement. The statement's column is too narrow for 1000.00 and more, and no repetition
// makes it wider.
func post(ctx context.Context, db toybank.Database, order toybank.Order) error {
	if err := toybank.Credit(ctx, db, order.Destination, order.Money.Minor); err != nil {
		return err
	}
	_, err := db.Exec(ctx, `insert into statement (payment, euros) values ($1, $2::bigint / 100.0)`, order.ID, order.Money.Minor)
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
