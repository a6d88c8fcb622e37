package supervise_test

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"example.com/banking/internal/supervise"
)

// The supervisor itself can be killed; on Linux the kernel ends its children then.
func TestKilledSupervisorLeavesNoChild(t *testing.T) {
	t.Parallel()
	holder, pids := startHolder(t, t.TempDir(), "")
	supervisor := parent(t, pids[0])
	if supervisor == holder.Process.Pid {
		t.Fatal("the holder is the parent of its children")
	}
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		// Nobody may reap it here, so a zombie counts as ended.
		waitFor(t, "child to end", func() bool { return !alive(pid) || state(t, pid) == 'Z' })
	}
}

// A child that is slow to end after its supervisor was killed still uses its data.
func TestLockOutlivesAKilledSupervisor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sup, err := supervise.New(config(dir, ""))
	if err != nil {
		t.Fatal(err)
	}
	child := startStubborn(t, sup, dir)
	if err := syscall.Kill(parent(t, child.PID()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-sup.Gone():
	case <-time.After(time.Minute):
		t.Fatal("nobody noticed that the supervisor is gone")
	}
	if _, err := sup.Start(sleeper(dir, "late")); !errors.Is(err, supervise.ErrGone) {
		t.Errorf("start without supervisor: %v, want %v", err, supervise.ErrGone)
	}
	if free(t, dir) {
		t.Error("the lock is free although a child lives")
	}
	closed := make(chan error, 1)
	go func() { closed <- sup.Close() }()
	if err := syscall.Kill(child.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err == nil {
		t.Error("close says nothing of the killed supervisor")
	}
	if !free(t, dir) {
		t.Error("close returned before the last child had ended")
	}
}

// stat returns what stands behind the name in /proc/PID/stat: state, parent and more.
func stat(pid int) [][]byte {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
}

func parent(t *testing.T, pid int) int {
	t.Helper()
	fields := stat(pid)
	if len(fields) < 2 {
		t.Fatalf("process %d is not running", pid)
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

func state(t *testing.T, pid int) byte {
	t.Helper()
	if fields := stat(pid); len(fields) > 0 {
		return fields[0][0]
	}
	return 'Z'
}
