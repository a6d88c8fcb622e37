// WRONG ON PURPOSE (exercise 13). Do not copy: read, run, kill, and compare wrong with right.

// Command publishbeforecommit is wrong on purpose: it tells the other side what it has done, and commits it afterwards. A message
// cannot be taken back. When the commit does not come, because of a crash, a lost connection, a broken constraint, the other side believes
// what never happened: bob gets money that was never taken from alice.
//
// Trying again does not heal it: by then alice may be frozen, and the answer is another one.
//
// With --right the message is a row of the same transaction, the outbox, and is sent once that is committed.
package main

import (
	"context"

	"example.com/banking/exercises/variants/toybank"
	"example.com/banking/pkg/contract"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	toybank.Main(toybank.Program{
		Name:    "publishbeforecommit",
		Mistake: "it tells the other side what it has done before that is committed",
		Cure:    "it commits what it has to say with what it has done, and says it then",
		Serve:   serve,
	})
}

// serve plays both sides: the one that takes from alice, where the mistake is, and the one that gives to bob.
func serve(ctx context.Context, b *toybank.Bank) error {
	requests, err := b.Consume(toybank.Requests)
	if err != nil {
		return err
	}
	credits, err := b.Consume(toybank.Credits)
	if err != nil {
		return err
	}
	answer := wrong
	if b.Right {
		answer = right
		if err := relay(ctx, b); err != nil { // what a crash has left
			return err
		}
	}
	for requests != nil || credits != nil {
		var d amqp.Delivery
		handle, more := answer, false
		select {
		case d, more = <-requests:
			if !more {
				requests = nil
				continue
			}
		case d, more = <-credits:
			if !more {
				credits = nil
				continue
			}
			handle = believe
		}
		order, err := toybank.Read(d.Body)
		if err != nil {
			return err
		}
		if err := handle(ctx, b, order); err != nil {
			return err
		}
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func wrong(ctx context.Context, b *toybank.Bank, order toybank.Order) error {
	return pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
		answer, err := debit(ctx, tx, order)
		if err != nil || answer == nil {
			return err
		}
		if err := b.Publish(ctx, toybank.Credits, answer); err != nil { // WRONG: said, and not yet true
			return err
		}
		return b.Reach("between")
	}) // the commit, or not
}

func right(ctx context.Context, b *toybank.Bank, order toybank.Order) error {
	err := pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
		answer, err := debit(ctx, tx, order)
		if err != nil || answer == nil {
			return err
		}
		_, err = tx.Exec(ctx, `insert into outbox (message_id, body) values ($1, $2)`, order.ID, string(answer))
		return err
	})
	if err != nil {
		return err
	}
	if err := b.Reach("between"); err != nil {
		return err
	}
	return relay(ctx, b)
}

// relay sends what is committed. Killed between confirm and delete it sends a message twice, which the reader's inbox absorbs.
func relay(ctx context.Context, b *toybank.Bank) error {
	rows, err := b.DB.Query(ctx, `select message_id, body from outbox`)
	if err != nil {
		return err
	}
	type row struct{ ID, Body string }
	waiting, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		return err
	}
	for _, r := range waiting {
		if err := b.Publish(ctx, toybank.Credits, []byte(r.Body)); err != nil {
			return err
		}
		if _, err := b.DB.Exec(ctx, `delete from outbox where message_id = $1`, r.ID); err != nil {
			return err
		}
	}
	return nil
}

// debit takes from alice, once, and makes the message that says so; none when she refuses or the request was seen before.
func debit(ctx context.Context, tx pgx.Tx, order toybank.Order) (answer []byte, err error) {
	noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
	if err != nil || noted.RowsAffected() == 0 {
		return nil, err
	}
	done, err := toybank.Debit(ctx, tx, order.Source, order.Money.Minor)
	if err != nil || !done {
		return nil, err
	}
	_, answer, err = toybank.Write(order.TransferID, contract.TransferCreditRequested, order.Money.Minor)
	return answer, err
}

// believe is the other side, and does nothing wrong: it gives to bob what it is told to, once.
func believe(ctx context.Context, b *toybank.Bank, order toybank.Order) error {
	return pgx.BeginFunc(ctx, b.DB, func(tx pgx.Tx) error {
		noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
		if err != nil || noted.RowsAffected() == 0 {
			return err
		}
		return toybank.Credit(ctx, tx, order.Destination, order.Money.Minor)
	})
}
