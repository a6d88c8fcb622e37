package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/banking/internal/invariants"
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
}

// startSystem starts everything and returns when both services are ready.
func startSystem(ctx context.Context, programs string, env ...string) (_ *system, err error) {
	dir, err := os.MkdirTemp("", "banking-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL runs as another user when root starts it
		return nil, err
	}
	s := &system{
		dir: dir, programs: programs, env: env,
		pools: map[string]*pgxpool.Pool{}, services: map[string]*supervise.Child{}, urls: map[string]string{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.servers, err = servers.Start(ctx, servers.Config{Dir: filepath.Join(dir, "servers"), Ephemeral: true}); err != nil {
		return s, err
	}
	if s.access, err = s.servers.Provision(ctx); err != nil {
		return s, err
	}
	for _, name := range []string{"account", "transfer"} {
		if err := s.startService(ctx, name); err != nil {
			return s, err
		}
	}
	for name, url := range map[string]string{"account": s.access.AccountDatabaseURL, "transfer": s.access.TransferDatabaseURL} {
		if s.pools[name], err = pgxpool.New(ctx, url); err != nil {
			return s, err
		}
	}
	return s, nil
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

// startService starts a service on a free port and returns when it is ready.
func (s *system) startService(ctx context.Context, name string) error {
	port, err := servers.FreePort(nil)
	if err != nil {
		return err
	}
	database, broker := s.access.AccountDatabaseURL, s.access.AccountAMQPURL
	if name == "transfer" {
		database, broker = s.access.TransferDatabaseURL, s.access.TransferAMQPURL
	}
	s.urls[name] = fmt.Sprintf("http://127.0.0.1:%d", port)
	child, err := s.servers.Run(supervise.Process{
		Name: name, Path: filepath.Join(s.programs, name), Dir: s.dir, StopTimeout: 20 * time.Second, Log: s.log(name),
		Env: append(slices.Clone(s.env), "DATABASE_URL="+database, "AMQP_URL="+broker, fmt.Sprintf("HTTP_ADDR=127.0.0.1:%d", port)),
	})
	if err != nil {
		return err
	}
	s.services[name] = child
	return s.await(ctx, name+" to be ready", func() (bool, error) {
		select {
		case <-child.Done():
			return false, fmt.Errorf("%s ended: %s; see %s", name, child.Exit(), s.log(name))
		default:
			return answers(s.urls[name] + "/readyz"), nil
		}
	})
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

// await asks every 20 ms until the condition holds. It gives up with ctx, or with the condition's own error.
func (s *system) await(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
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

// open opens n accounts with the balance and returns their ids.
func (s *system) open(ctx context.Context, n int, balance int64) ([]string, error) {
	ids := make([]string, n)
	failed := make(chan error, 16)
	next := make(chan int)
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for i := range next {
				body := fmt.Sprintf(`{"id":%q,"owner":"Customer %d","currency":"EUR","openingBalanceMinor":%d}`, ids[i], i, balance)
				response, err := http.Post(s.urls["account"]+"/accounts", "application/json", strings.NewReader(body))
				if err == nil {
					_ = response.Body.Close()
					if response.StatusCode != http.StatusCreated {
						err = errors.New(response.Status)
					}
				}
				if err != nil {
					failed <- fmt.Errorf("open account %d: %w", i, err)
					return
				}
			}
		})
	}
	var err error
feed:
	for i := range ids {
		ids[i] = uuid.NewString()
		select {
		case next <- i:
		case err = <-failed:
			break feed
		case <-ctx.Done():
			err = ctx.Err()
			break feed
		}
	}
	close(next)
	clients.Wait()
	return ids, err
}

// transfers counts those that have ended and those that have not.
func (s *system) transfers(ctx context.Context) (ended, open int, err error) {
	err = s.pools["transfer"].QueryRow(ctx, `
select count(*) filter (where status in ('COMPLETED', 'REJECTED', 'REFUNDED')),
       count(*) filter (where status not in ('COMPLETED', 'REJECTED', 'REFUNDED'))
from transfers`).Scan(&ended, &open)
	return ended, open, err
}

// metric reads a figure of a service: the sum of all series whose line begins with the prefix.
func (s *system) metric(service, prefix string) (sum float64, err error) {
	response, err := http.Get(s.urls[service] + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), prefix); ok {
			fields := strings.Fields(rest)
			var value float64
			if len(fields) > 0 {
				if _, err := fmt.Sscan(fields[len(fields)-1], &value); err == nil {
					sum += value
				}
			}
		}
	}
	return sum, lines.Err()
}

// verify demands, by the real `bank verify`, that every invariant was judged and holds. A figure of a run that lost a cent counts for nothing.
func (s *system) verify(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.programs, "bank"), "verify", "--json", "--wait", "1m")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "AMQP_URL="+s.access.OperatorAMQPURL, "RABBITMQ_MANAGEMENT_URL="+s.access.ManagementURL,
		"ACCOUNT_DATABASE_URL="+s.access.AccountDatabaseURL, "TRANSFER_DATABASE_URL="+s.access.TransferDatabaseURL)
	out, err := cmd.CombinedOutput()
	var report invariants.Report
	if err != nil || json.Unmarshal(out, &report) != nil || !report.OK || !report.Quiet || report.Counts.Quarantined != 0 {
		return fmt.Errorf("bank verify: %w\n%s", cmp.Or(err, errors.New("not everything holds")), out)
	}
	return nil
}
