package exercises

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/control"
	"example.com/banking/internal/testenv"
	faults "example.com/banking/pkg/fault/control"
)

// Faults outlive the run that was killed and the services. When transfer starts again under its usual settings they must be gone: it would
// give up at once what they have made fail often.
func TestLeftFaultsAreDeletedBeforeAServiceStarts(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	k := &slowKeeper{now: control.Process{Name: "transfer", Kind: "service", State: control.Stopped}}
	r := k.serve(t)
	r.account, r.transfer = newService("account", "", ""), newService("transfer", "", "")
	r.AccountDatabaseURL, r.TransferDatabaseURL = env.Database(t, "account"), env.Database(t, "transfer")
	var err error
	if r.broker, err = newBroker(env.AMQPURL, env.ManagementURL); err != nil {
		t.Fatal(err)
	}
	defer r.broker.close()
	databases := map[string]*pgx.Conn{}
	for name, url := range map[string]string{"account": r.AccountDatabaseURL, "transfer": r.TransferDatabaseURL} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), faults.Schema+"insert into faults (id, point, action) values (gen_random_uuid(), 'handler', 'error')"); err != nil {
			t.Fatal(err)
		}
		databases[name] = conn
	}
	k.given = func() {
		for name, conn := range databases {
			var n int
			if err := conn.QueryRow(t.Context(), "select count(*) from faults").Scan(&n); err != nil || n != 0 {
				t.Errorf("when transfer starts, %s has %d faults, %v", name, n, err)
			}
		}
	}
	if left, err := r.tidyProcesses(t.Context()); !left || err != nil {
		t.Errorf("left %t, %v", left, err)
	}
	if !k.now.Usual() || !slices.Equal(k.told, []control.Verb{control.Start}) {
		t.Errorf("told %v, transfer is %+v", k.told, k.now)
	}
}
