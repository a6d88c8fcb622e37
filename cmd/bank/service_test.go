package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"example.com/banking/internal/control"
	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// Another bank has taken the port since it was chosen, and answers on it: that must be neither taken for the own service nor
// the end of the start.
func TestServiceWhosePortWasTakenGetsAnother(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/admin") {
			w.WriteHeader(http.StatusUnauthorized) // not its token
		} else if r.Header.Get("Authorization") != "" {
			t.Errorf("a stranger is told the token at %s", r.URL.Path)
		}
	}))
	t.Cleanup(other.Close)
	s := fakeAccount(t)
	var said strings.Builder
	term := &terminal{out: &said, err: io.Discard}
	s.port = portOf(t, other.URL)
	s.url = other.URL
	if err := s.launch(nil); err != nil { // as start does, which found the port free
		t.Fatal(err)
	}

	if err := s.bringUp(t.Context(), term); err != nil {
		t.Fatal(err)
	}

	if s.url == other.URL || get(s.url+"/pid") != strconv.Itoa(s.child.PID()) {
		t.Errorf("the service is said to be on %s, where %q answers; the other bank is on %s", s.url, get(s.url+"/pid"), other.URL)
	}
	if !strings.Contains(said.String(), "is taken, account listens on "+strconv.Itoa(s.port)) {
		t.Errorf("the other port is not told:\n%s", said.String())
	}
}

// The port of a stopped service stays its own: another bank's would otherwise get what people send there, and the admin token.
func TestPortOfAStoppedServiceIsKeptForIt(t *testing.T) {
	t.Parallel()
	ours, theirs := fakeAccount(t), fakeAccount(t)
	term := &terminal{out: io.Discard, err: io.Discard}
	if err := errors.Join(ours.start(0, term), ours.bringUp(t.Context(), term), ours.child.Stop()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(theirs.start(ours.port, term), theirs.bringUp(t.Context(), term)); err != nil {
		t.Fatal(err)
	}
	if theirs.port == ours.port {
		t.Fatal("another bank's service has got the port")
	}
	if err := errors.Join(ours.restart(nil), ours.awaitReady(t.Context(), ours.child, term)); err != nil {
		t.Error(err)
	}
	if get(ours.url+"/pid") != strconv.Itoa(ours.child.PID()) {
		t.Errorf("%q answers on %s", get(ours.url+"/pid"), ours.url)
	}
}

// A service that ends for a reason of its own is not tried again.
func TestServiceThatFailsIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	s := fakeAccount(t)
	s.process.Env = nil // without any address it refuses to start
	if err := os.WriteFile(s.process.Log, []byte("a failure of yesterday\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	starts, run := 0, s.run
	s.run = func(p supervise.Process) (*supervise.Child, error) { starts++; return run(p) }
	term := &terminal{out: io.Discard, err: io.Discard}
	free, err := servers.FreePort(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(free, term); err != nil {
		t.Fatal(err)
	}
	err = s.bringUp(t.Context(), term)
	if err == nil || !strings.Contains(err.Error(), "DATABASE_URL is missing") || !strings.Contains(err.Error(), s.process.Log) {
		t.Errorf("error = %v, want the reason from the log", err)
	} else if strings.Contains(err.Error(), "yesterday") {
		t.Errorf("error = %v, want nothing of earlier runs", err)
	}
	if starts != 1 {
		t.Errorf("started %d times, want 1", starts)
	}
}

// A slip in a setting's name is refused with the names that the service has: started as usual, it would look as if it had been heeded.
func TestSettingsThatAServiceDoesNotHave(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	says := &service{name: "account", process: supervise.Process{Path: filepath.Join(bin, "account"), Dir: t.TempDir()}}
	for name, want := range map[string]string{
		"FAULTS": "", "LOG_LEVEL": "", "OTEL_TRACES_SAMPLER": "", "GOMAXPROCS": "",
		"BOGUS": "BOGUS cannot be set: account does not know it. It knows LOG_LEVEL, SHUTDOWN_GRACE, FAULTS",
		"Spans": "Spans cannot be set: account does not know it. It knows LOG_LEVEL, SHUTDOWN_GRACE, FAULTS",
	} {
		got := ""
		if err := says.knows(t.Context(), map[string]string{name: "1"}); err != nil {
			got = err.Error()
			if !errors.Is(err, control.ErrSetting) {
				t.Errorf("%s: %v is no refusal of a setting", name, err)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	silent := &service{name: "account", process: supervise.Process{Path: filepath.Join(bin, "nothing"), Dir: t.TempDir()}}
	if err := silent.knows(t.Context(), map[string]string{"BOGUS": "1"}); err != nil {
		t.Errorf("of a program without a list: %v", err)
	}
}

// fakeAccount returns a service that has not been started.
func fakeAccount(t *testing.T) *service {
	t.Helper()
	bin, dir := programs(t), t.TempDir()
	sup, err := supervise.New(supervise.Config{Log: filepath.Join(dir, "supervisor.log"), Lock: filepath.Join(dir, "lock")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(); err != nil {
			t.Error(err)
		}
	})
	ports := &servers.Ports{}
	t.Cleanup(ports.Release)
	return &service{name: "account", token: "own", run: sup.Start, ports: ports, process: supervise.Process{
		Name: "account", Path: filepath.Join(bin, "account"), Dir: dir, Log: filepath.Join(dir, "account.log"),
		Env: []string{"DATABASE_URL=x", "AMQP_URL=x", "ADMIN_TOKEN=own"},
	}}
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
