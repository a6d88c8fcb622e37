package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrate brings the schema up to date with the goose migrations in the root of migrations. Several replicas may do so
// at once: a session advisory lock lets one work while the others wait. While the server is missing, starting or not
// set up yet (no such database or role), it waits, says so once per change of reason, and tries again with jittered
// backoff until ctx ends. An error of a migration itself ends it.
func Migrate(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS, log *slog.Logger) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval = 100*time.Millisecond, 3*time.Second
	var reason string
	for {
		err := migrate(ctx, pool, migrations, log)
		switch {
		case err == nil:
			if reason != "" {
				log.Info("the database is there")
			}
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("migrate: %w", context.Cause(ctx))
		case !TransientDB(err):
			return fmt.Errorf("migrate: %w", err)
		}
		if now := awayBecause(err); now != reason {
			log.Warn("waiting for the database", "reason", now)
			reason = now
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.NextBackOff()):
		}
	}
}

// awayBecause is an error without what differs from try to try, such as ports.
func awayBecause(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Message
	}
	for { // the innermost says it shortest: connection refused, no such host
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}

// migrate takes the lock on a connection of its own and keeps it as long as that lives: nothing can leave it locked. It
// waits for the lock inside the server, so that the next replica goes on the moment the first is done; goose's own
// locker asks again every few seconds, and does not cover the making of its version table.
func migrate(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS, log *slog.Logger) error {
	locked, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		bye, cancel := context.WithTimeout(ctx, time.Second) // ends with ctx: no good-bye to a server that hangs
		defer cancel()
		_ = locked.Close(bye)
	}()
	if _, err := locked.Exec(ctx, "SELECT pg_advisory_lock($1)", lock.DefaultLockID); err != nil {
		return fmt.Errorf("take the migration lock: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer func() { _ = db.Close() }() // the pool stays open
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	for _, result := range results {
		log.Info("migrated", "version", result.Source.Version, "file", result.Source.Path, "took", result.Duration)
	}
	return err
}

// Schema is the component that runs Migrate at start, so that the HTTP server answers /healthz and /readyz while the
// database is still away. What needs the tables starts after Migrated.
type Schema struct {
	pool       *pgxpool.Pool
	migrations fs.FS
	log        *slog.Logger
	migrated   chan struct{}
}

// NewSchema makes the component; see Migrate for what the arguments mean.
func NewSchema(pool *pgxpool.Pool, migrations fs.FS, log *slog.Logger) *Schema {
	return &Schema{pool: pool, migrations: migrations, log: log, migrated: make(chan struct{})}
}

// Run migrates and then waits for ctx to end. It may run once.
func (s *Schema) Run(ctx context.Context) error {
	if err := Migrate(ctx, s.pool, s.migrations, s.log); err != nil {
		return err
	}
	close(s.migrated)
	<-ctx.Done()
	return nil
}

// Migrated is closed when the schema is up to date.
func (s *Schema) Migrated() <-chan struct{} { return s.migrated }

// Ready says why the database cannot be used: the schema is not up to date yet, or the server does not answer. It is a
// readiness check.
func (s *Schema) Ready(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database does not answer: %s", awayBecause(err))
	}
	select {
	case <-s.migrated:
		return nil
	default:
		return errors.New("the schema is being brought up to date")
	}
}
