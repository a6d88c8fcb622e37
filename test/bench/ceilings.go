package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/testenv/servers"
)

// Each ceiling is run for so long, by so many clients.
const (
	ceilingTime    = 8 * time.Second
	ceilingClients = 8
)

//go:embed ceilings/*.sql
var ceilingScripts embed.FS

// ceiling is work for the database alone: what the bank could do if services, broker and network cost nothing.
type ceiling struct {
	name, script string
	transfers    float64 // in one run of the script; 0: it makes none, and its runs are counted
}

var ceilingList = []ceiling{
	{"one by one, 41 round trips each", "one.sql", 1},
	{"one by one, nine round trips each", "pipelined.sql", 1},
	{fiftyName, "fifty.sql", 50},
	{"commits on one hot row", "hot.sql", 0},
}

const fiftyName = "fifty in a transaction"

var ceilings = scenario{
	name: "ceilings",
	about: fmt.Sprintf("What PostgreSQL can do when nothing else is there: the SQL of a transfer in nine transactions by pgbench, with %d "+
		"clients for %s each, on the server that has just served the sustained load, its services stopped. The share is that load's rate of the "+
		"ceiling with fifty transfers in a transaction. The machine's own speed changes from hour to hour, and CPU times with it: on the machine of the "+
		"targets that ceiling took 0.25 ms of PostgreSQL's for each transfer, so 0.75 ms for all of the bank is three times as much.", ceilingClients, ceilingTime),
	run: func(ctx context.Context, b *bench) (found result, err error) {
		pgbench := servers.FindPostgres("pgbench")
		if pgbench == "" {
			return found, missing("pgbench, which comes with PostgreSQL's server or its contrib package, is not installed")
		}
		s, err := b.startSystem(ctx, servers.Config{})
		if err != nil {
			return found, err
		}
		err = s.measureCeilings(ctx, b, pgbench, &found)
		return found, errors.Join(err, s.stop())
	},
}

func (s *system) measureCeilings(ctx context.Context, b *bench, pgbench string, found *result) error {
	m, err := b.openMarket(ctx, s)
	if err != nil {
		return err
	}
	bank, err := m.pace(ctx, b.Transfers)
	if err != nil {
		return err
	}
	if err := s.verify(ctx, 0); err != nil {
		return err
	}
	for _, name := range serviceNames {
		if err := s.services[name].Stop(); err != nil {
			return err
		}
	}
	at, err := newCeilingDatabase(ctx, s.servers.Addresses().PostgresURL, s.dir, pgbench)
	if err != nil {
		return err
	}
	found.addPace("the bank", bank)
	for _, c := range ceilingList {
		before, err := measure()
		if err != nil {
			return err
		}
		rate, runs, err := at.run(ctx, c, "-c", strconv.Itoa(ceilingClients), "-j", "2", "-T", strconv.Itoa(int(ceilingTime.Seconds())))
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		after, err := measure()
		if err != nil {
			return err
		}
		if c.transfers == 0 {
			found.add(c.name, rate, "/s")
			continue
		}
		found.add(c.name, rate*c.transfers, "/s")
		cpu := after.since(before).cpu[partPostgres] / (runs * c.transfers)
		found.add(c.name+": CPU of PostgreSQL per transfer", cpu*1000, "ms")
		if c.name == fiftyName {
			found.add("CPU of the bank against that ceiling", bank.cpu/cpu, "")
			found.add("share of the database-only ceiling", bank.rate/(rate*c.transfers), "")
		}
	}
	return nil
}

// ceilingDatabase is where pgbench works.
type ceilingDatabase struct {
	config  *pgx.ConnConfig
	pgbench string
	dir     string // of the scripts
}

// newCeilingDatabase makes a database of its own on a server, and lays the scripts out in dir.
func newCeilingDatabase(ctx context.Context, adminURL, dir, pgbench string) (ceilingDatabase, error) {
	const name = "ceiling"
	d, err := newCeilingScripts(adminURL, dir, pgbench)
	if err != nil {
		return d, err
	}
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return d, err
	}
	_, err = conn.Exec(ctx, "create database "+name)
	if err = errors.Join(err, conn.Close(ctx)); err != nil {
		return d, fmt.Errorf("database for the ceilings: %w", err)
	}
	d.config.Database = name
	return d, nil
}

// newCeilingScripts lays the scripts out in dir, to be run on a database that is there.
func newCeilingScripts(url, dir, pgbench string) (d ceilingDatabase, err error) {
	d = ceilingDatabase{pgbench: pgbench, dir: filepath.Join(dir, "ceilings")}
	if d.config, err = pgx.ParseConfig(url); err != nil {
		return d, err
	}
	return d, os.CopyFS(dir, ceilingScripts)
}

// statements are those of a script one by one: vacuum refuses to run beside others. Each ends with a line's last character.
func statements(script string) (all []string) {
	open := false // within a function's body
	for line := range strings.Lines(script) {
		if len(all) == 0 || !open && strings.HasSuffix(strings.TrimSpace(all[len(all)-1]), ";") {
			all = append(all, "")
		}
		all[len(all)-1] += line
		open = open != (strings.Count(line, "$$")%2 == 1)
	}
	return all
}

// run makes the tables anew and runs a script on them. It returns the script's runs per second, and how many there were.
func (d ceilingDatabase) run(ctx context.Context, c ceiling, args ...string) (perSecond, runs float64, err error) {
	schema, err := ceilingScripts.ReadFile("ceilings/schema.sql")
	if err != nil {
		return 0, 0, err
	}
	conn, err := pgx.ConnectConfig(ctx, d.config)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements(string(schema)) {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return 0, 0, fmt.Errorf("tables for the ceilings: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, "checkpoint"); err != nil {
		return 0, 0, err
	}
	cmd := exec.CommandContext(ctx, d.pgbench, append(args, "-n", "-M", "prepared", "-f", filepath.Join(d.dir, c.script), d.config.Database)...)
	cmd.Env = append(os.Environ(), "PGHOST="+d.config.Host, fmt.Sprintf("PGPORT=%d", d.config.Port), "PGUSER="+d.config.User,
		"PGPASSWORD="+d.config.Password)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, 0, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	// What an ended session has used is counted with its server only once that has noticed.
	if err := await(ctx, 20*time.Millisecond, "pgbench's sessions to end", func() (ended bool, err error) {
		err = conn.QueryRow(ctx, `select count(*) = 1 from pg_stat_activity
			where datname = current_database() and backend_type = 'client backend'`).Scan(&ended)
		return ended, err
	}); err != nil {
		return 0, 0, err
	}
	return parsePgbench(out)
}

var (
	pgbenchRate = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	pgbenchRuns = regexp.MustCompile(`(?m)^number of transactions actually processed: (\d+)`)
)

// parsePgbench reads pgbench's report.
func parsePgbench(out []byte) (perSecond, runs float64, err error) {
	for _, of := range []struct {
		pattern *regexp.Regexp
		into    *float64
	}{{pgbenchRate, &perSecond}, {pgbenchRuns, &runs}} {
		match := of.pattern.FindSubmatch(out)
		if match == nil {
			return 0, 0, fmt.Errorf("pgbench's report lacks %s:\n%s", of.pattern, out)
		}
		if *of.into, err = strconv.ParseFloat(string(match[1]), 64); err != nil {
			return 0, 0, err
		}
	}
	if perSecond <= 0 || runs <= 0 {
		return 0, 0, fmt.Errorf("pgbench did nothing:\n%s", out)
	}
	return perSecond, runs, nil
}
