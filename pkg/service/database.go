package service

import (
	"context"
	"io/fs"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
)

// OpenPool makes the connection pool of a service. It does not wait for the server: connections are made when they are
// needed, and [Migrate] is what waits at start. name becomes the application_name that pg_stat_activity shows; settings in
// url (application_name, pool_max_conns, …) win. Times are read as UTC. With several hosts it takes one that can be written to.
func OpenPool(ctx context.Context, url, name string, log *slog.Logger) (*pgxpool.Pool, error) {
	return nil, nil
}

// Migrate brings the schema up to date with the goose migrations in the root of migrations. Several replicas may do so at once: a session
// advisory lock lets one work while the others wait. While the server is missing or starting it waits, says so once per
// change of reason, and tries again with jittered backoff until ctx ends.
func Migrate(ctx context.Context, pool *pgxpool.Pool, migrations fs.FS, log *slog.Logger) error {
	return nil
}

// Schema is the component that runs Migrate at start, so that the HTTP server answers /healthz and /readyz while the
// database is still away. What needs the tables starts after Migrated.
type Schema struct{ migrated chan struct{} }

// NewSchema makes the component; see Migrate for what the arguments mean.
func NewSchema(pool *pgxpool.Pool, migrations fs.FS, log *slog.Logger) *Schema { return &Schema{} }

// Run migrates and then waits for ctx to end.
func (s *Schema) Run(ctx context.Context) error { return nil }

// Migrated is closed when the schema is up to date.
func (s *Schema) Migrated() <-chan struct{} { return s.migrated }

// Ready says why the schema is not usable: still waiting or migrating. It is a readiness check.
func (s *Schema) Ready(ctx context.Context) error { return nil }

// TransientDB says whether err means that the database is away, starting, failing over or too busy to answer in time, so
// that the same call may succeed later (503 at the edge). Lost races (serialization, deadlock) are not meant.
func TransientDB(err error) bool { return false }
