// Package toybank is the smallest bank that can lose money: two accounts, and messages that carry money from one to the other. The
// wrong variants of exercise 13 stand on it. What each of them does wrong is in its own file, from the delivery to the ack; here is
// what they have in common and what is not their lesson: tables, queues, a command line, and a place to stop.
//
// It has a schema and queues of its own, under one name: a database or a vhost of its own would need rights that nobody in a running bank
// has, or should have. It never touches what belongs to the real services, and shares no code with them beyond the language of
// pkg/contract and the envelope of pkg/messaging.
package toybank

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The two accounts, and what is in each when the bank opens, in cents.
var (
	Alice = uuid.MustParse("a11ce000-0000-4000-8000-000000000001")
	Bob   = uuid.MustParse("b0b00000-0000-4000-8000-000000000002")
)

const (
	Opening  = 2000_00
	Currency = "EUR"
)

// The queues, each behind the bank's name and a dot.
const (
	Requests = "requests" // money that somebody asks to be taken from alice: these carry none
	Credits  = "credits"  // money taken from alice that bob is to get: these carry it
	Parked   = "parked"   // what was given up, with the money it carries
)

var queues = []string{Requests, Credits, Parked}

// unused is how long a queue of a bank that nobody dropped outlives its last use.
const unused = time.Hour

// Bank is a bank that is open. It is used by one goroutine.
type Bank struct {
	Name    string
	DB      *pgx.Conn // its schema is the only one in sight
	Channel *amqp.Channel
	Right   bool // --right was asked for

	conn     *amqp.Connection
	stopping context.Context // ends when the program is asked to end
	stopAt   string          // see Reach
}

// Address is where a bank is or is to be: the servers, with credentials, and a name for its schema and queues.
type Address struct {
	AMQPURL     string
	DatabaseURL string
	Name        string
}

// A number that does not fit statement.euros is refused by the database: somebody made the column too narrow.
const schemaSQL = `
create table if not exists accounts (
    id uuid primary key, owner text not null, minor bigint not null check (minor >= 0), frozen boolean not null default false);
create table if not exists inbox (message_id text primary key);
create table if not exists outbox (message_id text primary key, body text not null);
create table if not exists statement (payment text primary key, euros numeric(5, 2) not null)`

const openingSQL = `
insert into accounts (id, owner, minor) values ($1, 'alice', $3), ($2, 'bob', $3) on conflict do nothing`

// Open opens the bank of that name, and founds it when there is none. Its consumers end with ctx.
func Open(ctx context.Context, at Address) (b *Bank, err error) {
	b = &Bank{Name: at.Name, stopping: ctx}
	defer func() {
		if err != nil {
			b.Close()
			b = nil
		}
	}()
	config, err := pgx.ParseConfig(at.DatabaseURL)
	if err != nil {
		return b, fmt.Errorf("address of the database: %w", err)
	}
	config.RuntimeParams["search_path"] = b.schema()
	if b.DB, err = pgx.ConnectConfig(ctx, config); err != nil {
		return b, fmt.Errorf("connect to the database: %w", err)
	}
	first, _, _ := strings.Cut(at.AMQPURL, ",")
	if _, err := amqp.ParseURI(first); err != nil {
		return b, errors.New("the broker's address is not a valid AMQP URL") // the parser's words would quote the password
	}
	if b.conn, err = amqp.Dial(first); err != nil {
		return b, fmt.Errorf("connect to the broker: %w", err)
	}
	if b.Channel, err = b.conn.Channel(); err != nil {
		return b, fmt.Errorf("open a channel: %w", err)
	}
	if err := b.Channel.Confirm(false); err != nil {
		return b, fmt.Errorf("ask for confirms: %w", err)
	}
	return b, b.found(ctx)
}

// found makes what is not there yet.
func (b *Bank) found(ctx context.Context) error {
	if _, err := b.DB.Exec(ctx, "create schema if not exists "+b.schema()); err != nil {
		return fmt.Errorf("create schema %s (the database's owner may, or who is granted CREATE on it): %w", b.Name, err)
	}
	if _, err := b.DB.Exec(ctx, schemaSQL); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if _, err := b.DB.Exec(ctx, openingSQL, Alice, Bob, Opening); err != nil {
		return fmt.Errorf("open accounts: %w", err)
	}
	for _, name := range queues {
		// As the real ones are made: quorum queues, in which a message that is given back stays in front.
		q := messaging.NewQueue(b.Queue(name), messaging.Quorum)
		q.Args["x-expires"] = unused.Milliseconds()
		if _, err := b.Channel.QueueDeclare(q.Name, true, false, false, false, q.Args); err != nil {
			return fmt.Errorf("declare queue %s: %w", q.Name, err)
		}
	}
	return nil
}

func (b *Bank) schema() string { return pgx.Identifier{b.Name}.Sanitize() }

// Queue is the full name of a queue of this bank.
func (b *Bank) Queue(name string) string { return b.Name + "." + name }

// Close lets go of the servers; schema and queues stay.
func (b *Bank) Close() {
	if b.conn != nil {
		_ = b.conn.Close()
	}
	if b.DB != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = b.DB.Close(ctx)
	}
}

// Drop removes schema and queues, whatever is in them.
func (b *Bank) Drop(ctx context.Context) error {
	var failed []error
	for _, name := range queues {
		if _, err := b.Channel.QueueDelete(b.Queue(name), false, false, false); err != nil {
			failed = append(failed, fmt.Errorf("delete queue %s: %w", b.Queue(name), err))
		}
	}
	if _, err := b.DB.Exec(ctx, "drop schema if exists "+b.schema()+" cascade"); err != nil {
		failed = append(failed, fmt.Errorf("drop schema %s: %w", b.Name, err))
	}
	return errors.Join(failed...)
}

// Reset makes the bank as it was when it was founded.
func (b *Bank) Reset(ctx context.Context) error {
	if err := b.Drop(ctx); err != nil {
		return err
	}
	return b.found(ctx)
}

// Database is a connection, on which every statement is a transaction of its own, or a transaction.
type Database interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// Debit takes money from an account. It says no when the account is frozen or too little is in it.
func Debit(ctx context.Context, db Database, account uuid.UUID, minor int64) (bool, error) {
	done, err := db.Exec(ctx, `update accounts set minor = minor - $2 where id = $1 and minor >= $2 and not frozen`, account, minor)
	return done.RowsAffected() == 1, err
}

// Credit adds money to an account.
func Credit(ctx context.Context, db Database, account uuid.UUID, minor int64) error {
	_, err := db.Exec(ctx, `update accounts set minor = minor + $2 where id = $1`, account, minor)
	return err
}

// Freeze makes an account refuse every later debit.
func (b *Bank) Freeze(ctx context.Context, account uuid.UUID) error {
	if _, err := b.DB.Exec(ctx, `update accounts set frozen = true where id = $1`, account); err != nil {
		return fmt.Errorf("freeze: %w", err)
	}
	return nil
}
