package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// bankIn runs a command on the bank of a folder.
func bankIn(t *testing.T, dir string, args ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append([]string{"--dir", dir}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// Whoever has just read an id in a list writes it behind the verb.
func TestParkedTakesIDsAsArguments(t *testing.T) {
	t.Parallel()
	empty := map[string]string{"GET /admin/quarantine": noItems, "POST /admin/quarantine/replay": noRun, "POST /admin/quarantine/discard": noRun}
	for _, args := range [][]string{{"list", "p-1", "p-2"}, {"replay", "p-1", "--id", "p-2"}, {"discard", "p-1", "p-2", "--because", "test"}} {
		s := newParkedServices(t, empty, empty)
		s.bank(t, args...)
		if len(s.asked) != 2 {
			t.Errorf("%v: asked was %q", args, s.asked)
		}
		for _, asked := range s.asked {
			if !strings.Contains(asked, "p-1") || !strings.Contains(asked, "p-2") {
				t.Errorf("%v: asked was %s", args, asked)
			}
		}
	}
}

const noRun = `{"items":[],"dryRun":true,"run":null,"matched":0,"done":0,"refused":0,"failed":0,"missing":[]}`

// A slip of the pen must not pass for an empty quarantine.
func TestParkedTellsOfValuesThatNothingHas(t *testing.T) {
	t.Parallel()
	empty := map[string]string{"GET /admin/quarantine": noItems, "POST /admin/quarantine/replay": noRun}
	for _, c := range []struct {
		args []string
		hint string
	}{
		{[]string{"list", "--reason", "MAX_ATTEMPT"}, "--reason MAX_ATTEMPT is none that we know; there are VALIDATION, INVARIANT, NOT_FOUND_AGED, MAX_ATTEMPTS, "},
		{[]string{"list", "--reason", "reject"}, ", DELIVERY_LIMIT, REJECTED\n"},
		{[]string{"replay", "--class", "timeouts"}, "--class timeouts is none that we know; there are VALIDATION, "},
		{[]string{"list", "--type", "Debited"}, "--type Debited is none that we know; there are Transfers.Transfer.Requested, "},
		{[]string{"list", "--reason", "MAX_AGE", "--class", "UNKNOWN", "--type", "Accounts.Account.Debited"}, ""},
		{[]string{"list", "--reason", "REJECTED"}, ""},
		{[]string{"list", "--reason", "rejected", "--class", "timeout"}, ""}, // which the services take as well
	} {
		code, out, complaints := newParkedServices(t, empty, empty).bank(t, c.args...)
		if code != 0 || !strings.Contains(out, "nothing in quarantine matches") || c.hint == "" && complaints != "" || !strings.Contains(complaints, c.hint) {
			t.Errorf("%v: exit code %d, %q, %q", c.args, code, out, complaints)
		}
	}
	full := map[string]string{"GET /admin/quarantine": `{"items":[` + item(lot, "a", "") + `],"next":null,"depth":1,"missing":[]}`}
	if code, _, complaints := newParkedServices(t, empty, full).bank(t, "list", "--reason", "OTHERS"); code != 0 || complaints != "" {
		t.Errorf("a reason that somebody else gave: exit code %d, %q", code, complaints)
	}
}

// Not parallel: the environment of the caller is taken away.
func TestUnknownAddressesAreSaidInOneWay(t *testing.T) {
	for _, field := range (&endpoints{}).fields() {
		t.Setenv(field.key, "")
		_ = os.Unsetenv(field.key)
	}
	commands := map[string][]string{
		"ACCOUNT_URL":  {"account", "list"},
		"TRANSFER_URL": {"transfer", "list"},
		"ADMIN_TOKEN":  {"parked", "list"},
		"AMQP_URL":     {"queues"},
		"ACCOUNT_DATABASE_URL, TRANSFER_DATABASE_URL": {"verify"},
	}
	dir := t.TempDir()
	for name, args := range commands {
		want := "bank: " + name + " not known: start a bank with 'bank up' (or 'make up'), or set it in the environment\n"
		if code, _, complaints := bankIn(t, dir, args...); code != 1 || complaints != want {
			t.Errorf("%v: exit code %d, %q", args, code, complaints)
		}
	}
	lock, err := supervise.TryLock(filepath.Join(dir, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range commands {
		want := "bank: " + name + " not known yet: a bank is starting in " + dir + ", and says its addresses when it is ready\n"
		if code, _, complaints := bankIn(t, dir, args...); code != 1 || complaints != want {
			t.Errorf("while it starts, %v: exit code %d, %q", args, code, complaints)
		}
	}

	// Killed, it has left its addresses behind, where nobody answers, or another bank does.
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
	address := listener.Addr().String()
	left := endpoints{AccountURL: "http://" + address, TransferURL: "http://" + address, AdminToken: "t", AMQPURL: "amqp://" + address,
		ManagementURL: "http://" + address, AccountDatabaseURL: "postgres://" + address, TransferDatabaseURL: "postgres://" + address}
	if err := left.save(dir); err != nil {
		t.Fatal(err)
	}
	const gone = "does not run any more"
	for _, args := range commands {
		if code, _, complaints := bankIn(t, dir, args...); code != 1 || strings.Contains(complaints, gone) {
			t.Errorf("while its supervisor lives, %v: exit code %d, %q", args, code, complaints)
		}
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	left.AccountURL, left.TransferURL, left.ManagementURL = other.URL, other.URL, other.URL
	if err := left.save(dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range commands {
		if code, _, complaints := bankIn(t, dir, args...); code != 1 || !strings.Contains(complaints, "the bank in "+dir+" "+gone) ||
			!strings.Contains(complaints, "'bank up --dir "+dir+"' starts it again") {
			t.Errorf("when it was killed, %v: exit code %d, %q", args, code, complaints)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("another bank at its addresses was asked %d times", n)
	}
}

// The statistics of the management API are late: right after a start they count nothing.
func TestQueuesAreCountedByTheBrokerItself(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `[{"name":"q","messages_ready":0,"messages_unacknowledged":0,"messages_dlx":4,"consumers":0}]`)
	}))
	t.Cleanup(management.Close)
	b, err := newBroker(&endpoints{AMQPURL: env.AMQPURL, ManagementURL: management.URL})
	if err != nil {
		t.Fatal(err)
	}
	ch := declared(t, env.AMQPURL, "q")
	for range 3 {
		if err := b.publish(t.Context(), "", "q", amqp.Publishing{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.Qos(1, 0, false); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-deliveries
	if got, err := b.queues(t.Context()); err != nil || len(got) != 1 || got[0] != (queue{"q", 2, 0, 4, 1}) {
		t.Errorf("counted %+v, %v", got, err)
	}
	if got, err := b.Queues(t.Context()); err != nil || len(got) != 1 || got[0].Messages != 6 {
		t.Errorf("on their way are %+v, %v", got, err)
	}
}

func TestAccountListLeavesOutThoseOfTheLoad(t *testing.T) {
	t.Parallel()
	var items []string
	add := func(id, owner string) {
		items = append(items, fmt.Sprintf(`{"id":%q,"owner":%q,"currency":"EUR","status":"OPEN","balanceMinor":1}`, id, owner))
	}
	add("a", "Alice")
	for i := range 3 {
		add(loadAccountID(i), fmt.Sprintf("Load %d", i))
	}
	add("b", "Load 1") // a person of that name
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`+strings.Join(items, ",")+`]}`)
	}))
	t.Cleanup(service.Close)
	dir := t.TempDir()
	if err := (&endpoints{AccountURL: service.URL}).save(dir); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		rows   int
		others bool
	}{
		{"", 2, true}, {"--all", 5, false}, {"--owner load", 4, false}, {"--owner ALI", 1, false}, {"--limit 1", 1, false}, {"--json --limit 4", 4, false}, {"--json", 5, false},
	} {
		code, out, complaints := bankIn(t, dir, append([]string{"account", "list"}, strings.Fields(c.args)...)...)
		rows := strings.Count(out, "OPEN")
		if code != 0 || rows != c.rows || strings.Contains(out, "and 3 accounts of bank load") != c.others {
			t.Errorf("%s: exit code %d, %q\n%s", c.args, code, complaints, out)
		}
	}
}

func TestPublishSendsWhatItIsTold(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	ch := declared(t, env.AMQPURL, "q")
	dir := t.TempDir()
	if err := (&endpoints{AMQPURL: env.AMQPURL}).save(dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "body")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	publish := func(more ...string) (int, string) {
		code, _, complaints := bankIn(t, dir, append([]string{"publish", "--exchange=", "--key", "q", "--body", file}, more...)...)
		return code, complaints
	}
	at := time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC)
	if code, complaints := publish("--expiration", "1m30s", "--timestamp", "2026-11-30T10:15:00Z", "--message-id", "m", "--header", "text=3", "--header", "k:int=3",
		"--header", "f:float=1.5", "--header", "b:bool=true", "--header", "t:time=2026-11-30T10:15:00Z", "--header", "n:null=", "--header", "urn:x=a=b",
		"--header", `deep:json={"a":[1,{"b":null}]}`); code != 0 {
		t.Fatalf("exit code %d, %s", code, complaints)
	}
	d, ok, err := ch.Get("q", true)
	if err != nil || !ok || d.Expiration != "90000" || !d.Timestamp.Equal(at) || d.MessageId != "m" {
		t.Fatalf("got %+v, %v", d, err)
	}
	arrived, _ := d.Headers["t"].(time.Time)
	delete(d.Headers, "t")
	delete(d.Headers, "x-delivery-count") // the broker's
	want := amqp.Table{"text": "3", "k": int64(3), "f": 1.5, "b": true, "n": nil, "urn:x": "a=b", "deep": amqp.Table{"a": []any{1.0, amqp.Table{"b": nil}}}}
	if !reflect.DeepEqual(d.Headers, want) || !arrived.Equal(at) {
		t.Errorf("the headers are %#v, and %v", d.Headers, arrived)
	}
	if code, complaints := publish("--header", "k:int=three"); code != 1 || !strings.Contains(complaints, "k:int=three: the value is not of the type int") {
		t.Errorf("exit code %d, %s", code, complaints)
	}
	if code, complaints := publish("--expiration", "soon"); code != 1 || !strings.Contains(complaints, "the broker refuses it") { // garbage is welcome to be tried
		t.Errorf("exit code %d, %s", code, complaints)
	}
	if code, complaints := publish("--timestamp", "yesterday"); code != 2 {
		t.Errorf("exit code %d, %s", code, complaints)
	}
}
