package service_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing/fstest"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgconn"
)

// orders are the migrations of a shop. A service embeds a directory of files.
var orders = fstest.MapFS{
	"00001_orders.sql": {Data: []byte("-- +goose Up\ncreate table orders (id text primary key);\n")},
}

// Opening a pool waits for nothing; Migrate waits for the database. Every replica calls it at every start.
func ExampleOpenPool() {
	t, end := testenv.Example()
	defer end()
	log := slog.New(slog.DiscardHandler)
	pool, err := service.OpenPool(t.Context(), testenv.New(t).Database(t, "shop"), "shop", log)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.ClosePool(pool, time.Second)
	for range 2 {
		fmt.Println(service.Migrate(t.Context(), pool, orders, log))
	}
	var as string
	var n int
	err = pool.QueryRow(t.Context(), `select current_setting('application_name'), (select count(*) from orders)`).Scan(&as, &n)
	fmt.Println(as, n, err)
	// Output:
	// <nil>
	// <nil>
	// shop 0 <nil>
}

// As a component the schema is brought up to date beside the HTTP server, which says meanwhile why the service is not ready. What needs the
// tables waits for Migrated.
func ExampleNewSchema() {
	t, end := testenv.Example()
	defer end()
	log := slog.New(slog.DiscardHandler)
	pool, err := service.OpenPool(t.Context(), testenv.New(t).Database(t, "shop"), "shop", log)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.ClosePool(pool, time.Second)
	schema := service.NewSchema(pool, orders, log)
	fmt.Println(schema.Ready(t.Context()))

	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- schema.Run(ctx) }()
	<-schema.Migrated()
	fmt.Println(schema.Ready(t.Context()))
	stop()
	fmt.Println(<-stopped)
	// Output:
	// the schema is being brought up to date
	// <nil>
	// <nil>
}

// A consumer whose breaker has opened asks the probe whether it may go on (messaging.ConsumerConfig.Probe). A database that answers and takes no
// writes is of no use to it.
func ExampleWritable() {
	t, end := testenv.Example()
	defer end()
	pool, err := service.OpenPool(t.Context(), testenv.New(t).Database(t, "shop"), "shop", slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer service.ClosePool(pool, time.Second)
	probe := service.Writable(pool)
	fmt.Println(probe(t.Context()))
	_, err = pool.Exec(t.Context(), `do $$ begin
		execute format('alter database %I set default_transaction_read_only = on', current_database());
	end $$`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ping:", pool.Ping(t.Context()))
	fmt.Println(probe(t.Context()))
	// Output:
	// <nil>
	// ping: <nil>
	// probe the database: it is read-only (default_transaction_read_only)
}

// Only what may be gone at the next call is answered with 503.
func ExampleTransientDB() {
	for _, err := range []error{
		&pgconn.PgError{Code: "57P03", Message: "the database system is starting up"},
		&pgconn.PgError{Code: "23505", Message: "duplicate key value violates unique constraint"},
		context.DeadlineExceeded,
		errors.New("a mistake in the program"),
	} {
		fmt.Println(service.TransientDB(fmt.Errorf("place an order: %w", err)))
	}
	// Output:
	// true
	// false
	// true
	// false
}
