package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A fresh machine has neither make nor curl nor shellcheck, and no package lists to find them by.
func TestChecksInstallTheirToolsOnAFreshMachine(t *testing.T) {
	bin := freshMachine(t)
	write(t, bin, "go", "#!/bin/sh\necho go99.0\n")
	said, err := runChecks(t, bin)
	const want = "update -q\ninstall -q -y --no-install-recommends make curl shellcheck ca-certificates\n"
	if got := read(t, filepath.Join(bin, "calls")); got != want || err == nil { // the stand-in installs nothing and fails
		t.Errorf("apt-get was called with\n%swant\n%serror %v\n%s", got, want, err, said)
	}
}

func TestChecksSayThatGoIsMissingBeforeTheyInstall(t *testing.T) {
	bin := freshMachine(t)
	said, err := runChecks(t, bin)
	if err == nil || !strings.Contains(said, "Go is not installed") {
		t.Errorf("checks without Go: %v\n%s", err, said)
	}
	if got := read(t, filepath.Join(bin, "calls")); got != "" {
		t.Errorf("apt-get was called with\n%s", got)
	}
}

// freshMachine returns a folder for PATH with what every Debian has, and an apt-get that notes its calls and cannot install.
func freshMachine(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"dirname", "sed", "sort", "head", "sh"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, bin, "apt-get", "#!/bin/sh\necho \"$*\" >>'"+filepath.Join(bin, "calls")+"'\n[ \"$1\" != install ]\n")
	return bin
}

func runChecks(t *testing.T, path string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join("..", ".ci", "run"))
	cmd.Env = []string{"PATH=" + path}
	output, err := cmd.CombinedOutput()
	return string(output), err
}
