package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"example.com/banking/internal/supervise"
)

// The folder's lock says who holds it: a bank that may be told to stop writes its process id and when that process began. Empty means
// that the holder is being started, is stopping, or is a 'bank down': then there is nobody to tell and one waits. What a killed bank
// has written stays there, and its process id may be another program's by now; so nobody is told anything before both have been
// compared.

const (
	lockInterval = 50 * time.Millisecond // between two tries to take the lock
	askers       = 3 * time.Second       // somebody who only asks holds it for an instant, see supervise.Locked; on a busy machine that is longer
)

// takeFolder takes the folder's lock, or fails with supervise.ErrLocked: at once where a bank runs, otherwise when the lock is not free soon.
func takeFolder(ctx context.Context, path string) (*supervise.FileLock, error) {
	ctx, cancel := context.WithTimeout(ctx, askers)
	defer cancel()
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	for {
		lock, err := supervise.TryLock(path)
		if err == nil {
			return lock, lock.Write("")
		}
		if _, running := holder(path); running || !errors.Is(err, supervise.ErrLocked) {
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// sign makes this process known as the bank.
func sign(lock *supervise.FileLock) error {
	began, err := supervise.Started(os.Getpid())
	if err != nil {
		return err
	}
	return lock.Write(fmt.Sprintf("%d %s\n", os.Getpid(), began))
}

// leave gives the lock back, with nobody's name in it.
func leave(lock *supervise.FileLock) error { return errors.Join(lock.Write(""), lock.Unlock()) }

// holder is the bank that has signed the lock, if that very process still runs.
func holder(path string) (*os.Process, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	var pid int
	var began string
	if _, err := fmt.Sscan(string(content), &pid, &began); err != nil || pid <= 0 {
		return nil, false
	}
	// Where the kernel has handles of processes it is one from here on, so that what is compared below is what will be told.
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, false
	}
	now, err := supervise.Started(pid)
	return p, err == nil && now == began
}
