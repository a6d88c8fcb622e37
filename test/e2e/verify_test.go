package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/testenv"
)

// A check that cannot fail proves nothing: each fault is planted by hand into a system that has come to rest, must be found by the
// check that is there for it, and is taken back again.
func TestVerifyFindsPlantedFaults(t *testing.T) {
	t.Parallel()
	b := newBank(t, testenv.New(t), 1, nil)
	customers := b.open(3, 100_000)
	completed, err := b.send(customers[0], customers[1], 2_500)
	if err != nil {
		t.Fatal(err)
	}
	if status, answer := call("POST", b.accounts[0].url+"/accounts/"+customers[2]+"/freeze", nil); status != 200 {
		t.Fatalf("freezing: %d %s", status, answer)
	}
	if _, err := b.send(customers[0], customers[2], 500); err != nil { // one that is refunded
		t.Fatal(err)
	}
	b.awaitSettled(2, time.Minute)
	b.verify()

	faults := []struct {
		name     string
		check    string // the one that must find it
		offender string // what it must name
		database string
		plant    string
	}{
		{"an entry lost", "conservation", "EUR", "ACCOUNT_DATABASE_URL",
			`delete from entries where transfer_id = $1 and ledger = 'TRANSIT' and kind = 'CREDIT'`},
		{"a balance changed", "balances", customers[1], "ACCOUNT_DATABASE_URL",
			`update accounts set balance_minor = balance_minor + 1 where id = (select destination_account_id from legs where id = $1)`},
		{"half a movement", "booked once", completed, "ACCOUNT_DATABASE_URL",
			`delete from entries where transfer_id = $1 and kind = 'CREDIT' and ledger = 'CUSTOMER'`},
		{"a leg that says something else", "legs", completed, "ACCOUNT_DATABASE_URL",
			`update legs set state = 'DEBITED' where id = $1`},
		{"a status without its fact", "facts", completed, "TRANSFER_DATABASE_URL",
			`delete from facts where transfer_id = $1 and fact = 'CREDITED'`},
		{"a transfer counted twice", "summary", "COMPLETED", "TRANSFER_DATABASE_URL",
			`insert into outcome_counts select 'COMPLETED', 1 from transfers where id = $1`},
		{"two stories", "agreement", completed, "ACCOUNT_DATABASE_URL",
			`update legs set state = 'REFUNDED' where id = $1`},
		{"an answer lost", "messages", completed, "TRANSFER_DATABASE_URL",
			`update transfers set status = 'DEBITED' where id = $1`},
		{"a message that the broker refuses", "quarantine", "set aside", "TRANSFER_DATABASE_URL",
			`insert into outbox (message_id, type, routing_key, body, mandatory, occurred_at, set_aside_at)
			 select id, 'T', 'k', '{', true, now(), now() from transfers where id = $1`},
	}
	for _, fault := range faults {
		conn, err := pgx.Connect(t.Context(), b.env[fault.database])
		if err != nil {
			t.Fatal(err)
		}
		undo := remember(t, conn)
		tag, err := conn.Exec(t.Context(), fault.plant, completed)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("planting %q: %v, %s", fault.name, err, tag)
		}
		// The broker's count of messages being handled is some seconds old: as long as it shows one, two checks are not judged.
		var found error
		eventually(t, time.Minute, func() bool {
			out, err := b.command("verify", "--json", "--wait", "0s")
			if found = names(out, fault.check, fault.offender); err == nil {
				found = fmt.Errorf("bank verify ended with success:\n%s", out)
			}
			return found == nil
		}, func() string { return fmt.Sprintf("%s: %v", fault.name, found) })
		undo()
		_ = conn.Close(t.Context())
	}
	b.verify()
}

// A message that was set aside is shown with its reason and can be sent again.
func TestMessageSetAsideIsSentAgain(t *testing.T) {
	t.Parallel()
	b := newBank(t, testenv.New(t), 1, nil)
	conn, err := pgx.Connect(t.Context(), b.env["TRANSFER_DATABASE_URL"])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const given = `insert into outbox (message_id, type, routing_key, body, mandatory, occurred_at, attempts, last_error, set_aside_at)
		values ('m1', 'Transfers.Transfer.Completed', 'transfers.transfer.completed', '{}', false, now(), 5, 'too large', now())`
	if _, err := conn.Exec(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	out, err := b.command("outbox", "list", "--json")
	if err != nil || !strings.Contains(string(out), `"messageId": "m1"`) || !strings.Contains(string(out), `"error": "too large"`) {
		t.Errorf("bank outbox list: %v\n%s", err, out)
	}
	if out, err := b.command("outbox", "retry", "no-such-message"); err == nil {
		t.Errorf("bank outbox retry of a message that is not there: %s", out)
	}
	if out, err := b.command("outbox", "retry", "m1"); err != nil {
		t.Errorf("bank outbox retry: %v\n%s", err, out)
	}
	eventually(t, time.Minute, func() bool {
		var waiting int
		return conn.QueryRow(t.Context(), `select count(*) from outbox`).Scan(&waiting) == nil && waiting == 0
	}, func() string { return "the message is still in the outbox" })
}

// remember copies every table of a database and returns what puts the rows back.
func remember(t *testing.T, conn *pgx.Conn) func() {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select tablename from pg_tables where schemaname = 'public' and tablename not like 'goose%'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, table := range tables {
		exec(`drop table if exists pg_temp.kept_` + table)
		exec(`create temporary table kept_` + table + ` as table ` + table)
	}
	return func() {
		for _, table := range tables {
			exec(`delete from ` + table)
			exec(restore(t, conn, table))
		}
	}
}

// restore is the statement that copies the kept rows back, generated columns aside.
func restore(t *testing.T, conn *pgx.Conn, table string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `select quote_ident(attname) from pg_attribute
		where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = ''`, table)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Join(columns, ", ")
	return `insert into ` + table + ` (` + list + `) overriding system value select ` + list + ` from kept_` + table
}

// names says whether the report of bank verify calls the check broken and names the offender.
func names(out []byte, check, offender string) error {
	// Behind the document stands the complaint for people.
	var report struct {
		Checks []struct {
			Name, Verdict string
			Offenders     []string
		}
	}
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&report); err != nil {
		return fmt.Errorf("%w in %s", err, out)
	}
	for _, c := range report.Checks {
		if c.Name == check && c.Verdict == "broken" && strings.Contains(strings.Join(c.Offenders, "\n"), offender) {
			return nil
		}
	}
	return fmt.Errorf("%q does not name %s:\n%s", check, offender, out)
}
