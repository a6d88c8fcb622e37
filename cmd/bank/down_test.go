package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/supervise"
)

// A killed bank leaves its process id in the lock, and the id may be another program's when the lock is held again: by a bank that
// starts, by a second 'bank down', by somebody who only asks.
func TestDownTellsNobodyButTheBankToStop(t *testing.T) {
	t.Parallel()
	stranger, ended := sleeper(t)
	for name, left := range map[string]string{
		"nobody's":                      "",
		"half written":                  fmt.Sprintf("%d", stranger.Pid),
		"of a bank without a start":     fmt.Sprintf("%d\n", stranger.Pid),
		"of a bank that had the id":     fmt.Sprintf("%d 1\n", stranger.Pid),
		"of a process group, not one":   "-1 1\n",
		"of whoever holds no id at all": "0 1\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, said := t.TempDir(), make(chan string, 100)
			path := filepath.Join(dir, lockFile)
			lock, err := supervise.TryLock(path)
			if err == nil {
				err = lock.Write(left)
			}
			if err != nil {
				t.Fatal(err)
			}
			down := make(chan error, 1)
			go func() {
				down <- (&downCommand{}).Run(t.Context(), &terminal{out: printed(said), dir: dir})
			}()
			if got := next(t, said); !strings.Contains(got, "just being started or stopped") {
				t.Errorf("while another holds the lock, down said %q", got)
			}
			if err := lock.Unlock(); err != nil { // as a holder who is killed: what it wrote stays
				t.Fatal(err)
			}
			if got := next(t, said); !strings.Contains(got, "no bank is running") {
				t.Errorf("at last down said %q", got)
			}
			if err := <-down; err != nil {
				t.Error(err)
			}
			if content, err := os.ReadFile(path); err != nil || len(content) > 0 {
				t.Errorf("the lock says %q, %v after down; want nothing", content, err)
			}
		})
	}
	t.Cleanup(func() {
		select {
		case err := <-ended:
			t.Errorf("down ended a program that was no bank: %v", err)
		default:
		}
	})
}

func TestDownStopsTheProcessThatSignedTheLock(t *testing.T) {
	t.Parallel()
	bank, ended := sleeper(t)
	began, err := supervise.Started(bank.Pid)
	if err != nil {
		t.Fatal(err)
	}
	dir, said := t.TempDir(), make(chan string, 100)
	lock, err := supervise.TryLock(filepath.Join(dir, lockFile))
	if err == nil {
		err = lock.Write(fmt.Sprintf("%d %s\n", bank.Pid, began))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := takeFolder(t.Context(), filepath.Join(dir, lockFile)); !errors.Is(err, supervise.ErrLocked) {
		t.Errorf("a second bank beside it: %v", err)
	}
	down := make(chan error, 1)
	go func() {
		down <- (&downCommand{}).Run(t.Context(), &terminal{out: printed(said), dir: dir})
	}()
	if got, want := next(t, said), fmt.Sprintf("(process %d)", bank.Pid); !strings.Contains(got, want) {
		t.Errorf("down said %q, want %s", got, want)
	}
	<-ended
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if got := next(t, said); !strings.Contains(got, "stopped; the data stays") {
		t.Errorf("at last down said %q", got)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// Somebody who asks whether a bank runs holds the lock for an instant, and a killed bank's name may still stand in it.
func TestABankStartsBesideSomebodyWhoAsks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), lockFile)
	asking, err := supervise.LockShared(t.Context(), path)
	if err == nil {
		err = asking.Write("1 1\n")
	}
	if err != nil {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() {
		lock, err := takeFolder(t.Context(), path)
		if err == nil {
			err = errors.Join(sign(lock), signed(path), leave(lock))
		}
		taken <- err
	}()
	time.AfterFunc(2*lockInterval, func() { _ = asking.Unlock() })
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

func signed(path string) error {
	if p, running := holder(path); !running || p.Pid != os.Getpid() {
		return fmt.Errorf("the holder is %v, %v; want this process", p, running)
	}
	return nil
}

// sleeper starts a program that would sleep for longer than the test, and tells of its end.
func sleeper(t *testing.T) (*os.Process, <-chan error) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd.Process, ended
}

// printed sends on what is printed, each call as one.
type printed chan<- string

func (l printed) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func next(t *testing.T, said <-chan string) string {
	t.Helper()
	select {
	case text := <-said:
		return text
	case <-time.After(time.Minute):
		t.Fatal("nothing was said")
		return ""
	}
}
