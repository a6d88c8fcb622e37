package supervise_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/banking/internal/supervise"
)

// holderDir makes a copy of the test binary a holder, which the tests kill.
const holderDir, holderLease = "TEST_HOLDER_DIR", "TEST_HOLDER_LEASE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderDir); dir != "" {
		if err := hold(dir, os.Getenv(holderLease)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// hold starts two children, prints their process ids and waits to be killed.
func hold(dir, lease string) error {
	sup, err := supervise.New(config(dir, lease))
	if err != nil {
		return err
	}
	for _, name := range []string{"one", "two"} {
		child, err := sup.Start(sleeper(dir, name))
		if err != nil {
			return err
		}
		fmt.Println(child.PID())
	}
	select {}
}

func config(dir, lease string) supervise.Config {
	return supervise.Config{
		Log: filepath.Join(dir, "supervisor.log"), Lock: filepath.Join(dir, "supervisor.lock"), Lease: lease,
		RemoveLast: []string{filepath.Join(dir, "data")},
	}
}

func sleeper(dir, name string) supervise.Process {
	return supervise.Process{Name: name, Path: "/bin/sleep", Args: []string{"600"}, Dir: dir, Log: filepath.Join(dir, "children.log")}
}

// startHolder returns a running holder and the process ids of its children.
func startHolder(t *testing.T, dir, lease string) (*exec.Cmd, []int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), holderDir+"="+dir, holderLease+"="+lease)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // most tests have killed it already
	var pids []int
	lines := bufio.NewScanner(out)
	for len(pids) < 2 && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("holder said %q", lines.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) < 2 {
		t.Fatalf("holder started %d children, want 2", len(pids))
	}
	return cmd, pids
}

func TestKilledHolderLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	holder, pids := startHolder(t, dir, "")
	for _, pid := range pids {
		if !alive(pid) {
			t.Fatalf("child %d is not running", pid)
		}
	}

	kill(t, holder)

	for _, pid := range pids {
		waitFor(t, "child to end", func() bool { return !alive(pid) })
	}
	waitFor(t, "supervisor to end", func() bool { return free(t, dir) })
	if _, err := os.Stat(filepath.Join(dir, "data")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data is still there: %v", err)
	}
}

func TestLeaseKeepsChildrenUntilLastHolderIsGone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lease := filepath.Join(dir, "lease.lock")
	share, err := supervise.LockShared(t.Context(), lease)
	if err != nil {
		t.Fatal(err)
	}
	holder, pids := startHolder(t, dir, lease)

	kill(t, holder)

	waitFor(t, "the supervisor to notice", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "supervisor.log"))
		return err == nil && strings.Contains(string(log), "waiting for the last lease")
	})
	if !alive(pids[0]) || !alive(pids[1]) {
		t.Fatal("children were stopped although a lease is held")
	}
	if err := share.Unlock(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		waitFor(t, "child to end", func() bool { return !alive(pid) })
	}
	waitFor(t, "supervisor to end", func() bool { return free(t, dir) })
}

func TestChildrenStopInReverseOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sup, err := supervise.New(config(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second", "third"} {
		if _, err := sup.Start(sleeper(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := sup.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, dir); got != "third second first" {
		t.Errorf("children ended in the order %q", got)
	}
}

// A server that was started again is the youngest child, and yet its clients have to end before it.
func TestChildrenStopByRankBeforeAge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sup, err := supervise.New(config(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		name string
		rank int
	}{{"client", 1}, {"other-client", 1}, {"server", 0}} {
		process := sleeper(dir, p.name)
		process.StopRank = p.rank
		if _, err := sup.Start(process); err != nil {
			t.Fatal(err)
		}
	}
	if err := sup.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, dir); got != "other-client client server" {
		t.Errorf("children ended in the order %q", got)
	}
}

// ended returns the names of the children in the order of their ends, as the supervisor's log has it.
func ended(t *testing.T, dir string) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(dir, "supervisor.log"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(log)) {
		if _, rest, ok := strings.Cut(line, "msg=ended name="); ok {
			names = append(names, strings.Fields(rest)[0])
		}
	}
	return strings.Join(names, " ")
}

func TestStubbornChildIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := startStubborn(t, newSupervisor(t, dir), dir)
	if err := child.Stop(); err != nil {
		t.Fatal(err)
	}
	if got := child.Exit(); got != "signal: killed" {
		t.Errorf("exit = %q, want a kill", got)
	}
}

// startStubborn returns a child that ends only when it is killed.
func startStubborn(t *testing.T, sup *supervise.Supervisor, dir string) *supervise.Child {
	t.Helper()
	child, err := sup.Start(supervise.Process{
		Name: "stubborn", Path: "/bin/sh", Args: []string{"-c", `trap "" TERM; echo ready; while :; do sleep 0.1; done`},
		Env: []string{"PATH=/usr/bin:/bin"}, Dir: dir, Log: filepath.Join(dir, "stubborn.log"), StopTimeout: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the trap", func() bool {
		said, err := os.ReadFile(filepath.Join(dir, "stubborn.log"))
		return err == nil && strings.Contains(string(said), "ready")
	})
	return child
}

func TestChildCanBeStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sup := newSupervisor(t, dir)
	for round := range 3 {
		child, err := sup.Start(sleeper(dir, "again"))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := sup.Start(sleeper(dir, "again")); err == nil {
			t.Fatal("a second child of the same name was started")
		}
		if err := child.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := child.Stop(); err != nil {
			t.Errorf("stop of an ended child: %v", err)
		}
	}
}

func TestStartReportsWhatCannotBeExecuted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := sleeper(dir, "missing")
	p.Path = filepath.Join(dir, "no-such-program")
	if _, err := newSupervisor(t, dir).Start(p); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("error = %v, want one that names the program", err)
	}
}

func TestOneSupervisorPerLock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newSupervisor(t, dir)
	if _, err := supervise.New(config(dir, "")); !errors.Is(err, supervise.ErrLocked) {
		t.Errorf("error = %v, want %v", err, supervise.ErrLocked)
	}
}

func newSupervisor(t *testing.T, dir string) *supervise.Supervisor {
	t.Helper()
	sup, err := supervise.New(config(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sup.Close(); err != nil {
			t.Error(err)
		}
	})
	return sup
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the killed holder ended well")
	}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func free(t *testing.T, dir string) bool {
	t.Helper()
	lock, err := supervise.TryLock(filepath.Join(dir, "supervisor.lock"))
	if errors.Is(err, supervise.ErrLocked) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return lock.Unlock() == nil
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
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
