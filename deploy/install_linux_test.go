// Package deploy_test checks the scripts that prepare a machine.
package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Plain sudo asks for a password, which only a person at a terminal can give; anywhere else it would wait for ever or fail
// in words that do not help.
func TestInstallAsksForThePasswordOnlyAtATerminal(t *testing.T) {
	for _, c := range []struct {
		name              string
		terminal, asks    bool
		installed, please bool
		through           string
	}{
		{name: "script, sudo asks", asks: true, please: true},
		{name: "script, sudo does not ask", installed: true, through: "-n env "},
		{name: "terminal, sudo asks", terminal: true, asks: true, installed: true, through: "env "},
		{name: "terminal, sudo does not ask", terminal: true, installed: true, through: "env "},
	} {
		t.Run(c.name, func(t *testing.T) { // not parallel: a script that a fork still holds open cannot be executed
			calls, said, err := install(t, c.terminal, c.asks)
			if (err == nil) != c.installed || strings.Contains(said, "Please install") != c.please {
				t.Errorf("install.sh: %v\n%s", err, said)
			}
			want := c.through + "DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends gcc libc6-dev"
			if found := strings.Contains("\n"+calls, "\n"+want+"\n"); found != c.installed {
				t.Errorf("sudo was called with\n%swant the installation: %t, as\n%s", calls, c.installed, want)
			}
		})
	}
}

// install runs install.sh on a machine that lacks a C compiler, for a user whose sudo asks for a password, or not, and that
// only notes what it is called with. Nothing is installed.
func install(t *testing.T, terminal, asks bool) (calls, said string, err error) {
	t.Helper()
	bin := t.TempDir()
	log := filepath.Join(bin, "calls")
	sudo := "#!/bin/sh\necho \"$*\" >>'" + log + "'\n"
	if asks {
		sudo += "[ \"$1\" != -n ]\n"
	}
	write(t, bin, "sudo", sudo)
	write(t, bin, "apt-get", "#!/bin/sh\nexit 1\n")
	write(t, bin, "id", "#!/bin/sh\necho 1000\n")
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "install.sh", "race")
	if terminal {
		cmd = exec.CommandContext(t.Context(), "script", "-qec", "/bin/sh install.sh race", os.DevNull)
	}
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "CC=no-such-compiler")
	output, err := cmd.CombinedOutput()
	return read(t, log), string(output), err
}

func write(t *testing.T, dir, name, script string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// read returns the content of a file, "" when there is none.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}
