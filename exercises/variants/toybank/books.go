package toybank

import (
	"context"
	"fmt"

	"example.com/banking/pkg/contract"
	"github.com/jackc/pgx/v5"
)

// Books say where the money is, in cents.
type Books struct {
	Alice, Bob int64
	InTransit  int64 // what the messages carry that wait in a queue or in the outbox, those that were given up included
}

// Expected is all the money there is: nobody brings any or takes any away.
const Expected = 2 * Opening

// Found is all the money that can be found.
func (b Books) Found() int64 { return b.Alice + b.Bob + b.InTransit }

// Drift is money from nowhere, or, below zero, money that is gone.
func (b Books) Drift() int64 { return b.Found() - Expected }

// Sum counts the money while nobody works: what a consumer holds unacked at this moment is not seen.
func (b *Bank) Sum(ctx context.Context) (Books, error) {
	var books Books
	if err := b.DB.QueryRow(ctx, `select minor from accounts where id = $1`, Alice).Scan(&books.Alice); err != nil {
		return Books{}, fmt.Errorf("balance of alice: %w", err)
	}
	if err := b.DB.QueryRow(ctx, `select minor from accounts where id = $1`, Bob).Scan(&books.Bob); err != nil {
		return Books{}, fmt.Errorf("balance of bob: %w", err)
	}
	rows, err := b.DB.Query(ctx, `select body from outbox`)
	if err != nil {
		return Books{}, fmt.Errorf("look into the outbox: %w", err)
	}
	var body string
	if _, err := pgx.ForEachRow(rows, []any{&body}, func() error {
		books.InTransit += worth([]byte(body))
		return nil
	}); err != nil {
		return Books{}, fmt.Errorf("look into the outbox: %w", err)
	}
	for _, queue := range queues {
		carried, err := b.carried(queue)
		if err != nil {
			return Books{}, err
		}
		books.InTransit += carried
	}
	return books, nil
}

// carried is the worth of the messages in a queue. They are taken without an ack and go back when the channel closes.
func (b *Bank) carried(queue string) (minor int64, err error) {
	channel, err := b.conn.Channel()
	if err != nil {
		return 0, fmt.Errorf("look into %s: %w", b.Queue(queue), err)
	}
	defer func() { _ = channel.Close() }()
	for {
		d, ok, err := channel.Get(b.Queue(queue), false)
		if err != nil {
			return 0, fmt.Errorf("look into %s: %w", b.Queue(queue), err)
		}
		if !ok {
			return minor, nil
		}
		minor += worth(d.Body)
	}
}

// worth is the money that a message carries: a request for a debit carries none, and garbage neither.
func worth(body []byte) int64 {
	order, err := Read(body)
	if err != nil || order.Type != contract.TransferCreditRequested {
		return 0
	}
	return order.Money.Minor
}

// Waiting counts the messages that no consumer has, the outbox's included, and the consumers. The quarantine does not count: what is
// there waits for a person.
func (b *Bank) Waiting(ctx context.Context) (messages, consumers int, err error) {
	if err := b.DB.QueryRow(ctx, `select count(*) from outbox`).Scan(&messages); err != nil {
		return 0, 0, fmt.Errorf("look into the outbox: %w", err)
	}
	for _, name := range []string{Requests, Credits} {
		q, err := b.Channel.QueueDeclarePassive(b.Queue(name), true, false, false, false, nil)
		if err != nil {
			return 0, 0, fmt.Errorf("look at %s: %w", b.Queue(name), err)
		}
		messages, consumers = messages+q.Messages, consumers+q.Consumers
	}
	return messages, consumers, nil
}
