package pipeline

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// Whatever keeps a connection from coming about, it is not the fault of the message that needs it.
func TestClassOfWhatKeepsAConnectionAway(t *testing.T) {
	t.Parallel()
	pool := func(t *testing.T, url string) *pgxpool.Pool {
		pool, err := pgxpool.New(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	for name, c := range map[string]struct {
		pool func(t *testing.T) *pgxpool.Pool
		end  func(context.CancelFunc)
		want retry.Class
	}{
		"the pool is closed": {pool: func(t *testing.T) *pgxpool.Pool {
			pool := pool(t, "postgres://localhost:1/x")
			pool.Close()
			return pool
		}, want: retry.Timeout},
		"it refuses TLS": {pool: func(t *testing.T) *pgxpool.Pool {
			return pool(t, "postgres://"+answering(t, "N")+"/x?sslmode=require")
		}, want: retry.Timeout},
		"it speaks something else": {pool: func(t *testing.T) *pgxpool.Pool {
			return pool(t, "postgres://"+answering(t, "HTTP/1.1 400 Bad Request\r\n\r\n")+"/x?sslmode=disable")
		}, want: retry.Timeout},
		"all are in use": {pool: func(t *testing.T) *pgxpool.Pool {
			config, err := pgxpool.ParseConfig(testenv.New(t).Database(t, "pipeline"))
			if err != nil {
				t.Fatal(err)
			}
			config.MaxConns = 1
			pool, err := pgxpool.NewWithConfig(context.Background(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(conn.Release)
			return pool
		}, want: retry.RateLimited},
		"we stop": {pool: func(t *testing.T) *pgxpool.Pool {
			return pool(t, "postgres://localhost:1/x")
		}, end: func(cancel context.CancelFunc) { cancel() }, want: retry.Cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := c.pool(t)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if c.end != nil {
				c.end(cancel)
			}
			tx, err := Begin(ctx, pool, nothing)
			if err == nil {
				tx.Rollback()
				t.Fatal("it has begun")
			}
			if got := retry.ClassOf(err); got != c.want {
				t.Errorf("class %q of %v, want %q", got, err, c.want)
			}
		})
	}
	if got := retry.ClassOf(acquireError(pool(t, "postgres://localhost:1/x"), puddle.ErrClosedPool)); got != retry.Timeout {
		t.Errorf("a closed pool: %q", got)
	}
	if err := acquireError(pool(t, "postgres://localhost:1/x"), puddle.ErrClosedPool); !errors.Is(err, puddle.ErrClosedPool) {
		t.Errorf("the reason is lost: %v", err)
	}
}

// answering is the address of a server that says one thing to everybody.
func answering(t *testing.T, what string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte(what))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}
