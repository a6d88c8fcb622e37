// Package servers runs a private PostgreSQL and a private RabbitMQ from the packages that the system has installed.
//
// Nothing of them is shared with servers that the machine may already run: they have their own ports (loopback only),
// data, configuration, passwords and, for Erlang, their own home and port mapper. They end with the process that started them, even when
// that is killed; see package supervise. Both keep their default durability: what they acknowledged is on disk.
package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/banking/internal/supervise"
)

// Config says where a pair of servers lives and how long.
type Config struct {
	// Dir holds everything of the pair; it is created. Only one pair can run in it at a time.
	Dir string
	// Log receives progress for people, one line each; nil means none.
	Log io.Writer
	// Ephemeral servers are stopped without ceremony and their data is removed. Others keep it in Dir.
	Ephemeral bool
	// PostgresEnv and BrokerEnv are added to the environment of the two servers: a benchmark puts a library in front of their disk.
	PostgresEnv, BrokerEnv []string

	shared *sharing
}

// Servers is a running pair. Stopping and starting one of the two keeps its ports and its data.
type Servers struct {
	cfg      Config
	programs programs
	access   access
	ports    Ports // its own, and those of what Run starts
	sup      *supervise.Supervisor
	pg       postgres
	broker   broker
}

// errEndedEarly says that a server ended before it was ready, which is what a port taken by someone else looks like.
var errEndedEarly = errors.New("ended before it was ready")

// startAttempts is how often Start tries other ports: between the choice of a free port and its use by
// the server, another program can take it.
const startAttempts = 3

// Start starts both servers and returns when both answer. When ctx ends first, or one fails, nothing is left running.
func Start(ctx context.Context, cfg Config) (*Servers, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("server folder: %w", err)
	}
	cfg.Dir = dir
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	found, err := findPrograms()
	if err != nil {
		return nil, err
	}
	for _, sub := range []string{"", "log", "rabbitmq"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("server folder: %w", err)
		}
	}
	s := &Servers{cfg: cfg, programs: found}
	if s.pg, err = placePostgres(dir); err != nil {
		return nil, err
	}
	if s.sup, err = supervise.New(s.supervision()); err != nil {
		return nil, fmt.Errorf("servers in %s: %w", dir, err)
	}
	for attempt := 1; ; attempt++ {
		err = s.startBoth(ctx, attempt > 1)
		if err == nil {
			return s, nil
		}
		if !errors.Is(err, errEndedEarly) || attempt == startAttempts {
			return nil, errors.Join(err, s.Stop())
		}
		_, _ = fmt.Fprintf(cfg.Log, "servers: trying other ports: %v\n", err)
		if err := s.stopBoth(); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
}

func (s *Servers) supervision() supervise.Config {
	cfg := supervise.Config{
		Log:  filepath.Join(s.cfg.Dir, "log", "supervisor.log"),
		Lock: SupervisorLock(s.cfg.Dir),
	}
	if s.cfg.Ephemeral {
		cfg.RemoveLast = []string{s.pg.dir, filepath.Join(s.cfg.Dir, "postgres"), filepath.Join(s.cfg.Dir, "rabbitmq"),
			filepath.Join(s.cfg.Dir, accessFile)}
	}
	if s.cfg.shared != nil {
		cfg.Lease, cfg.Linger = s.cfg.shared.lease(), s.cfg.shared.linger
		cfg.RemoveFirst = []string{s.cfg.shared.addresses()}
	} else if s.cfg.Ephemeral {
		cfg.RemoveLast = append(cfg.RemoveLast, s.cfg.Dir)
	}
	return cfg
}

func (s *Servers) startBoth(ctx context.Context, otherPorts bool) error {
	var err error
	if s.access, err = loadAccess(s.cfg.Dir, &s.ports, otherPorts); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.StartPostgres(ctx) })
	group.Go(func() error { return s.StartBroker(ctx) })
	return group.Wait()
}

func (s *Servers) stopBoth() error {
	return errors.Join(s.StopBroker(), s.StopPostgres())
}

// Stop stops both servers and everything that Run started, and returns when they have ended.
func (s *Servers) Stop() error {
	defer s.ports.Release()
	if err := s.sup.Close(); err != nil {
		return fmt.Errorf("stop servers: %w", err)
	}
	return nil
}

// Gone is closed when the supervisor has ended without being asked to: nothing can be started again then, see
// supervise.ErrGone, and Stop waits for what is ending.
func (s *Servers) Gone() <-chan struct{} { return s.sup.Gone() }

// Ports are those of the servers. What Run starts takes its own here; all are given back when everything has been stopped.
func (s *Servers) Ports() *Ports { return &s.ports }

// clientRank is the lowest stop rank of what Run starts; the servers themselves have rank 0.
const clientRank = 1

// Run starts another program that must end with the servers, before them, however often a server was started again.
func (s *Servers) Run(p supervise.Process) (*supervise.Child, error) {
	p.StopRank = max(p.StopRank, clientRank)
	return s.sup.Start(p)
}

// Addresses are the administrators' entrances to a pair of servers, with credentials.
type Addresses struct {
	AMQPURL       string // vhost "/"
	ManagementURL string // HTTP
	PostgresURL   string // database postgres, as superuser
	PrometheusURL string // the broker's metrics; empty when not known
}

// Addresses returns the administrators' entrances.
func (s *Servers) Addresses() Addresses {
	return Addresses{
		AMQPURL:       s.AMQPURL(adminUser, s.access.AdminPassword, "/"),
		ManagementURL: s.ManagementURL(adminUser, s.access.AdminPassword),
		PostgresURL:   s.PostgresURL(superuser, s.access.AdminPassword, "postgres"),
		PrometheusURL: (&url.URL{Scheme: "http", Host: loopback(s.access.PrometheusPort), Path: "/metrics"}).String(),
	}
}

// AMQPURL is the broker's address for a user and a vhost.
func (s *Servers) AMQPURL(user, password, vhost string) string {
	u := url.URL{Scheme: "amqp", User: url.UserPassword(user, password), Host: loopback(s.access.AMQPPort),
		Path: "/" + vhost, RawPath: "/" + url.PathEscape(vhost)}
	return u.String()
}

// ManagementURL is the address of the broker's management API for a user.
func (s *Servers) ManagementURL(user, password string) string {
	u := url.URL{Scheme: "http", User: url.UserPassword(user, password), Host: loopback(s.access.ManagementPort)}
	return u.String()
}

// PostgresURL is the address of a database for a role.
func (s *Servers) PostgresURL(role, password, database string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Host: loopback(s.access.PostgresPort),
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// probeInterval is how often a starting server is asked whether it is ready.
const probeInterval = 100 * time.Millisecond

// awaitReady probes until the server answers. It gives up when the server ends or ctx does, and then shows the end of
// the server's log, which is where the reason stands.
func awaitReady(ctx context.Context, name string, child *supervise.Child, log string, probe func(context.Context) error) error {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	var err error
	for {
		if err = probe(ctx); err == nil {
			return nil
		}
		select {
		case <-child.Done():
			return fmt.Errorf("%s %w (%s); the end of %s:\n%s", name, errEndedEarly, child.Exit(), log, tail(log))
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w; last answer: %w; the end of %s:\n%s",
				name, ctx.Err(), err, log, tail(log))
		case <-tick.C:
		}
	}
}

func tail(path string) string {
	const most = 2000
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(content) > most {
		content = content[len(content)-most:]
	}
	return string(content)
}

// SupervisorLock is the file that is locked as long as servers run in dir, also those of a process that was killed, which end soon after it.
func SupervisorLock(dir string) string { return filepath.Join(dir, "supervisor.lock") }
