// Package testenv gives a test real servers: RabbitMQ and PostgreSQL, never a fake.
//
// New is what nearly every test wants: a virtual host and databases of its own on one pair of servers that all tests of a run share,
// so that tests can run in parallel and none sees another's messages or rows. A test that kills or stops a server takes
// a pair of its own with Own. Proxy stands between a client and a server for faults of the network.
//
// The servers are private (package servers) unless AMQP_URL or DATABASE_URL name others. In that case the user of AMQP_URL
// must be an administrator of the broker; RABBITMQ_MANAGEMENT_URL says where its management API is, by
// default port 15672 of the same host with the same credentials.
package testenv

import (
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv/servers"
)

// startTimeout is generous: several packages may be compiling while the broker starts.
const startTimeout = 3 * time.Minute

// New returns a fresh virtual host on the shared servers. Its databases are dropped when the test ends, and it itself soon afterwards.
func New(t testing.TB) *Env {
	t.Helper()
	lease, err := shared()
	if err != nil {
		t.Fatalf("servers for the test: %v", err)
	}
	e := newEnv(t, lease.Addresses)
	t.Cleanup(func() {
		m := management.New(e.ManagementURL)
		if os.Getenv("AMQP_URL") != "" { // somebody's, who wants it back as it was
			deleteVHost(t, m, e.VHost)
			return
		}
		leaveVHost(t, m, e.VHost)
	})
	return e
}

// Servers is a private pair; see Own.
type Servers struct{ *servers.Servers }

// Own starts a pair of servers for this test alone, which takes about ten seconds, and stops it when the test ends. The methods
// KillBroker, StopBroker, StartBroker, KillPostgres, StopPostgres and StartPostgres keep ports and data.
func Own(t testing.TB) *Servers {
	t.Helper()
	parent, err := folder()
	if err != nil {
		t.Fatalf("folder for servers: %v", err)
	}
	dir, err := os.MkdirTemp(parent, "own-")
	if err != nil {
		t.Fatalf("folder for servers: %v", err)
	}
	// MkdirTemp makes it 0700, but root's PostgreSQL runs as another user, who must pass.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatalf("folder for servers: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := servers.Start(ctx, servers.Config{Dir: dir, Ephemeral: true})
	if err != nil {
		t.Fatalf("servers for the test: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop servers of the test: %v", err)
		}
	})
	return &Servers{Servers: s}
}

// Env returns a fresh virtual host on this pair, which ends with it.
func (s *Servers) Env(t testing.TB) *Env {
	t.Helper()
	return newEnv(t, s.Addresses())
}

// shared returns the servers that this process shares with the other test processes. Its lease is kept here and ends with the
// process, not with a test: the next test of the package wants the same servers.
var shared = sync.OnceValues(func() (*servers.Lease, error) {
	given := servers.Addresses{
		AMQPURL:       os.Getenv("AMQP_URL"),
		ManagementURL: os.Getenv("RABBITMQ_MANAGEMENT_URL"),
		PostgresURL:   os.Getenv("DATABASE_URL"),
	}
	if given.AMQPURL != "" && given.ManagementURL == "" {
		var err error
		if given.ManagementURL, err = usualManagementURL(given.AMQPURL); err != nil {
			return nil, err
		}
	}
	if given.AMQPURL != "" && given.PostgresURL != "" {
		return &servers.Lease{Addresses: given}, nil
	}
	lease, err := Hold(context.Background())
	if err != nil {
		return nil, err
	}
	if given.AMQPURL != "" {
		lease.AMQPURL, lease.ManagementURL = given.AMQPURL, given.ManagementURL
	}
	if given.PostgresURL != "" {
		lease.PostgresURL = given.PostgresURL
	}
	return lease, nil
})

// Hold takes a lease on the shared servers, starting them when nobody has. A test run holds one from before its first
// test process until after its last, so that the servers start once.
func Hold(ctx context.Context) (*servers.Lease, error) {
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return servers.Share(ctx, dir, nil)
}

// usualManagementURL guesses the management API's address from the broker's.
func usualManagementURL(amqpURL string) (string, error) {
	u, err := url.Parse(amqpURL)
	if err != nil {
		return "", fmt.Errorf("AMQP_URL cannot be read as one URL: %w", err)
	}
	guess := url.URL{Scheme: "http", User: u.User, Host: net.JoinHostPort(u.Hostname(), "15672")}
	return guess.String(), nil
}

// folder returns .bank/test in the module's root, or a folder under the system's temporary one when that cannot
// be written, for example because another user tested this clone before.
func folder() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, ".bank", "test")
	if writable(dir) {
		return dir, nil
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(root)) // a hash's Write never fails
	dir = filepath.Join(os.TempDir(), "banking-test-"+strconv.Itoa(os.Getuid())+"-"+strconv.FormatUint(hash.Sum64(), 36))
	if !writable(dir) {
		return "", fmt.Errorf("neither %s nor %s can be written", filepath.Join(root, ".bank", "test"), dir)
	}
	return dir, nil
}

func writable(dir string) bool {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return false
	}
	// The lock is what processes of different users would fight about.
	probe, err := os.OpenFile(filepath.Join(dir, "start.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return false
	}
	if err := probe.Close(); err != nil {
		return false
	}
	// Root can write everywhere, but must not take over a folder in which a user tests.
	probe, err = os.CreateTemp(dir, "probe-")
	if err != nil {
		return false
	}
	return probe.Close() == nil && os.Remove(probe.Name()) == nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find module root: %w", err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above", start)
		}
	}
}
