package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
	running "example.com/banking/pkg/service"
)

// Copies of the test binary under other names are the programs that the tests of 'bank up' run: bank itself, and services
// that know just enough to be started.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "bank":
		main()
	case "account", "transfer":
		if slices.Equal(os.Args[1:], []string{"--help"}) {
			running.Main[fakeConfig]("account", nil, nil) // ends here
		}
		if err := fakeService(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fakeConfig is what a service made of our parts says that it can be told.
type fakeConfig struct {
	running.Config
	Faults running.Switch `env:"FAULTS" envDefault:"off" desc:"faults on purpose"`
}

// In the folder of a bank these files make its services end at once when they are started, or not become ready.
const brokenFile, unreadyFile = "broken", "unready"

func fakeService() error {
	for _, name := range []string{"DATABASE_URL", "AMQP_URL", "ADMIN_TOKEN", "HTTP_ADDR"} {
		if os.Getenv(name) == "" {
			return errors.New(name + " is missing")
		}
	}
	// No test sets it for these services but the one of 'bank demo', which must not let it through.
	if set := os.Getenv("MAX_ATTEMPTS"); set != "" {
		return fmt.Errorf("log format %q and %s attempts", os.Getenv("LOG_FORMAT"), set)
	}
	if _, err := os.Stat(brokenFile); err == nil {
		return errors.New("broken by the test")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(unreadyFile); err == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = fmt.Fprint(w, "held up by the test")
		}
	})
	mux.HandleFunc("GET /admin", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+os.Getenv("ADMIN_TOKEN") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("GET /pid", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("POST /accounts", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	mux.HandleFunc("POST /accounts/{id}/freeze", func(http.ResponseWriter, *http.Request) {})
	server := http.Server{Addr: os.Getenv("HTTP_ADDR"), Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// programs returns a folder with bank and the two services. Another process copies: were a copy open for writing
// here, a child forked at that moment would keep it busy.
func programs(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"bank", "account", "transfer"} {
		if out, err := exec.Command("cp", exe, filepath.Join(dir, name)).CombinedOutput(); err != nil {
			t.Fatalf("copy: %v: %s", err, out)
		}
	}
	return dir
}

// bankFolder returns a folder for a bank. It is removed once the servers in it have ended, with the data that root's PostgreSQL
// keeps elsewhere because its user cannot reach the folder.
func bankFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bank")
	t.Cleanup(func() {
		inside := filepath.Join(dir, "servers")
		if _, err := os.Stat(inside); err != nil {
			return // no server was started
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		lock, err := supervise.LockExclusive(ctx, filepath.Join(inside, "supervisor.lock"))
		if err != nil {
			t.Errorf("the servers have not ended: %v", err)
			return
		}
		if err := lock.Unlock(); err != nil {
			t.Error(err)
		}
		data, err := filepath.EvalSymlinks(filepath.Join(inside, "postgres"))
		if err == nil {
			err = os.RemoveAll(data)
		}
		if err != nil {
			t.Errorf("remove data: %v", err)
		}
	})
	return dir
}

// captured collects what a program prints while it runs.
type captured struct {
	path string
}

func (o captured) String() string {
	text, err := os.ReadFile(o.path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func startUp(t *testing.T, bin, dir string) (*exec.Cmd, captured) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "captured"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(filepath.Join(bin, "bank"), "up", "--dir", dir)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
	})
	return cmd, captured{file.Name()}
}

// bankCommand runs bank to its end. Cleanups call it too, when the test's own context has ended.
func bankCommand(t *testing.T, bin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "bank"), args...).CombinedOutput()
	return string(out), err
}

func TestUpRestartsServicesRefusesASecondAndStopsOnSignal(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	up, said := startUp(t, bin, dir)
	waitFor(t, said, func() bool { return strings.Contains(said.String(), "The bank is open") })

	where, err := loadEndpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := where.need("ACCOUNT_URL", "TRANSFER_URL", "AMQP_URL", "RABBITMQ_MANAGEMENT_URL",
		"ACCOUNT_DATABASE_URL", "TRANSFER_DATABASE_URL", "ADMIN_TOKEN"); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(endpointsFile(dir))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the addresses = %v, %v; want 0600", info.Mode(), err)
	}

	for _, command := range []string{"up", "demo"} {
		text, err := bankCommand(t, bin, command, "--dir", dir)
		if err == nil || !strings.Contains(text, "already running") || !strings.Contains(text, "bank down") {
			t.Errorf("%s beside a running bank: %v, %s", command, err, text)
		}
	}

	first := get(where.AccountURL + "/pid")
	var pid int
	if _, err := fmt.Sscan(first, &pid); err != nil {
		t.Fatalf("pid %q: %v", first, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, said, func() bool {
		now := get(where.AccountURL + "/pid")
		return now != "" && now != first
	})

	// A server that is started again is younger than the services that use it.
	killPostgres(t, dir)
	waitFor(t, said, func() bool { return strings.Contains(said.String(), "PostgreSQL runs again") })

	if err := up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := up.Wait(); err != nil {
		t.Errorf("up after Ctrl-C: %v\n%s", err, said)
	}
	if got := endedLast(t, dir, 5); got != "account transfer postgres rabbitmq epmd" {
		t.Errorf("Ctrl-C stopped in the order %q, want the services before the servers", got)
	}
	if left := stillRunning(t, dir); len(left) > 0 {
		t.Errorf("still running after Ctrl-C: %s", left)
	}
	if _, err := os.Stat(endpointsFile(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("addresses of a stopped bank: %v", err)
	}
}

func TestDetachedBankIsStoppedByDownAndSurvivesNoKill(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	t.Cleanup(func() { // a failed test leaves it running
		if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil {
			t.Errorf("down at the end: %v, %s", err, text)
		}
	})
	if text, err := bankCommand(t, bin, "up", "--detach", "--dir", dir); err != nil || !strings.Contains(text, "The bank is open") {
		t.Fatalf("up --detach: %v\n%s", err, text)
	}
	where, err := loadEndpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	if get(where.TransferURL+"/pid") == "" {
		t.Error("transfer does not answer in the background")
	}
	if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil || !strings.Contains(text, "stopped") {
		t.Errorf("down: %v, %s", err, text)
	}
	if left := stillRunning(t, dir); len(left) > 0 {
		t.Errorf("still running after down: %s", left)
	}
	if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil || !strings.Contains(text, "no bank is running") {
		t.Errorf("second down: %v, %s", err, text)
	}

	// The same data again, and this time nobody can say goodbye.
	up, said := startUp(t, bin, dir)
	waitFor(t, said, func() bool { return strings.Contains(said.String(), "The bank is open") })
	if running := stillRunning(t, dir); len(running) < 5 {
		t.Errorf("running in an open bank: %s, want two servers, epmd and two services", running)
	}
	if err := up.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil || !strings.Contains(text, "stopped; the data stays") && !strings.Contains(text, "no bank is running") {
		t.Errorf("down after a kill: %v, %s", err, text)
	}
	lock, err := supervise.TryLock(servers.SupervisorLock(filepath.Join(dir, "servers")))
	if left := stillRunning(t, dir); err != nil || len(left) > 0 {
		t.Errorf("down after a kill has not waited for what was still running: %s, %v", left, err)
	} else if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestUpNamesTheMissingProgramAndLeavesNothing(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	if err := os.Remove(filepath.Join(bin, "transfer")); err != nil {
		t.Fatal(err)
	}
	if text, err := bankCommand(t, bin, "up", "--dir", dir); err == nil || !strings.Contains(text, "program of the service transfer") {
		t.Errorf("up: %v, %s", err, text)
	}
	if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil || !strings.Contains(text, "no bank is running") {
		t.Errorf("down: %v, %s", err, text)
	}
}

// killPostgres ends the main process of the bank's PostgreSQL.
func killPostgres(t *testing.T, dir string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "servers", "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(content), &pid); err != nil {
		t.Fatalf("postmaster.pid %q: %v", content, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// endedLast returns the names of the last n processes to end, as the supervisor's log has it.
func endedLast(t *testing.T, dir string, n int) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "servers", "log", "supervisor.log"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(log)) {
		if _, rest, ok := strings.Cut(line, "msg=ended name="); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}
	return strings.Join(names[max(0, len(names)-n):], " ")
}

// stillRunning names the processes that the bank's supervisor has started and that live. Addresses would not tell: a port that has
// become free may be another test's a moment later.
func stillRunning(t *testing.T, dir string) []string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "servers", "log", "supervisor.log"))
	if err != nil {
		t.Fatal(err)
	}
	return aliveOf(t, string(log))
}

// aliveOf goes by the supervisor's log as to what has ended, since the supervisor notes an end after it has waited for it: from then on the
// id may be another process's. Whatever it has not noted, also because it died, is looked for.
func aliveOf(t *testing.T, log string) (names []string) {
	t.Helper()
	type process struct {
		name string
		pid  int
	}
	var started []process
	for line := range strings.Lines(log) {
		if _, rest, ok := strings.Cut(line, "msg=started "); ok {
			var p process
			if _, err := fmt.Sscanf(rest, "name=%s pid=%d", &p.name, &p.pid); err != nil {
				t.Fatalf("supervisor.log says %q: %v", line, err)
			}
			started = append(started, p)
		}
		if _, rest, ok := strings.Cut(line, "msg=ended name="); ok {
			name := strings.Fields(rest)[0]
			for i, p := range slices.Backward(started) { // the last of that name: an earlier one may be a dead supervisor's
				if p.name == name {
					started = slices.Delete(started, i, i+1)
					break
				}
			}
		}
	}
	for _, p := range started {
		if syscall.Kill(p.pid, 0) == nil && !isZombie(p.pid) {
			names = append(names, p.name)
		}
	}
	return names
}

// isZombie says whether a process has ended and nobody has waited for it: after a supervisor that was killed that is up to whatever is
// process 1, in a container often nobody. Only Linux tells, elsewhere process 1 does wait.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")) // the name before it may hold anything
	return bytes.HasPrefix(state, []byte("Z"))
}

// Some process has the id that one of the bank's had: ids are given again.
func TestWhatHasEndedIsNotStillRunning(t *testing.T) {
	t.Parallel()
	started := func(name string) string {
		return fmt.Sprintf("time=2026-11-30T10:00:00Z level=INFO msg=started name=%s pid=%d\n", name, os.Getpid())
	}
	const ended = "time=2026-11-30T10:00:01Z level=INFO msg=ended name=account state=\"exit status 0\"\n"
	for log, want := range map[string]string{
		started("account"):                               "account",
		started("account") + ended:                       "",
		started("account") + started("transfer") + ended: "transfer",
		started("account") + ended + started("account"):  "account",
		started("account") + started("account") + ended:  "account",
		"msg=started name=account pid=2147483647\n":      "", // no system gives such an id
	} {
		if got := strings.Join(aliveOf(t, log), " "); got != want {
			t.Errorf("running are %q, want %q, by\n%s", got, want, log)
		}
	}
}

// get returns the answer's body, "ok" for an empty one, and "" when nobody answers.
func get(address string) string {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(address)
	if err != nil {
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	var body bytes.Buffer
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return ""
	}
	if body.Len() == 0 {
		return "ok"
	}
	return body.String()
}

func waitFor(t *testing.T, said fmt.Stringer, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	late := time.After(3 * time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain; the bank said:\n%s", said)
		}
	}
}
