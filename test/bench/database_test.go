package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/banking/internal/invariants"
	"example.com/banking/internal/testenv"
	"example.com/banking/internal/testenv/servers"
	"example.com/banking/pkg/service"
)

// migrated returns a database with a service's tables.
func migrated(t *testing.T, env *testenv.Env, name string) (string, *pgxpool.Pool) {
	t.Helper()
	address := env.Database(t, name)
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	migrations := os.DirFS(filepath.Join("..", "..", "services", name, "migrations"))
	if err := service.Migrate(t.Context(), pool, migrations, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return address, pool
}

func execute(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

type quietBroker struct{}

func (quietBroker) Queues(context.Context) ([]invariants.Queue, error)            { return nil, nil }
func (quietBroker) Parked(context.Context, string, func(invariants.Parked)) error { return nil }

func verifyDatabases(t *testing.T, account, transfer string) invariants.Report {
	t.Helper()
	from := invariants.Sources{Broker: quietBroker{}}
	for address, into := range map[string]**pgx.Conn{account: &from.Account, transfer: &from.Transfer} {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		*into = conn
	}
	report, err := invariants.Verify(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The history is one that a bank could have had: every invariant holds, in both databases and between them.
func TestHistoryIsConsistent(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	accountURL, account := migrated(t, env, "account")
	transferURL, transfer := migrated(t, env, "transfer")
	const n, rows = 60, 200
	h := history{transfers: n, inbox: rows, until: time.Now()}
	for range 3 {
		id := uuid.NewString()
		h.accounts = append(h.accounts, id)
		if _, err := account.Exec(t.Context(), `
			with a as (insert into accounts (id, owner, currency, status, balance_minor, opening_minor, created_at)
				values ($1, 'Customer', 'EUR', 'OPEN', 5000, 5000, now()) returning id)
			insert into entries (id, ledger, account_id, kind, amount_minor, currency, posted_at)
			select gen_random_uuid(), l, case l when 'CUSTOMER' then id end, 'OPENING', case l when 'CUSTOMER' then 5000 else -5000 end, 'EUR', now()
			from a, unnest(array['CUSTOMER', 'FUNDING']) l`, id); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.write(t.Context(), account, transfer); err == nil {
		t.Fatal("a history was written into an inbox whose consumers are not known")
	}
	const lived = `insert into inbox (consumer, message_id, payload_hash) values ('one', '1', ''), ('two', '1', '')`
	for _, pool := range []*pgxpool.Pool{account, transfer} {
		execute(t, pool, lived)
	}
	if err := h.write(t.Context(), account, transfer); err != nil {
		t.Fatal(err)
	}
	report := verifyDatabases(t, accountURL, transferURL)
	for _, check := range report.Checks {
		if check.Verdict != invariants.Held {
			t.Errorf("%s is %s: %v", check.Name, check.Verdict, check.Offenders)
		}
	}
	if c := report.Counts; c.Transfers["COMPLETED"] != n || c.Entries != 6+4*n || c.Processed != 2*(rows+2) {
		t.Errorf("the history left %+v", c)
	}
}

// The files that plug the bank into the peers' script make accounts whose books balance, and views that see a transfer's end.
func TestPeerTables(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	accountURL, account := migrated(t, env, "account")
	transferURL, transfer := migrated(t, env, "transfer")
	for name, pool := range map[string]*pgxpool.Pool{"account": account, "transfer": transfer} {
		sql, err := os.ReadFile(filepath.Join("peers", "bank", name+".sql"))
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range statements(string(sql)) {
			execute(t, pool, statement)
		}
	}
	if report := verifyDatabases(t, accountURL, transferURL); !report.OK || report.Counts.Accounts != 1000 {
		t.Errorf("the seeded bank: %+v", report)
	}
	var known bool
	err := account.QueryRow(t.Context(), "select exists (select from bench_accounts where id = $1 and balance = seeded)",
		"00000000-0000-7000-8000-0000000003e8").Scan(&known)
	if err != nil || !known {
		t.Errorf("the client's last account is not there: %v", err)
	}
	execute(t, transfer, `insert into transfers (id, source_account_id, destination_account_id, amount_minor, currency, status, created_at, updated_at)
		values (gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), 1, 'EUR', 'REQUESTED', now(), now())`)
	var before, after *time.Time
	const look = "select completed_at from bench_transfers"
	if err := transfer.QueryRow(t.Context(), look).Scan(&before); err != nil {
		t.Fatal(err)
	}
	execute(t, transfer, "update transfers set status = 'DEBITED'")
	execute(t, transfer, "update transfers set status = 'COMPLETED'")
	if err := transfer.QueryRow(t.Context(), look).Scan(&after); err != nil || before != nil || after == nil {
		t.Errorf("completed at %v before and %v after its end: %v", before, after, err)
	}
}

// Every script of the ceilings runs, and does what it says: a slip in one would be a ceiling too high.
func TestCeilingScripts(t *testing.T) {
	t.Parallel()
	pgbench := servers.FindPostgres("pgbench")
	if pgbench == "" {
		t.Log("pgbench is not installed, so there is nothing that could run the scripts")
		return
	}
	at, err := newCeilingScripts(testenv.New(t).Database(t, "ceiling"), t.TempDir(), pgbench)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ceilingList {
		const runs = 3
		if _, done, err := at.run(t.Context(), c, "-c", "1", "-t", "3"); err != nil || done != runs {
			t.Fatalf("%s: %v runs, %v", c.name, done, err)
		}
		conn, err := pgx.ConnectConfig(t.Context(), at.config)
		if err != nil {
			t.Fatal(err)
		}
		var completed, entries, unsent int
		var left int64
		err = conn.QueryRow(t.Context(), `select (select count(*) from desk.transfers where state = 'c'), (select count(*) from payer.entries),
			(select count(*) from desk.outbox where sent_at is null) + (select count(*) from payer.outbox where sent_at is null),
			(select sum(balance) - 10000 * 1000000000000 from payer.accounts)`).Scan(&completed, &entries, &unsent, &left)
		if err := conn.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if want := runs * int(c.transfers); err != nil || completed != want || entries != 2*want || unsent != 0 {
			t.Errorf("%s: %d transfers completed, %d entries, %d messages unsent: %v", c.name, completed, entries, unsent, err)
		}
		if c.transfers > 0 && left != 0 {
			t.Errorf("%s: money appeared or vanished: %d", c.name, left)
		}
	}
}
