package service_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
)

func TestProbeFindsADatabaseThatTakesWrites(t *testing.T) {
	t.Parallel()
	pool := openPool(t, withSetting(t, testenv.New(t).Database(t, "writable"), "pool_max_conns", "1"))
	probe := service.Writable(pool)
	if err := probe(t.Context()); err != nil {
		t.Errorf("a server that is well: %v", err)
	}
	conn, err := pool.Acquire(t.Context()) // all of the pool is in use
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := probe(t.Context()); err != nil {
		t.Errorf("a pool that is used up says nothing about its server: %v", err)
	}
}

func TestProbeFindsADatabaseThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	address := testenv.New(t).Database(t, "readonly")
	pool := openPool(t, address)
	probe := service.Writable(pool)
	if _, err := pool.Exec(t.Context(), "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$"); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := probe(t.Context()); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a read-only database: %v", err)
	}
}

func TestProbeFindsNobody(t *testing.T) {
	t.Parallel()
	address := testenv.New(t).Database(t, "away")
	proxy := testenv.NewProxy(t, address)
	probe := service.Writable(openPool(t, proxy.URL(address)))
	if err := probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	if err := probe(t.Context()); err == nil {
		t.Error("nobody is there, and it is well")
	}
	proxy.Accept()
	if err := probe(t.Context()); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

// A server that takes connections and says nothing, and one that stops in the middle of everything.
func TestProbeOfAServerThatHangsEndsInTime(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	address := testenv.New(t).Database(t, "hangs")
	proxy := testenv.NewProxy(t, address)
	proxy.Pause()
	for name, url := range map[string]string{
		"silent": fmt.Sprintf("postgres://user:secret@%s/bank?sslmode=disable", silent.Addr()),
		"paused": proxy.URL(address),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := service.Writable(openPool(t, url))(ctx)
		if took := time.Since(began); err == nil || took > 5*time.Second || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v after %v", name, err, took)
		}
	}
}

// withSetting is a database's address with one more setting.
func withSetting(t *testing.T, address, name, value string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}
