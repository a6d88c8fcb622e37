package e2e

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
)

const adminToken = "e2e-admin-token"

// faulty are the settings of a bank whose services can be told to fail.
func faulty(more map[string]string) map[string]string {
	settings := map[string]string{"FAULTS": "on", "ADMIN_TOKEN": adminToken}
	for name, value := range more {
		settings[name] = value
	}
	return settings
}

// admin makes a call under /admin and decodes the answer, which must have the status.
func (r *replica) admin(method, path string, body any, status int, into any) {
	r.t.Helper()
	got, answer := call(method, r.url+"/admin"+path, body, "Authorization", "Bearer "+adminToken)
	if got != status {
		r.t.Fatalf("%s: %s %s: %d %s", r.name, method, path, got, answer)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			r.t.Fatalf("%s: %s %s: %v in %s", r.name, method, path, err, answer)
		}
	}
}

// arm orders a fault, given as POST /admin/faults takes it.
func (r *replica) arm(fault map[string]any) {
	r.t.Helper()
	r.admin(http.MethodPost, "/faults", fault, http.StatusCreated, nil)
}

// disarm deletes all faults and returns how often they have fired.
func (r *replica) disarm() (fired int) {
	r.t.Helper()
	var list struct{ Items []struct{ Fired int } }
	r.admin(http.MethodGet, "/faults", nil, http.StatusOK, &list)
	for _, f := range list.Items {
		fired += f.Fired
	}
	r.admin(http.MethodDelete, "/faults", nil, http.StatusNoContent, nil)
	return fired
}

// metric is the sum of all series of a metric whose labels contain the given text.
func (r *replica) metric(name, labels string) (sum float64) {
	r.t.Helper()
	status, body := call(http.MethodGet, r.url+"/metrics", nil)
	if status != http.StatusOK {
		r.t.Fatalf("%s: /metrics: %d", r.name, status)
	}
	for line := range strings.Lines(string(body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if given, braces, _ := strings.Cut(series, "{"); given == name && strings.Contains(braces, labels) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				r.t.Fatalf("%s: %s", r.name, line)
			}
			sum += n
		}
	}
	return sum
}

// Each service is killed once at each point, with transfers under way, and started again. What it was in the middle of is
// neither lost nor done twice.
func TestKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	const transfers = 10
	b := newBank(t, testenv.New(t), 1, faulty(map[string]string{"RETRY_DELAY": "500ms", "RETRY_INTERVALS": "500ms,500ms,500ms"}))
	customers := b.open(4, 1_000_000)
	sent := 0
	for _, point := range []string{"handler", "before-commit", "after-commit", "before-ack", "after-ack", "after-publish"} {
		for _, victim := range []*replica{b.accounts[0], b.transfers[0]} {
			victim.arm(map[string]any{"point": point, "action": "exit", "count": 1})
			sending := make(chan struct{})
			go func() { // clients go on asking while transfer is down
				defer close(sending)
				b.sendMany(customers, transfers, 4, 0)
			}()
			sent += transfers
			if code := victim.ended(); code != 137 {
				t.Fatalf("%s at %s ended with exit code %d, want 137", victim.name, point, code)
			}
			victim.restart()
			<-sending
			b.awaitSettled(sent, time.Minute)
			if fired := victim.disarm(); fired != 1 {
				t.Errorf("%s at %s: fired %d times, want 1", victim.name, point, fired)
			}
		}
	}
	b.verify()
}

// One failure of a dependency is one retry, in the process or over the broker, and then all is well.
func TestOneTimeoutIsOneRetry(t *testing.T) {
	t.Parallel()
	b := newBank(t, testenv.New(t), 1, faulty(map[string]string{"RETRY_DELAY": "200ms", "RETRY_INTERVALS": "200ms,5s,25s"}))
	customers := b.open(2, 1_000)
	for _, r := range b.replicas() {
		r.arm(map[string]any{"point": "handler", "action": "error", "class": "TIMEOUT", "count": 1})
	}
	if _, err := b.send(customers[0], customers[1], 10); err != nil {
		t.Fatal(err)
	}
	if counts := b.awaitSettled(1, time.Minute); counts["COMPLETED"] != 1 {
		t.Errorf("ended as %v", counts)
	}
	b.verify()
	for _, r := range b.replicas() {
		failed, retried := r.metric("messaging_failures_total", `class="TIMEOUT"`), r.metric("messaging_deliveries_total", `outcome="retried"`)
		if all := r.metric("messaging_failures_total", ""); failed != 1 || all != 1 || retried != 1 {
			t.Errorf("%s: %v timeouts of %v failures and %v retries, want 1 each", r.name, failed, all, retried)
		}
		if fired := r.disarm(); fired != 1 {
			t.Errorf("%s: fired %d times", r.name, fired)
		}
	}
}

// Two replicas share a count, also when one of them comes back in between; what lasts ends on both when it is deleted on one.
func TestFaultsHoldForAllReplicas(t *testing.T) {
	t.Parallel()
	const count = 5
	b := newBank(t, testenv.New(t), 2, faulty(map[string]string{"RETRY_INTERVALS": "100ms,100ms,100ms,100ms,100ms,100ms,100ms,100ms"}))
	customers := b.open(2, 1_000_000)
	first, second := b.accounts[0], b.accounts[1]
	first.arm(map[string]any{"point": "handler", "action": "error", "class": "TIMEOUT", "count": count})
	second.kill()
	second.restart() // knows the fault before its first message
	b.sendMany(customers, 40, 4, 0)
	b.awaitSettled(40, time.Minute)
	var failures float64
	for _, r := range b.accounts {
		failures += r.metric("messaging_failures_total", `class="TIMEOUT"`)
	}
	if fired := second.disarm(); fired != count || failures != count {
		t.Errorf("fired %d times for %v failures, want %d", fired, failures, count)
	}
	b.verify()
}
