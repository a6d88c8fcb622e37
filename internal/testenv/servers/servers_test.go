package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// holderDir makes a copy of the test binary start servers in that folder, sharerDir share those in that folder; it prints
// their addresses and waits to be killed.
const holderDir, sharerDir = "TEST_SERVERS_DIR", "TEST_SHARED_SERVERS_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderDir); dir != "" {
		s, err := servers.Start(context.Background(), servers.Config{Dir: dir, Log: os.Stderr, Ephemeral: true})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		hold(s.Addresses())
	}
	if dir := os.Getenv(sharerDir); dir != "" {
		lease, err := servers.Share(context.Background(), dir, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		hold(lease.Addresses)
	}
	os.Exit(m.Run())
}

func hold(addresses servers.Addresses) {
	if err := json.NewEncoder(os.Stdout).Encode(addresses); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

const startTimeout = 3 * time.Minute

func start(t *testing.T, cfg servers.Config) *servers.Servers {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	s, err := servers.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A killed holder leaves neither processes nor data, here as an ordinary user when the tests run as root.
func TestKilledHolderLeavesNoServer(t *testing.T) {
	t.Parallel()
	parent := folder(t)
	dir := filepath.Join(parent, "a folder with spaces")
	holder, addresses := startHolder(t, parent, dir)
	for _, address := range []string{addresses.AMQPURL, addresses.ManagementURL, addresses.PostgresURL} {
		if !listening(t, address) {
			t.Errorf("nobody listens on %s", address)
		}
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	for _, address := range []string{addresses.AMQPURL, addresses.ManagementURL, addresses.PostgresURL} {
		waitFor(t, "the server to end", func() bool { return !listening(t, address) })
	}
	waitFor(t, "the folder to go", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist)
	})
}

func startHolder(t *testing.T, parent, dir string) (*exec.Cmd, servers.Addresses) {
	t.Helper()
	exe := copyOfTest(t, parent)
	cmd := exec.Command(exe)
	cmd.Dir = parent
	cmd.Env = append(os.Environ(), holderDir+"="+dir)
	cmd.Stderr = os.Stderr
	if os.Geteuid() == 0 {
		const nobody = 65534
		if err := os.Chown(parent, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most often killed by the test
		_ = cmd.Wait()
	})
	var addresses servers.Addresses
	if err := json.NewDecoder(out).Decode(&addresses); err != nil {
		t.Fatalf("holder's addresses: %v", err)
	}
	return cmd, addresses
}

// copyOfTest copies the test binary to where another user can execute it. Another process does the copying: were the
// file open for writing here, a child that a parallel test forks at that moment would keep it busy.
func copyOfTest(t *testing.T, dir string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "holder")
	if out, err := exec.Command("cp", exe, path).CombinedOutput(); err != nil {
		t.Fatalf("copy test binary: %v: %s", err, out)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// folder is like t.TempDir, but other users may pass through it.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "servers-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDataPortsAndPasswordsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	// Root's PostgreSQL runs as a user who cannot pass here, so that its data has to lie elsewhere.
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	cfg := servers.Config{Dir: filepath.Join(closed, "servers")}
	t.Cleanup(func() {
		if data, err := filepath.EvalSymlinks(filepath.Join(cfg.Dir, "postgres")); err == nil {
			_ = os.RemoveAll(data) // outside of dir when run by root
		}
	})
	first := start(t, cfg)
	before, err := first.Provision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	execute(t, before.AccountDatabaseURL, "CREATE TABLE kept (id int)")
	if _, err := channel(t, before.AccountAMQPURL).QueueDeclare("account.kept", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := servers.Start(t.Context(), cfg); !errors.Is(err, supervise.ErrLocked) {
		t.Errorf("second start in the same folder: %v, want %v", err, supervise.ErrLocked)
	}
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, cfg)
	t.Cleanup(func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	})
	after, err := second.Provision(t.Context(), "fees") // repeatable, in data that is older than a service
	if err != nil {
		t.Fatal(err)
	}
	fees := after.Others
	if after.Others = nil; !reflect.DeepEqual(before, after) {
		t.Errorf("addresses changed from %+v to %+v", before, after)
	}
	again, err := second.Provision(t.Context(), "fees")
	if err != nil || !slices.Equal(again.Others, fees) || len(fees) != 1 || fees[0].Name != "fees" {
		t.Fatalf("the added service has %+v, then %+v, %v", fees, again.Others, err)
	}
	execute(t, fees[0].DatabaseURL, "CREATE TABLE kept (id int)")
	execute(t, after.AccountDatabaseURL, "SELECT id FROM kept")
	if _, err := channel(t, after.AccountAMQPURL).QueueDeclarePassive("account.kept", true, false, false, false, nil); err != nil {
		t.Errorf("queue after the restart: %v", err)
	}
	t.Run("least privilege", func(t *testing.T) { leastPrivilege(t, second, after) })
	t.Run("of an added service", func(t *testing.T) { addedPrivilege(t, fees[0]) })
}

// addedPrivilege checks that an added service may use its own names and the exchange of the events, and nothing else that is shared.
func addedPrivilege(t *testing.T, fees servers.ServiceAccess) {
	own := channel(t, fees.AMQPURL)
	if err := own.ExchangeDeclare("banking.events", "topic", true, false, false, false, nil); err != nil {
		t.Errorf("fees declares the event exchange: %v", err)
	}
	if _, err := own.QueueDeclare("fees.events", true, false, false, false, amqp.Table{"x-dead-letter-exchange": ""}); err != nil {
		t.Errorf("fees declares its queue: %v", err)
	}
	if err := own.QueueBind("fees.events", "transfers.transfer.completed", "banking.events", false, nil); err != nil {
		t.Errorf("fees binds its queue: %v", err)
	}
	for what, try := range map[string]func(*amqp.Channel) error{
		"declare the parking lot": func(c *amqp.Channel) error {
			_, err := c.QueueDeclare("banking.dead-letters", true, false, false, false, nil)
			return err
		},
		"read a queue of account": func(c *amqp.Channel) error {
			_, err := c.Consume("account.kept", "", true, false, false, false, nil)
			return err
		},
	} {
		var refused *amqp.Error
		if err := try(channel(t, fees.AMQPURL)); !errors.As(err, &refused) || refused.Code != amqp.AccessRefused {
			t.Errorf("fees may %s: %v", what, err)
		}
	}
	foreign, err := url.Parse(fees.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	foreign.Path = "/account"
	var refused *pgconn.PgError
	if _, err := pgx.Connect(t.Context(), foreign.String()); !errors.As(err, &refused) || refused.Code != "42501" {
		t.Errorf("fees in the database account: %v, want insufficient privilege", err)
	}
}

func leastPrivilege(t *testing.T, s *servers.Servers, bank servers.Bank) {
	foreign, err := url.Parse(bank.AccountDatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"transfer", "postgres", "template1"} {
		foreign.Path = "/" + database
		_, err := pgx.Connect(t.Context(), foreign.String())
		var pgErr *pgconn.PgError
		if !errors.As(err, &pgErr) || pgErr.Code != "42501" {
			t.Errorf("account in database %s: %v, want insufficient privilege", database, err)
		}
	}
	refused := map[string]func(*amqp.Channel) error{
		"declare a queue of transfer": func(c *amqp.Channel) error {
			_, err := c.QueueDeclare("transfer.stolen", true, false, false, false, nil)
			return err
		},
		"declare a foreign exchange": func(c *amqp.Channel) error {
			return c.ExchangeDeclare("banking.other", "topic", true, false, false, false, nil)
		},
		"declare a name that only starts like its own": func(c *amqp.Channel) error {
			_, err := c.QueueDeclare("accounting", true, false, false, false, nil)
			return err
		},
	}
	for what, try := range refused {
		var amqpErr *amqp.Error
		if err := try(channel(t, bank.AccountAMQPURL)); !errors.As(err, &amqpErr) || amqpErr.Code != amqp.AccessRefused {
			t.Errorf("account may %s: %v", what, err)
		}
	}
	own := channel(t, bank.AccountAMQPURL)
	if err := own.ExchangeDeclare("banking.events", "topic", true, false, false, false, nil); err != nil {
		t.Errorf("account declares the event exchange: %v", err)
	}
	if err := own.QueueBind("account.kept", "transfers.transfer.requested", "banking.events", false, nil); err != nil {
		t.Errorf("account binds its queue: %v", err)
	}
	if _, err := amqp.Dial(s.AMQPURL("guest", "guest", servers.Vhost)); err == nil {
		t.Error("the user guest exists")
	}
}

func channel(t *testing.T, address string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the broker may have been stopped
	c, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func execute(t *testing.T, address, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Error(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func listening(t *testing.T, address string) bool {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
