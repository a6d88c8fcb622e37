package service_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

var twoMigrations = fstest.MapFS{
	"0001_things.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things (id bigint PRIMARY KEY);\nSELECT pg_sleep(0.05);\n")},
	"0002_first.sql":  {Data: []byte("-- +goose Up\nINSERT INTO things VALUES (1);\n")},
}

func openPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := service.OpenPool(t.Context(), url, "example", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func count(t *testing.T, pool *pgxpool.Pool) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM things").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestReplicasMigrateTogether(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "replicas")
	done := make(chan error, 5)
	for range cap(done) {
		pool := openPool(t, url)
		go func() { done <- service.Migrate(t.Context(), pool, twoMigrations, quiet) }()
	}
	for range cap(done) {
		if err := result(t, done); err != nil {
			t.Error(err)
		}
	}
	pool := openPool(t, url)
	if n := count(t, pool); n != 1 {
		t.Errorf("%d rows: the migrations ran more than once", n)
	}
	if err := service.Migrate(t.Context(), pool, twoMigrations, quiet); err != nil {
		t.Errorf("nothing to do: %v", err)
	}
}

func TestMigrateReportsABrokenMigration(t *testing.T) {
	t.Parallel()
	pool := openPool(t, testenv.New(t).Database(t, "broken"))
	err := service.Migrate(t.Context(), pool, fstest.MapFS{
		"0001_things.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things (id bigint);\nNONSENSE;\n")},
	}, quiet)
	if err == nil || !strings.Contains(err.Error(), "NONSENSE") {
		t.Errorf("got %v", err)
	}
	var there bool
	if err := pool.QueryRow(t.Context(), "SELECT to_regclass('things') IS NOT NULL").Scan(&there); err != nil || there {
		t.Errorf("half a migration stayed: %v %v", there, err)
	}
	if err := service.Migrate(t.Context(), pool, twoMigrations, quiet); err != nil {
		t.Errorf("the lock was not given back: %v", err)
	}
}

func TestSchemaWaitsForTheServerAndSaysSo(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "late")
	proxy := testenv.NewProxy(t, url)
	proxy.Refuse()
	pool := openPool(t, proxy.URL(url))
	var log lockedBuffer
	schema := service.NewSchema(pool, twoMigrations, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := runAsync(ctx, patience, service.Component{Name: "schema", Run: schema.Run})
	if err := schema.Ready(ctx); err == nil || !strings.Contains(err.Error(), "the database does not answer") {
		t.Errorf("without a server: %v", err)
	}
	waitUntil(t, func() bool { return strings.Contains(log.String(), "waiting for the database") })
	proxy.Accept()
	await(t, 1, schema.Migrated())
	if err := schema.Ready(ctx); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if n := strings.Count(log.String(), "waiting for the database"); n != 1 || !strings.Contains(log.String(), "the database is there") {
		t.Errorf("said %d times that it waits:\n%s", n, log.String())
	}
	cancel()
	if err := result(t, done); err != nil {
		t.Error(err)
	}
}

func TestSchemaStopsWhileItWaits(t *testing.T) {
	t.Parallel()
	pool := openPool(t, "postgres://u:s3cret@127.0.0.1:1/db")
	var log lockedBuffer
	schema := service.NewSchema(pool, twoMigrations, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := runAsync(ctx, patience, service.Component{Name: "schema", Run: schema.Run})
	waitUntil(t, func() bool { return strings.Contains(log.String(), "connection refused") })
	cancel()
	if err := result(t, done); err != nil {
		t.Error(err)
	}
	select {
	case <-schema.Migrated():
		t.Error("it says that it has migrated")
	default:
	}
}

func waitUntil(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("waited in vain")
		}
	}
}

func TestPoolSettings(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "settings")
	own := openPool(t, url)
	var name, idle, scans, compiles, plans string
	var now time.Time
	if err := own.QueryRow(t.Context(), "SELECT current_setting('application_name'), current_setting('idle_in_transaction_session_timeout'), current_setting('enable_seqscan'), current_setting('jit'), current_setting('plan_cache_mode'), now()").Scan(&name, &idle, &scans, &compiles, &plans, &now); err != nil {
		t.Fatal(err)
	}
	if name != "example" || idle != "30s" || now.Location() != time.UTC || own.Config().MaxConns != 16 || scans != "off" || compiles != "off" || plans != "force_generic_plan" {
		t.Errorf("application_name %s, idle timeout %s, enable_seqscan %s, jit %s, plans %s, zone %s, %d connections", name, idle, scans, compiles, plans, now.Location(), own.Config().MaxConns)
	}
	const keepalivesSQL = "SELECT concat_ws(' ', current_setting('tcp_keepalives_idle'), current_setting('tcp_keepalives_interval'), current_setting('tcp_keepalives_count'))"
	var keepalives string // that the server sends, so that a host that vanishes does not keep its locks
	if err := own.QueryRow(t.Context(), keepalivesSQL).Scan(&keepalives); err != nil || keepalives != "10 5 3" {
		t.Errorf("keepalives %q, %v", keepalives, err)
	}
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	given := openPool(t, url+separator+"application_name=mine&pool_max_conns=3&connect_timeout=9&tcp_keepalives_idle=7")
	if err := given.QueryRow(t.Context(), "SELECT current_setting('application_name')").Scan(&name); err != nil {
		t.Fatal(err)
	}
	if err := given.QueryRow(t.Context(), keepalivesSQL).Scan(&keepalives); err != nil || keepalives != "7 5 3" {
		t.Errorf("the url's keepalives do not win: %q, %v", keepalives, err)
	}
	if cfg := given.Config(); name != "mine" || cfg.MaxConns != 3 || cfg.ConnConfig.ConnectTimeout != 9*time.Second {
		t.Errorf("the url's settings do not win: %s, %d, %s", name, cfg.MaxConns, cfg.ConnConfig.ConnectTimeout)
	}
	if _, err := service.OpenPool(t.Context(), "postgres://u:s3cret@h:port/db", "example", quiet); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an unreadable url: %v", err)
	}
}

func TestPoolTakesTheHostThatAnswers(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "hosts")
	first := testenv.NewProxy(t, url)
	first.Refuse()
	second := testenv.NewProxy(t, url)
	several := strings.Replace(second.URL(url), second.Addr(), first.Addr()+","+second.Addr(), 1)
	pool := openPool(t, several)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE things (id bigint)"); err != nil {
		t.Error(err)
	}
}

func TestPoolPassesOverHostsThatCannotBeWrittenTo(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "standby")
	if _, err := openPool(t, url).Exec(t.Context(), "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$"); err != nil {
		t.Fatal(err)
	}
	first, second := testenv.NewProxy(t, url), testenv.NewProxy(t, url)
	several := strings.Replace(second.URL(url), second.Addr(), first.Addr()+","+second.Addr(), 1)
	if err := openPool(t, several).Ping(t.Context()); err == nil || !service.TransientDB(err) {
		t.Errorf("took a server that cannot be written to: %v", err)
	}
	separator := "?"
	if strings.Contains(several, "?") {
		separator = "&"
	}
	if err := openPool(t, several+separator+"target_session_attrs=any").Ping(t.Context()); err != nil {
		t.Errorf("the url's wish does not count: %v", err)
	}
}

func TestTransientDBTellsAwayFromWrong(t *testing.T) {
	t.Parallel()
	refused := openPool(t, "postgres://u@127.0.0.1:1/db")
	closed := openPool(t, "postgres://u@127.0.0.1:1/db")
	closed.Close()
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-late.Done()
	for name, err := range map[string]error{
		"refused": refused.Ping(t.Context()), "pool closed": closed.Ping(t.Context()), "out of time": refused.Ping(late),
		"network": &net.OpError{Op: "read", Err: errors.New("reset")}, "end": io.ErrUnexpectedEOF,
	} {
		if err == nil || !service.TransientDB(fmt.Errorf("query: %w", err)) {
			t.Errorf("%s: %v is not taken for transient", name, err)
		}
	}
	for _, code := range []string{"57P01", "57P03", "08006", "53300", "25006", "57014"} {
		if !service.TransientDB(&pgconn.PgError{Code: code}) {
			t.Errorf("%s is not taken for transient", code)
		}
	}
	others := []error{nil, errors.New("other"), context.Canceled}
	for _, code := range []string{"40001", "40P01", "23505", "42P01", "22003"} {
		others = append(others, &pgconn.PgError{Code: code})
	}
	if i := slices.IndexFunc(others, service.TransientDB); i >= 0 {
		t.Errorf("%v is taken for transient", others[i])
	}
}

func TestConnectionsCutInAQueryAreTransient(t *testing.T) {
	t.Parallel()
	url := testenv.New(t).Database(t, "cut")
	proxy := testenv.NewProxy(t, url)
	pool := openPool(t, proxy.URL(url))
	failed := make(chan error, 1)
	go func() {
		_, err := pool.Exec(t.Context(), "SELECT pg_sleep(60)")
		failed <- err
	}()
	watcher := openPool(t, url)
	waitUntil(t, func() bool {
		var running bool
		err := watcher.QueryRow(t.Context(), "SELECT exists(SELECT FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND datname = current_database())").Scan(&running)
		return err == nil && running
	})
	proxy.Cut()
	if err := result(t, failed); !service.TransientDB(err) {
		t.Errorf("%v is not taken for transient", err)
	}
}
