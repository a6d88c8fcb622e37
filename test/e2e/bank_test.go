package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"example.com/banking/internal/testenv"
)

// bank is a whole system for one test: its own vhost and databases, and as many replicas of each service as asked for.
type bank struct {
	t         *testing.T
	accounts  []*replica
	transfers []*replica
	env       map[string]string // what the bank command reads
}

// newBank starts the services and waits until all are ready.
func newBank(t *testing.T, env *testenv.Env, replicas int, extra map[string]string) *bank {
	t.Helper()
	account, transfer := env.Database(t, "account"), env.Database(t, "transfer")
	b := &bank{t: t, env: map[string]string{
		"AMQP_URL": env.AMQPURL, "RABBITMQ_MANAGEMENT_URL": env.ManagementURL,
		"ACCOUNT_DATABASE_URL": account, "TRANSFER_DATABASE_URL": transfer,
	}}
	with := func(database string) map[string]string {
		vars := map[string]string{"AMQP_URL": env.AMQPURL, "DATABASE_URL": database}
		for key, value := range extra {
			vars[key] = value
		}
		return vars
	}
	for i := range replicas {
		b.accounts = append(b.accounts, startReplica(t, fmt.Sprintf("account-%d", i), "account", with(account)))
		b.transfers = append(b.transfers, startReplica(t, fmt.Sprintf("transfer-%d", i), "transfer", with(transfer)))
	}
	for _, r := range b.replicas() {
		r.awaitReady()
	}
	b.env["ACCOUNT_URL"], b.env["TRANSFER_URL"] = b.accounts[0].url, b.transfers[0].url
	return b
}

func (b *bank) replicas() []*replica {
	return append(append([]*replica{}, b.accounts...), b.transfers...)
}

// open creates n accounts with the given balance.
func (b *bank) open(n int, balance int64) []string {
	b.t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.NewString()
		status, body := call(http.MethodPost, b.accounts[0].url+"/accounts", map[string]any{
			"id": ids[i], "owner": fmt.Sprintf("Customer %d", i), "currency": "EUR", "openingBalanceMinor": balance})
		if status != http.StatusCreated {
			b.t.Fatalf("opening an account: %d %s", status, body)
		}
	}
	return ids
}

// send asks for a transfer until some replica has accepted it: a client with an idempotency key may ask as often as it likes.
// It returns the transfer's id.
func (b *bank) send(source, destination string, amount int64) (string, error) {
	key := uuid.NewString()
	giveUp := time.NewTimer(90 * time.Second)
	defer giveUp.Stop()
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		replica := b.transfers[rand.IntN(len(b.transfers))]
		status, body := call(http.MethodPost, replica.url+"/transfers", map[string]any{
			"sourceAccountId": source, "destinationAccountId": destination, "amountMinor": amount, "currency": "EUR",
		}, "Idempotency-Key", key)
		switch status {
		case http.StatusAccepted:
			var transfer struct{ ID string }
			return transfer.ID, json.Unmarshal(body, &transfer)
		case 0, http.StatusServiceUnavailable:
		default:
			return "", fmt.Errorf("transfer refused: %d %s", status, body)
		}
		select {
		case <-pause.C:
		case <-giveUp.C:
			return "", fmt.Errorf("no replica accepts a transfer; last answer: %d %s", status, body)
		}
	}
}

// sendMany sends transfers of random small amounts among the accounts from several clients at once, and returns how many
// were accepted. It stops early when stop is closed.
func (b *bank) sendMany(accounts []string, transfers, clients int, pace time.Duration) {
	b.t.Helper()
	work := make(chan struct{})
	failed := make(chan error, clients)
	var running sync.WaitGroup
	for range clients {
		running.Go(func() {
			for range work {
				from := rand.IntN(len(accounts))
				to := (from + 1 + rand.IntN(len(accounts)-1)) % len(accounts)
				if _, err := b.send(accounts[from], accounts[to], 1+rand.Int64N(5000)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	var tick <-chan time.Time
	if pace > 0 {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		tick = ticker.C
	}
feeding:
	for range transfers {
		if tick != nil {
			<-tick
		}
		select {
		case work <- struct{}{}:
		case err := <-failed:
			b.t.Error(err)
			break feeding
		}
	}
	close(work)
	running.Wait()
	select {
	case err := <-failed:
		b.t.Error(err)
	default:
	}
}

// summary counts transfers by status.
func (b *bank) summary() map[string]int {
	for _, r := range b.transfers {
		if status, body := call(http.MethodGet, r.url+"/transfers/summary", nil); status == http.StatusOK {
			counts := map[string]int{}
			if json.Unmarshal(body, &counts) == nil {
				return counts
			}
		}
	}
	return nil
}

// awaitSettled waits until there are that many transfers and all of them have ended.
func (b *bank) awaitSettled(total int, limit time.Duration) map[string]int {
	b.t.Helper()
	var counts map[string]int
	eventually(b.t, limit, func() bool {
		counts = b.summary()
		return counts["COMPLETED"]+counts["REJECTED"]+counts["REFUNDED"] == total &&
			counts["REQUESTED"]+counts["DEBITED"]+counts["REFUNDING"] == 0
	}, func() string { return fmt.Sprintf("not all of %d transfers have ended: %v", total, counts) })
	return counts
}

// verify runs the real `bank verify` and demands that every invariant was judged and holds, with empty quarantines.
func (b *bank) verify() {
	b.t.Helper()
	b.verifyWith(0)
}

// verifyWith demands the same with so many messages in quarantine.
func (b *bank) verifyWith(quarantined int) {
	b.t.Helper()
	if report, held := b.held(quarantined); !held {
		b.t.Fatalf("bank verify, with %d messages in quarantine: %s", quarantined, report)
	}
}

// held says whether `bank verify` judged every invariant and found that it holds, with so many messages in quarantine.
func (b *bank) held(quarantined int) (report []byte, held bool) {
	b.t.Helper()
	report, err := b.command("verify", "--json")
	var found struct {
		OK, Quiet bool
		Counts    struct{ MessagesQuarantined int }
	}
	held = err == nil && json.Unmarshal(report, &found) == nil && found.OK && found.Quiet && found.Counts.MessagesQuarantined == quarantined
	return report, held
}

// command runs the bank program against this system.
func (b *bank) command(args ...string) ([]byte, error) {
	cmd, err := b.program(args...)
	if err != nil {
		return nil, err
	}
	return cmd.CombinedOutput()
}

func (b *bank) program(args ...string) (*exec.Cmd, error) {
	dir, err := binaries()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(dir, "bank"), args...)
	cmd.Dir = b.t.TempDir()
	cmd.Env = os.Environ()
	for key, value := range b.env {
		cmd.Env = append(cmd.Env, key+"="+value)
	}
	return cmd, nil
}
