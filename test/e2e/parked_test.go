package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv"
	"example.com/banking/internal/testenv/servers"
	amqp "github.com/rabbitmq/amqp091-go"
)

// What went wrong is found, understood, repaired and accounted for with `bank parked` alone, by services that have no more rights at the
// broker than a provisioned bank gives them.
func TestParkedMessagesAreRepaired(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b := newBank(t, env, 1, map[string]string{"ADMIN_TOKEN": "secret", "RETRY_DELAY": "100ms", "MAX_ATTEMPTS": "2"})
	b.env["ADMIN_TOKEN"] = "secret"
	b.restrict(env)
	customers := b.open(2, 1000)
	id, err := b.send(customers[0], customers[1], 25)
	if err != nil {
		t.Fatal(err)
	}
	b.awaitSettled(1, time.Minute)

	// The lesson's poison event, and an amount as text.
	const poison = `{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`
	b.run(0, poison, "publish", "--key", "accounts.account.debited")
	b.run(0, `{"messageId":"text-1","type":"Transfers.Transfer.Requested","data":{"amountMinor":"1"}}`, "publish", "--key", "transfers.transfer.requested")
	eventually(t, time.Minute, func() bool { return strings.Count(b.run(0, "", "parked", "list"), "-1 ") == 2 },
		func() string { return "parked are\n" + b.run(0, "", "parked", "list") })
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"list", "--queue", "account.transfer-requested_error"}, "VALIDATION"},
		{[]string{"list", "--reason", "MAX_ATTEMPTS", "--type", "Accounts.Account.Debited"}, "poison-1"},
		{[]string{"show", "poison-1"}, `"transferId": "not-a-real-id"`},
		{[]string{"show", "--id", "text-1"}, "MT-Reason: fault"},
		{[]string{"replay", "--id", "poison-1"}, "will fail again: unknown transfer"},
		{[]string{"replay", "--id", "text-1"}, "will fail again: not a valid message"},
	} {
		if out := b.run(0, "", append([]string{"parked"}, c.args...)...); !strings.Contains(out, c.says) {
			t.Errorf("bank parked %q does not say %q but\n%s", c.args, c.says, out)
		}
	}

	// Replayed for nothing, it is back with its count.
	if out := b.run(1, "", "parked", "replay", "--canary", "1", "--reason", "MAX_ATTEMPTS", "--yes"); !strings.Contains(out, "the canary poison-1 came back with MAX_ATTEMPTS") {
		t.Errorf("the canary that comes back: %s", out)
	}
	var parked []struct {
		Key         string
		ReplayCount int
		OriginQueue string
	}
	if err := json.Unmarshal([]byte(b.run(0, "", "--json", "parked", "list", "--queue", "banking.dead-letters")), &parked); err != nil ||
		len(parked) != 1 || parked[0].ReplayCount != 1 || parked[0].OriginQueue != "transfer.account-events" {
		t.Errorf("parked are %+v, %v", parked, err)
	}

	// An event that was done long ago: a replay is absorbed, also a second one.
	var transfer struct {
		Timeline []struct{ Fact, MessageID string }
	}
	if _, body := call(http.MethodGet, b.transfers[0].url+"/transfers/"+id, nil); json.Unmarshal(body, &transfer) != nil || len(transfer.Timeline) < 2 {
		t.Fatalf("the transfer is %s", body)
	}
	debited := transfer.Timeline[1].MessageID
	for range 2 {
		b.run(0, fmt.Sprintf(`{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":%q,"accountId":%q,"amountMinor":25,"currency":"EUR"}}`,
			debited, id, customers[0]), "publish", "--exchange", "banking.dlx", "--key", "accounts.account.debited", "--header", "x-origin-queue=transfer.account-events",
			"--header", "x-parked-at=2026-11-30T10:00:00Z")
		if out := b.run(0, "", "parked", "replay", "--id", debited, "--yes"); !strings.Contains(out, "will be absorbed as a duplicate") || !strings.Contains(out, "1 replayed") {
			t.Errorf("the replay of a duplicate: %s", out)
		}
	}

	// Nobody can use the others; they go, with a reason.
	b.run(1, "", "parked", "discard", "--id", "nobody", "--because", "test", "--yes")
	b.run(0, "", "parked", "discard", "--id", "poison-1", "--id", "text-1", "--because", "made up by a test", "--yes")
	audit := b.run(0, "", "parked", "audit")
	for _, wanted := range []string{"DISCARD", "REPLAY", "because made up by a test", "poison-1", "text-1", debited, "@"} {
		if !strings.Contains(audit, wanted) {
			t.Errorf("%q is not in the audit\n%s", wanted, audit)
		}
	}
	if out := b.run(0, "", "parked", "list"); !strings.Contains(out, "nothing in quarantine matches") {
		t.Errorf("left are\n%s", out)
	}
	b.verify()
}

// restrict starts the services again with the rights of a provisioned bank.
func (b *bank) restrict(env *testenv.Env) {
	b.t.Helper()
	m := management.New(env.ManagementURL)
	for _, r := range b.replicas() {
		name := filepath.Base(r.path)
		login := name + "-" + env.VHost
		if err := m.Put(b.t.Context(), "/api/users/"+login, map[string]string{"password": "p", "tags": ""}); err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(b.t.Context()), time.Minute)
			defer cancel()
			if err := m.Delete(ctx, "/api/users/"+login); err != nil {
				b.t.Errorf("the broker's user %s is left behind: %v", login, err)
			}
		})
		if err := m.Put(b.t.Context(), "/api/permissions/"+env.VHost+"/"+login, servers.ServiceGrant(name)); err != nil {
			b.t.Fatal(err)
		}
		limited, err := url.Parse(env.AMQPURL)
		if err != nil {
			b.t.Fatal(err)
		}
		limited.User = url.UserPassword(login, "p")
		r.kill()
		r.env = append(r.env, "AMQP_URL="+limited.String())
		if err := r.start(); err != nil {
			b.t.Fatal(err)
		}
		r.awaitReady()
	}
}

// run runs bank with something to read, and demands an exit code; it answers all that was printed.
func (b *bank) run(code int, input string, args ...string) string {
	b.t.Helper()
	cmd, err := b.program(args...)
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		b.t.Errorf("bank %q: exit code %d (%v), want %d\n%s", args, got, err, code, out)
	}
	return string(out)
}

// The service is killed again and again in the middle of a replay, wherever that is: no message is lost, whatever is there twice.
func TestKilledReplayLosesNothing(t *testing.T) {
	t.Parallel()
	const messages, kills = 200, 3
	env := testenv.New(t)
	b := newBank(t, env, 1, map[string]string{"ADMIN_TOKEN": "secret", "MAX_ATTEMPTS": "1"})
	b.env["ADMIN_TOKEN"] = "secret"
	wanted := b.parkStrangers(env, messages)
	for n := range kills {
		run, err := b.program("parked", "replay", "--yes", "--limit", "1000", "--rate", "400")
		if err != nil {
			t.Fatal(err)
		}
		progress, err := run.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(progress)
		for range 1 + n*40 { // other places each time
			lines.Scan()
		}
		b.transfers[0].kill()
		for lines.Scan() {
		}
		if err := run.Wait(); err == nil {
			t.Error("a replay whose service was killed says that all went well")
		}
		if err := b.transfers[0].start(); err != nil {
			t.Fatal(err)
		}
		b.transfers[0].awaitReady()
	}
	// Each of them names a transfer that nobody knows, so all are parked again in the end.
	var found map[string]bool
	eventually(t, time.Minute, func() bool {
		var parked []struct{ Key string }
		if err := json.Unmarshal([]byte(b.run(0, "", "--json", "parked", "list", "--limit", "10000")), &parked); err != nil {
			t.Fatal(err)
		}
		found = map[string]bool{}
		for _, p := range parked {
			found[p.Key] = true
		}
		return len(found) == len(wanted)
	}, func() string { return fmt.Sprintf("%d of %d messages are there", len(found), len(wanted)) })
	for _, id := range wanted {
		if !found[id] {
			t.Errorf("%s is lost", id)
		}
	}
	if audit := b.run(0, "", "parked", "audit", "--limit", "1000"); strings.Count(audit, "REPLAY") < 1+41+81 {
		t.Errorf("the audit has only\n%s", audit)
	}
}

// parkStrangers parks events of transfers that do not exist, and answers their ids.
func (b *bank) parkStrangers(env *testenv.Env, n int) (ids []string) {
	b.t.Helper()
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range n {
		id := fmt.Sprintf("stranger-%d", i)
		confirm, err := ch.PublishWithDeferredConfirm("banking.dlx", "accounts.account.debited", true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: id,
			Headers: amqp.Table{"x-origin-queue": "transfer.account-events", "x-parked-at": "2026-11-30T10:00:00Z"},
			Body:    fmt.Appendf(nil, `{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":"unknown-%d"}}`, id, i),
		})
		if err != nil || !confirm.Wait() {
			b.t.Fatalf("parking: %v", err)
		}
		ids = append(ids, id)
	}
	return ids
}
