package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
)

// Pool settings that url does not give. PostgreSQL allows 100 connections by default; two replicas of two services at
// 16 each leave room for people.
const (
	poolConns       = 16
	poolConnectTime = 3 * time.Second
	poolIdleTime    = 5 * time.Minute
	poolLifeJitter  = 5 * time.Minute // so that replicas do not reconnect in step
	// A process that stops between two statements (paused, swapped out) must not keep its row locks for ever.
	poolIdleInTransaction = "30s"
)

// keepalives make the server give up a connection whose client has vanished without a word, with its host, after 25 s; by default that takes
// two hours, for which its locks would stay (an advisory one for a queue, a row's). Over a Unix socket they are accepted and mean nothing.
var keepalives = map[string]string{"tcp_keepalives_idle": "10", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3"}

// offForKeys is switched off for all statements. Each of ours finds its rows by a key, but a statement is planned once and the plan is
// kept: one that was made while its table was small would go on reading the whole of it, until the next analyze, while it
// grows by thousands of rows a second (measured: three to four times the CPU for a message). Compiling pays off for
// queries that run for seconds; PostgreSQL would do it for any that has to read a whole table all the same, because of the
// price it then puts on that (measured: 200 ms for a table of one page).
var offForKeys = []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"}

// planCache keeps the plan that was made first. PostgreSQL would rather plan a statement anew each time whose array of ids is shorter than
// the ten it assumes, and at thin traffic each is; the new plan is always the old one, and costs more than running it.
const planCache = "force_generic_plan"

// OpenPool makes the connection pool of a service. It does not wait for the server: connections are made when they are
// needed, and [Migrate] is what waits at start. name becomes the application_name that pg_stat_activity shows; settings
// in url (application_name, pool_max_conns, connect_timeout, …) win. Times are read as UTC. Of several hosts it takes
// one that can be written to, unless target_session_attrs says otherwise. When tracing is on, queries are spans.
func OpenPool(ctx context.Context, url, name string, log *slog.Logger) (*pgxpool.Pool, error) {
	cfg, err := poolConfig(url, name)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open the database pool: %w", err)
	}
	log.Info("database", "url", RedactURL(url), "max_conns", cfg.MaxConns)
	return pool, nil
}

// ClosePool closes the pool when a service stops, and waits for that no longer than it is told. A connection to a server that
// hangs takes the driver up to 15 seconds to give up; nobody needs what it waits for, and the end of the process ends it.
func ClosePool(pool *pgxpool.Pool, wait time.Duration) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
	case <-time.After(wait):
	}
}

func poolConfig(url, name string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("open the database pool: unreadable url %s", RedactURL(url)) // pgx's own error quotes it
	}
	given := func(setting string) bool { return strings.Contains(url, setting) }
	if !given("pool_max_conns") {
		cfg.MaxConns = poolConns
	}
	if !given("pool_max_conn_idle_time") {
		cfg.MaxConnIdleTime = poolIdleTime
	}
	if !given("pool_max_conn_lifetime_jitter") {
		cfg.MaxConnLifetimeJitter = poolLifeJitter
	}
	conn := cfg.ConnConfig
	if !given("connect_timeout") {
		conn.ConnectTimeout = poolConnectTime
	}
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = name
	}
	if conn.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		conn.RuntimeParams["idle_in_transaction_session_timeout"] = poolIdleInTransaction
	}
	for setting, value := range keepalives {
		if conn.RuntimeParams[setting] == "" {
			conn.RuntimeParams[setting] = value
		}
	}
	for _, setting := range offForKeys {
		if conn.RuntimeParams[setting] == "" {
			conn.RuntimeParams[setting] = "off"
		}
	}
	if conn.RuntimeParams["plan_cache_mode"] == "" {
		conn.RuntimeParams["plan_cache_mode"] = planCache
	}
	if !given("target_session_attrs") && severalHosts(conn) {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	cfg.AfterConnect = registerTypes
	if TracingEnabled() {
		conn.Tracer = otelpgx.NewTracer()
	}
	return cfg, nil
}

// severalHosts tells several servers from the two ways (with and without TLS) to reach one.
func severalHosts(conn *pgx.ConnConfig) bool {
	for _, other := range conn.Fallbacks {
		if other.Host != conn.Host || other.Port != conn.Port {
			return true
		}
	}
	return false
}

// registerTypes tells a new connection how values travel. Times are read as UTC, which keeps the machine's time zone out of answers
// and messages. Ids travel as their 16 bytes; without that the driver makes a text of each, and a batch with a few hundred
// of them spends more on it than on anything else (measured: 64 ids in 316 µs instead of 11).
func registerTypes(_ context.Context, conn *pgx.Conn) error {
	pgxuuid.Register(conn.TypeMap())
	conn.TypeMap().RegisterType(&pgtype.Type{
		Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC},
	})
	return nil
}

// TransientDB says whether err means that the database is away, starting, failing over or too busy to answer in time, so
// that the same call may succeed later (503 at the edge). Lost races (serialization, deadlock) are not meant.
func TransientDB(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var connect *pgconn.ConnectError
	var network net.Error
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &connect):
		return true
	case errors.As(err, &answer):
		if answer.Code == "25006" { // read_only_sql_transaction: the server was the primary a moment ago
			return true
		}
	case errors.As(err, &network), pgconn.Timeout(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, pgconn.ErrConnClosed), errors.Is(err, puddle.ErrClosedPool):
		return true
	}
	class := retry.ClassOf(err)
	return class == retry.Timeout || class == retry.RateLimited
}
