package testenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/internal/testenv"
)

// Servers named in the environment are used, and none is started: a copy of this test binary runs where it could not
// even find the module in whose folder it would start them.
func TestGivenServersAreUsed(t *testing.T) {
	t.Parallel()
	lease, err := testenv.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run", "^(TestEnvsAreSeparate|TestQueueDepthCountsReadyAndUnacked)$", "-test.v")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "AMQP_URL="+lease.AMQPURL, "DATABASE_URL="+lease.PostgresURL,
		"RABBITMQ_MANAGEMENT_URL="+lease.ManagementURL)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") != 2 {
		t.Errorf("tests on given servers: %v\n%s", err, out)
	}
	if left, err := filepath.Glob(filepath.Join(cmd.Dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("files were made: %v, %v", left, err)
	}
}
