// WRONG ON PURPOSE (exercise 13). Do not copy: read, run, kill, and compare wrong with right.

// Command dedupeinmemory is wrong on purpose: it remembers in a map which messages it has handled. A message is delivered twice above
// all when its consumer has died before the ack, and the memory died with the consumer. Then bob gets the money again.
//
// With --right the memory is a row, written in the transaction of the credit: what is done and what is remembered cannot differ.
package main

import (
	"context"

	"example.com/banking/exercises/variants/toybank"
	"github.com/jackc/pgx/v5"
)

func main() {
	toybank.Main(toybank.Program{
		Name:    "dedupeinmemory",
		Mistake: "it remembers the messages it has handled in its own memory only",
		Cure:    "it remembers them in the database, in the transaction of what they did",
		Serve:   serve,
	})
}

func serve(ctx context.Context, b *toybank.Bank) error {
	deliveries, err := b.Consume(toybank.Credits)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for d := range deliveries {
		order, err := toybank.Read(d.Body)
		if err != nil {
			return err
		}
		if b.Right {
			err = right(ctx, b.DB, order)
		} else {
			err = wrong(ctx, b.DB, order, seen)
		}
		if err != nil {
			return err
		}
		// Committed, and not yet acked. This order is right, and it is where every redelivery comes from.
		if err := b.Reach("between"); err != nil {
			return err
		}
		if err := d.Ack(false); err != nil {
			return err
		}
	}
	return nil
}

func wrong(ctx context.Context, db *pgx.Conn, order toybank.Order, seen map[string]bool) error {
	if seen[order.ID] {
		return nil
	}
	if err := toybank.Credit(ctx, db, order.Destination, order.Money.Minor); err != nil {
		return err
	}
	seen[order.ID] = true // WRONG: gone with the process, while the credit stays
	return nil
}

func right(ctx context.Context, db *pgx.Conn, order toybank.Order) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// The key decides, not a look beforehand: two copies at the same time meet here, and one of them waits.
		noted, err := tx.Exec(ctx, `insert into inbox (message_id) values ($1) on conflict do nothing`, order.ID)
		if err != nil {
			return err
		}
		if noted.RowsAffected() == 0 {
			return nil // seen before, by whichever process: and then it is done, too
		}
		return toybank.Credit(ctx, tx, order.Destination, order.Money.Minor)
	})
}
