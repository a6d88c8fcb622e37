package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// The bank cannot start anything without its supervisor, so it must end and not leave addresses of nobody.
func TestUpEndsWhenItsSupervisorIsKilled(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	up, said := startUp(t, bin, dir)
	waitFor(t, said, func() bool { return strings.Contains(said.String(), "The bank is open") })
	where, err := loadEndpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(parentOf(t, get(where.AccountURL+"/pid")), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

	ended := make(chan error, 1)
	go func() { ended <- up.Wait() }()
	waitFor(t, said, func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return false
		}
	})

	if up.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), "the supervisor has ended") {
		t.Errorf("up ended with %v and said:\n%s", err, said)
	}
	if _, err := os.Stat(endpointsFile(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("addresses of a dead bank: %v", err)
	}
	if text, err := bankCommand(t, bin, "down", "--dir", dir); err != nil || !strings.Contains(text, "no bank is running") {
		t.Errorf("down: %v, %s", err, text)
	}
	// The kernel kills what the supervisor had started, which takes a moment on a busy machine, and longer for a broker of many threads.
	waitFor(t, said, func() bool { return len(stillRunning(t, dir)) == 0 })
}

func parentOf(t *testing.T, pid string) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "PPid:")
	var parent int
	if _, err := fmt.Sscan(rest, &parent); err != nil {
		t.Fatalf("parent of %s: %v", pid, err)
	}
	return parent
}

// What nobody has waited for still has its id.
func TestZombieIsNotStillRunning(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	log := fmt.Sprintf("msg=started name=cat pid=%d\n", cmd.Process.Pid)
	if got := aliveOf(t, log); len(got) != 1 {
		t.Errorf("running are %q, want cat", got)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, captured{os.DevNull}, func() bool { return len(aliveOf(t, log)) == 0 })
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("it is no zombie: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
