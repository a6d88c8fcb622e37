package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"github.com/google/uuid"
)

// Each service gets 10,000 messages that it can never handle, in the middle of 2,000 good ones. Every one of the first ends
// in quarantine, every one of the others takes effect, no connection breaks, and memory stays where it was.
func TestFloodOfPoison(t *testing.T) {
	t.Parallel()
	const (
		poison    = 10_000
		transfers = 1_000 // two requests and two events each
		maxRSS    = 80 << 20
	)
	env := testenv.New(t)
	b := newBank(t, env, 1, map[string]string{"RETRY_DELAY": "500ms"})
	customers := b.open(20, 1_000_000)
	good := make(chan struct{})
	go func() {
		defer close(good)
		b.sendMany(customers, transfers, 8, 0)
	}()
	l := newLine(t, env.AMQPURL)
	requests := []string{"transfer", "credit", "refund"}
	for from := 0; from < poison; from += 300 {
		end := min(from+300, poison)
		var events []string
		for n := from; n < end; n++ {
			events = append(events, poisonedEvent(n))
		}
		l.publish("accounts.account.debited", events...)
		var garbage []string
		for n := from; n < end; n++ {
			garbage = append(garbage, poisonedRequest(n))
		}
		l.publish(requestKeys[from/300%len(requests)], garbage...)
	}
	<-good

	if counts := b.awaitSettled(transfers, 3*time.Minute); counts["COMPLETED"] != transfers {
		t.Errorf("ended as %v", counts)
	}
	depths := map[string]int{}
	eventually(t, 3*time.Minute, func() bool {
		depths["account"] = 0
		for _, name := range requests {
			depths["account"] += l.depth("account." + name + "-requested_error")
		}
		depths["transfer"] = l.depth("banking.dead-letters")
		return depths["account"] >= poison && depths["transfer"] >= poison
	}, func() string { return fmt.Sprintf("quarantined so far: %v", depths) })
	b.verifyWith(2 * poison)
	for _, r := range b.replicas() {
		if sessions := r.metric("messaging_sessions_total", ""); sessions != 1 {
			t.Errorf("%s has had %v sessions with the broker, want 1", r.name, sessions)
		}
		if n := r.metric("messaging_quarantined_total", ""); n != poison {
			t.Errorf("%s counts %v quarantined messages, want %d", r.name, n, poison)
		}
		peak := peakBytes(t, r.pid())
		t.Logf("%s: %d KiB RSS at most", r.name, peak>>10)
		if peak > maxRSS {
			t.Errorf("%s has needed %d KiB", r.name, peak>>10)
		}
	}
}

var requestKeys = []string{"transfers.transfer.requested", "transfers.transfer.credit-requested", "transfers.transfer.refund-requested"}

// poisonedEvent is something that transfer can never handle. One in ten is an event of a transfer that nobody knows, which is
// tried three times.
func poisonedEvent(n int) string {
	switch n % 10 {
	case 0:
		return fmt.Sprintf(`{"messageId":"unknown-%d","type":"Accounts.Account.Debited","data":{"transferId":%q}}`, n, uuid.NewString())
	case 1:
		return fmt.Sprintf(`{"messageId":"amount-%d","type":"Accounts.Account.Debited","data":{"transferId":%q,"amountMinor":"1"}}`, n, uuid.NewString())
	case 2:
		return fmt.Sprintf(`{"messageId":"none-%d","type":"Accounts.Account.Credited","data":{}}`, n)
	}
	return garbage(n)
}

// poisonedRequest is something that account can never handle.
func poisonedRequest(n int) string {
	if n%3 == 0 {
		return fmt.Sprintf(`{"messageId":"amount-%d","type":"Transfers.Transfer.Requested","data":{"transferId":%q,"amountMinor":1.5}}`, n, uuid.NewString())
	}
	return garbage(n)
}

// garbage is no message at all, or one of which nobody has heard.
func garbage(n int) string {
	switch n % 4 {
	case 0:
		return strings.Repeat("\x00\xff", n%500)
	case 1:
		return fmt.Sprintf(`{"messageId":"cut-%d","type":`, n)
	case 2:
		return fmt.Sprintf(`{"messageId":"other-%d","type":"Weather.Rain.Started","data":{"text":%q}}`, n, strings.Repeat("x", n%1000))
	}
	return strings.Repeat("[", n)
}

// peakBytes is the most resident memory that a process has had.
func peakBytes(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return kib << 10
		}
	}
	t.Fatal("no VmHWM in the status file")
	return 0
}
