package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/banking/internal/invariants"
	"example.com/banking/internal/management"
	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// system is a whole bank for one run: private servers with empty data and the default durability, and both services as the
// programs that were built, with the rights that they have in production.
type system struct {
	dir      string
	programs string // folder of the built services
	env      []string
	servers  *servers.Servers
	access   servers.Bank
	pools    map[string]*pgxpool.Pool
	services map[string]*supervise.Child
	urls     map[string]string

	firstStarts []time.Duration // in the order of serviceNames
}

// startSystem starts everything and returns when both services are ready. Of the servers' configuration it sets the folder.
func (b *bench) startSystem(ctx context.Context, cfg servers.Config, env ...string) (_ *system, err error) {
	dir, err := publicFolder()
	if err != nil {
		return nil, err
	}
	s := &system{
		dir: dir, programs: b.programs, env: env,
		pools: map[string]*pgxpool.Pool{}, services: map[string]*supervise.Child{}, urls: map[string]string{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	cfg.Dir, cfg.Ephemeral = filepath.Join(dir, "servers"), true
	if s.servers, err = servers.Start(ctx, cfg); err != nil {
		return s, err
	}
	if s.access, err = s.servers.Provision(ctx); err != nil {
		return s, err
	}
	for _, name := range serviceNames {
		took, err := s.startService(ctx, name)
		if err != nil {
			return s, err
		}
		s.firstStarts = append(s.firstStarts, took)
	}
	for name, url := range map[string]string{"account": s.access.AccountDatabaseURL, "transfer": s.access.TransferDatabaseURL} {
		if s.pools[name], err = pgxpool.New(ctx, url); err != nil {
			return s, err
		}
	}
	if b.versions == "" {
		b.versions, err = s.describe(ctx)
	}
	return s, err
}

var serviceNames = []string{"account", "transfer"}

// publicFolder makes a temporary folder that others can read: when root starts PostgreSQL, it runs as another user.
func publicFolder() (string, error) {
	dir, err := os.MkdirTemp("", "banking-bench-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// describe says which servers these are, and how durable.
func (s *system) describe(ctx context.Context) (string, error) {
	var postgres, settings string
	err := s.pools["account"].QueryRow(ctx, `
select current_setting('server_version'), string_agg(name || ' ' || current_setting(name), ', ' order by name)
from unnest(array['fsync', 'synchronous_commit', 'wal_sync_method', 'shared_buffers']) name`).Scan(&postgres, &settings)
	if err != nil {
		return "", err
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	if err := management.New(s.access.ManagementURL).Get(ctx, "/api/overview", &overview); err != nil {
		return "", err
	}
	return fmt.Sprintf("PostgreSQL %s (%s), RabbitMQ %s", postgres, settings, overview.Version), nil
}

// administer runs a statement as the database server's administrator.
func (s *system) administer(ctx context.Context, sql string) error {
	conn, err := pgx.Connect(ctx, s.servers.Addresses().PostgresURL)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// stop ends everything and removes what it left.
func (s *system) stop() error {
	for _, pool := range s.pools {
		pool.Close()
	}
	var err error
	if s.servers != nil {
		err = s.servers.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// startService starts a service on a free port and returns when it is ready, with the time that took.
func (s *system) startService(ctx context.Context, name string) (time.Duration, error) {
	database, broker := s.access.AccountDatabaseURL, s.access.AccountAMQPURL
	if name == "transfer" {
		database, broker = s.access.TransferDatabaseURL, s.access.TransferAMQPURL
	}
	return s.launch(ctx, name, "DATABASE_URL="+database, "AMQP_URL="+broker)
}

// launch does so with any of the programs, with these settings beside those of all.
func (s *system) launch(ctx context.Context, name string, settings ...string) (time.Duration, error) {
	port, err := servers.FreePort(nil)
	if err != nil {
		return 0, err
	}
	s.urls[name] = fmt.Sprintf("http://127.0.0.1:%d", port)
	began := time.Now()
	child, err := s.servers.Run(supervise.Process{
		Name: name, Path: filepath.Join(s.programs, name), Dir: s.dir, StopTimeout: 20 * time.Second, Log: s.log(name),
		Env: slices.Concat(s.env, settings, []string{fmt.Sprintf("HTTP_ADDR=127.0.0.1:%d", port)}),
	})
	if err != nil {
		return 0, err
	}
	s.services[name] = child
	err = await(ctx, 2*time.Millisecond, name+" to be ready", func() (bool, error) {
		select {
		case <-child.Done():
			return false, fmt.Errorf("%s ended: %s; see %s", name, child.Exit(), s.log(name))
		default:
			return answers(s.urls[name] + "/readyz"), nil
		}
	})
	return time.Since(began), err
}

func (s *system) log(service string) string { return filepath.Join(s.dir, service+".log") }

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// await asks every so often until the condition holds. It gives up with ctx, or with the condition's own error.
func await(ctx context.Context, every time.Duration, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// verify demands, by the real `bank verify`, that every invariant was judged and holds, and that so many messages have been given up.
// A figure of a run that lost a cent counts for nothing.
func (s *system) verify(ctx context.Context, quarantined int64) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, "bank"), "verify", "--json", "--wait", "1m")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "AMQP_URL="+s.access.OperatorAMQPURL, "RABBITMQ_MANAGEMENT_URL="+s.access.ManagementURL,
		"ACCOUNT_DATABASE_URL="+s.access.AccountDatabaseURL, "TRANSFER_DATABASE_URL="+s.access.TransferDatabaseURL)
	out, err := cmd.CombinedOutput()
	var report invariants.Report
	if err != nil || json.Unmarshal(out, &report) != nil || !report.OK || !report.Quiet || report.Counts.Quarantined != quarantined {
		return fmt.Errorf("bank verify: %w\n%s", cmp.Or(err, errors.New("not everything holds")), out)
	}
	return nil
}

// withSystem runs do on a new system, verifies it, and stops it.
func (b *bench) withSystem(ctx context.Context, do func(*system) error) error {
	return b.withSystemOn(ctx, servers.Config{}, func(s *system) (int64, error) { return 0, do(s) })
}

// withSystemOn does the same on servers that are configured so; do says how many messages have been given up.
func (b *bench) withSystemOn(ctx context.Context, cfg servers.Config, do func(*system) (quarantined int64, err error)) error {
	s, err := b.startSystem(ctx, cfg)
	if err != nil {
		return err
	}
	quarantined, err := do(s)
	if err == nil {
		err = s.verify(ctx, quarantined)
	}
	return errors.Join(err, s.stop())
}
