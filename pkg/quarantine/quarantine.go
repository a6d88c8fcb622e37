// Package quarantine is what an operator does with messages that were given up: look at them, send them on their way again, or throw
// them away, each of it over HTTP and on the service that owns the queue.
//
// Looking never takes anything: the messages are taken in hand without an ack, chunk by chunk, each over a channel of its own,
// and closing the channels one after the other puts all of them back in their order. A replay publishes a message, waits until
// the broker has it, and only then acks the parked one; so whatever breaks in between leaves a second copy, which the inbox
// absorbs, and never a hole. Everything that changes something is written into an audit table before it happens, and nothing is
// changed unless it was asked for in so many words ("confirm": true).
//
// While somebody looks, nobody else can: what one holds unacknowledged is invisible to the other. So there is one look or run at a
// time for each queue, over all replicas, kept by a lock of the database.
package quarantine

import (
	"context"
	_ "embed"
	"log/slog"
	"net"
	"slices"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
)

// OpenAPI describes the routes, as a fragment for service.MergeOpenAPI. It refers to the schema Problem of the service.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Broker is the part of *messaging.Session that is needed here.
type Broker interface {
	Dial(ctx context.Context, purpose string, wrap ...func(net.Conn) net.Conn) (*amqp.Connection, error)
	Publish(ctx context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error)
}

// Config says what a service owns. Pool, Session and Queues are required.
type Config struct {
	Session Broker
	Pool    *pgxpool.Pool
	Queues  []string // quarantine queues that this service owns

	// Targets are the work queues to which a replay may send. A header says where a message came from, and anybody can write a
	// header: no other queue is ever sent to.
	Targets []string
	// Consumed are those of them that this service consumes itself, each under its own name in the inbox: only for these can be
	// told what a replay will do, or has done.
	Consumed []string
	// Exchanges are those to which a replay "to the exchange" may publish.
	Exchanges []string
	// LongestRoad is how long a message can be under way through all of its attempts before it is given up again.
	LongestRoad time.Duration
	// Parse says what is wrong with a message for its consumer, in a queue that is Consumed; nil demands only an envelope.
	Parse func(*messaging.Message) error
	// KnownTransfers answers which of the transfers exist; nil: this service cannot tell. Ids are as the messages spell them.
	KnownTransfers func(ctx context.Context, ids []string) (map[string]bool, error)

	Registerer prometheus.Registerer // default none
	Logger     *slog.Logger          // default slog.Default()
	Interval   time.Duration         // of the gauges; default 15 s
	LockWait   time.Duration         // for somebody else's look or run to end; default 5 s
}

const defaultLockWait = 5 * time.Second

// Quarantine serves the quarantine queues of one service.
type Quarantine struct {
	Config
	metrics *metrics
	slot    chan struct{}   // taken by whoever looks or waits for it: waiting in the database would keep a connection each
	handful int             // messages that a run takes in hand at once
	keeping time.Duration   // for how long it may keep them, see longRound
	lost    map[string]lost // by queue; whoever has the slot
	poll    time.Duration   // how often a canary is looked for, at first
	margin  time.Duration   // what it gets beyond the longest road
	// at is called between the steps of a run, so that a test can end it there as a crash would.
	at func(step) error
}

// step is a place between two steps of a run.
type step int

const (
	afterAuditStarted step = iota
	afterPublish
	afterAck
)

// New makes it. It panics when a required part of the configuration is missing, which is a mistake in wiring.
func New(config Config) *Quarantine {
	if config.Session == nil || config.Pool == nil || len(config.Queues) == 0 {
		panic("quarantine.New: Session, Pool and Queues are required")
	}
	for _, queue := range config.Consumed {
		if !slices.Contains(config.Targets, queue) {
			panic("quarantine.New: " + queue + " is consumed and no target")
		}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Interval <= 0 {
		config.Interval = 15 * time.Second
	}
	if config.LockWait <= 0 {
		config.LockWait = defaultLockWait
	}
	return &Quarantine{
		Config: config, metrics: newMetrics(config.Queues, config.Interval, config.Registerer), slot: make(chan struct{}, 1), lost: map[string]lost{},
		handful: actable, keeping: longRound, poll: 250 * time.Millisecond, margin: canaryMargin, at: func(step) error { return nil },
	}
}

// Register adds the routes to a service's /admin group, which guards them.
func (q *Quarantine) Register(admin *echo.Group) {
	admin.GET("/quarantine", q.list)
	admin.GET("/quarantine/:queue/:key", q.show)
	admin.POST("/quarantine/replay", q.replay)
	admin.POST("/quarantine/discard", q.discard)
	admin.GET("/quarantine/audit", q.listAudit)
	admin.GET("/quarantine/audit/:id", q.showAudit)
}
