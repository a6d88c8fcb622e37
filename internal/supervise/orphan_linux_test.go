package supervise_test

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"testing"
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
