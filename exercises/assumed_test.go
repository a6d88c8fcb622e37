package exercises

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/control"
	"example.com/banking/internal/management"
)

// telling is a service that tells how it runs. A plain one has no fault points.
func telling(t *testing.T, name, labels string, breaker bool) *service {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "messaging_retry_policy_info{%s,queue=%q} 1\n", labels, workQueue[name])
		if breaker {
			_, _ = fmt.Fprintf(w, "messaging_breaker_state{queue=%q} 0\n", workQueue[name])
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return newService(name, server.URL, "")
}

const (
	usualAccount  = `attempts="4",classify="on",road="in-process",waits="1s,5s,25s"`
	usualTransfer = `attempts="3",classify="on",road="lap",waits="5s"`
)

// lapOf is a broker whose management tells this time to live of transfer's retry queue.
func lapOf(t *testing.T, lap time.Duration) *broker {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"arguments":{"x-message-ttl":%d}}`, lap.Milliseconds())
	}))
	t.Cleanup(server.Close)
	return &broker{vhost: "banking", management: management.New(server.URL)}
}

// noting is a keeper that only notes with which settings it was told to start what.
type noting struct {
	mu   sync.Mutex
	told []string
}

func (n *noting) Processes() []control.Process { return nil }

func (n *noting) Act(_ context.Context, name string, verb control.Verb, settings map[string]string) (control.Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told = append(n.told, fmt.Sprintf("%s %s %v", verb, name, settings))
	return control.Process{Name: name, State: control.Running, Changed: settings}, nil
}

// Every exercise that assumes something of how a service runs has the service changed, or says what is missing and how to have it.
func TestAssumptionsAreMetOrNamed(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		name              string
		number            int
		account, transfer string
		breakerless       bool
		lap               time.Duration
		want              string // what the keeper is told
		missing           string // what is said without one
	}{
		{name: "all as usual", number: 1},
		{name: "all as usual", number: 2},
		{name: "all as usual", number: 8},
		{name: "tiered", number: 1, transfer: `attempts="5",classify="on",road="tiered",waits="5s,30s,5m0s"`,
			want: "restart transfer map[MAX_ATTEMPTS:3 RETRY_PROFILE:lap]", missing: "Start it with MAX_ATTEMPTS=3 RETRY_PROFILE=lap"},
		{name: "tiered", number: 3, transfer: `attempts="5",classify="on",road="tiered",waits="5s,30s,5m0s"`,
			want: "restart transfer map[MAX_ATTEMPTS:3 RETRY_PROFILE:lap]", missing: "RETRY_PROFILE=lap"},
		{name: "another number of attempts", number: 1, transfer: `attempts="7",classify="on",road="lap",waits="5s"`,
			want: "restart transfer map[MAX_ATTEMPTS:3]", missing: "Start it with MAX_ATTEMPTS=3"},
		{name: "all alike", number: 2, account: `attempts="4",classify="off",road="in-process",waits="1s,5s,25s"`,
			want: "restart account map[RETRY_CLASSIFY:on]", missing: "Start it with RETRY_CLASSIFY=on"},
		{name: "no breaker", number: 8, breakerless: true, want: "restart account map[BREAKER:on]", missing: "Start it with BREAKER=on"},
		{name: "long laps", number: 1, lap: time.Hour, missing: "transfer waits 1h0m0s between attempts, 2h0m0s in all"},
		{name: "long waits", number: 2, account: `attempts="3",classify="on",road="in-process",waits="10m0s"`, missing: "account waits 10m0s between attempts, 20m0s in all"},
		{name: "what it does not look at", number: 5, transfer: `attempts="5",classify="off",road="tiered",waits="1h0m0s"`, breakerless: true, lap: time.Hour},
	} {
		t.Run(fmt.Sprintf("%d %s", of.number, of.name), func(t *testing.T) {
			t.Parallel()
			e, _ := Find(of.number)
			if of.account == "" {
				of.account = usualAccount
			}
			if of.transfer == "" {
				of.transfer = usualTransfer
			}
			if of.lap == 0 {
				of.lap = 5 * time.Second
			}
			keeper := &noting{}
			mux := http.NewServeMux()
			control.Register(mux, keeper)
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			r := &run{
				Bank: &Bank{}, exercise: e, report: func(Event) {}, control: control.NewClient(server.URL, ""), broker: lapOf(t, of.lap),
				account: telling(t, "account", of.account, !of.breakerless), transfer: telling(t, "transfer", of.transfer, true),
			}
			err := r.settle(t.Context())
			if told := strings.Join(keeper.told, "\n"); told != of.want {
				t.Errorf("the keeper was told %q, want %q", told, of.want)
			}
			if of.want == "" && of.missing != "" {
				expectUnfit(t, err, of.missing)
			} else if err != nil {
				t.Error(err)
			}
			r.control = nil
			if err := r.settle(t.Context()); of.missing != "" {
				expectUnfit(t, err, of.missing)
			} else if err != nil {
				t.Errorf("without a keeper: %v", err)
			}
		})
	}
}

func expectUnfit(t *testing.T, err error, wanted string) {
	t.Helper()
	if !errors.Is(err, ErrNeeds) || !strings.Contains(err.Error(), wanted) {
		t.Errorf("got %v, want an error that says %q", err, wanted)
	}
}

// A service that tells nothing of its retries is one of another version. Nothing is guessed about it.
func TestASilentServiceIsNoUsualOne(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	if settings, err := newService("transfer", server.URL, "").settings(t.Context()); err == nil || !strings.Contains(err.Error(), "does not tell") {
		t.Errorf("got %v, %v", settings, err)
	}
}

func TestAllWaitsTogether(t *testing.T) {
	t.Parallel()
	for _, of := range []struct {
		waits, attempts string
		want            time.Duration
	}{
		{"5s", "3", 10 * time.Second}, {"1s,5s,25s", "4", 31 * time.Second}, {"1s,5s", "4", 11 * time.Second}, {"5s", "1", 0}, {"5s,30s", "2", 5 * time.Second},
	} {
		if got := sat(of.waits, of.attempts); got != of.want {
			t.Errorf("%s attempts with waits of %s: %s, want %s", of.attempts, of.waits, got, of.want)
		}
	}
}
