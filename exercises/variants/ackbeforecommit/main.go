// WRONG ON PURPOSE (exercise 13). Do not copy: read, run, kill, and compare wrong with right.

// Command ackbeforecommit is wrong on purpose: it acknowledges a message, and commits what the message did afterwards. An ack tells the
// broker to forget. Killed in between, nobody remembers: the broker has deleted the message, and the database has rolled back
// what it did. Money that was taken from alice never reaches bob.
//
// With --right it commits first. Killed in between, the message comes again, and the inbox knows it.
package main

import (
	"context"

	"example.com/banking/exercises/variants/toybank"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	toybank.Main(toybank.Program{
		Name:    "ackbeforecommit",
		Mistake: "it acknowledges a message, and commits afterwards what the message did",
		Cure:    "it commits first and acknowledges then",
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
	tx, err := b.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after the commit
	if err := credit(ctx, tx, d); err != nil {
		return err
	}
	if err := d.Ack(false); err != nil { // WRONG: from here on nobody but this process knows of the money
		return err
	}
	if err := b.Reach("between"); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

func right(ctx context.Context, b *toybank.Bank, d amqp.Delivery) error {
	tx, err := b.DB.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // does nothing after the commit
	if err := credit(ctx, tx, d); err != nil {
		return err
	}
	if err := tx.Commit(ctx); err != nil { // durable first
		return err
	}
	if err := b.Reach("between"); err != nil {
		return err
	}
	return d.Ack(false) // lost, it costs a second delivery, which credit absorbs
}

// credit notes the message and credits bob, both or neither. The note makes a second delivery harmless, which is why the ack
// can wait until after the commit.
func credit(ctx context.Context, tx pgx.Tx, d amqp.Delivery) error {
	order, err := toybank.Read(d.Body)
	if err != nil {
		return err
	}
	noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
	if err != nil || noted.RowsAffected() == 0 {
		return err
	}
	return toybank.Credit(ctx, tx, order.Destination, order.Money.Minor)
}
