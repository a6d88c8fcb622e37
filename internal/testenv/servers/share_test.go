package servers_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// A test process is killed while it starts the servers for all. The next one must start them anew, share them with those
// that come later, and leave nothing.
func TestShareRecoversFromAStarterThatWasKilled(t *testing.T) {
	t.Parallel()
	parent := folder(t)
	dir := filepath.Join(parent, "shared")
	starter, _ := startSharer(t, dir)
	waitFor(t, "the cluster to be in the making", func() bool {
		log, err := os.ReadFile(filepath.Join(dir, "log", "supervisor.log"))
		return err == nil && strings.Contains(string(log), "name=initdb")
	})
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	second, out := startSharer(t, dir)
	var theirs servers.Addresses
	if err := json.NewDecoder(out).Decode(&theirs); err != nil {
		t.Fatalf("addresses of the second starter: %v", err)
	}
	lease, err := servers.Share(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Addresses != theirs {
		t.Errorf("a second pair was started: %+v beside %+v", lease.Addresses, theirs)
	}

	// Ctrl-C at a terminal and a kill come to the same: the process is gone and says nothing.
	if err := second.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err == nil {
		t.Error("the interrupted process ended well")
	}
	execute(t, lease.PostgresURL, "SELECT 1") // there is still a lease
	if err := lease.Release(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the servers to end", func() bool { return unlocked(t, filepath.Join(dir, "supervisor.lock")) })
	for _, address := range []string{theirs.AMQPURL, theirs.ManagementURL, theirs.PostgresURL} {
		if listening(t, address) {
			t.Errorf("somebody still listens on %s", address)
		}
	}
	if got := names(t, dir); !slices.Equal(got, []string{"lease.lock", "log", "start.lock", "supervisor.lock"}) {
		t.Errorf("left behind: %v", got)
	}
}

func startSharer(t *testing.T, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), sharerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most often ended by the test
		_ = cmd.Wait()
	})
	return cmd, out
}

func unlocked(t *testing.T, path string) bool {
	t.Helper()
	lock, err := supervise.TryLock(path)
	if errors.Is(err, supervise.ErrLocked) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return lock.Unlock() == nil
}

// names lists what is in a folder, in order.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, 0, len(entries))
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
