package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"example.com/banking/internal/supervise"
)

// downTimeout covers the services' SHUTDOWN_GRACE and the servers' orderly stop.
const downTimeout = 90 * time.Second

type downCommand struct{}

func (*downCommand) Run(ctx context.Context, term *terminal) error {
	path := filepath.Join(term.dir, lockFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		term.printf("no bank is running in %s\n", term.dir)
		return nil
	}
	lock, stopped, err := stopHolder(ctx, term, path)
	if err != nil {
		return err
	}
	if err := lock.Write(""); err != nil {
		return errors.Join(err, lock.Unlock())
	}
	killed, err := awaitOrphans(ctx, term)
	switch {
	case err != nil:
	case killed || stopped:
		err = os.Remove(endpointsFile(term.dir)) // which a killed one could not
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		term.printf("stopped; the data stays\n")
	default:
		term.printf("no bank is running in %s\n", term.dir)
	}
	return errors.Join(err, leave(lock))
}

// stopHolder takes the folder's lock. It tells the bank that holds it to stop, once, and waits for the end; and it waits for whoever
// starts or stops one meanwhile. stopped says whether a bank was told.
func stopHolder(ctx context.Context, term *terminal, path string) (lock *supervise.FileLock, stopped bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, downTimeout)
	defer cancel()
	tick := time.NewTicker(lockInterval)
	defer tick.Stop()
	began, waiting := time.Now(), false
	for {
		if lock, err = supervise.TryLock(path); !errors.Is(err, supervise.ErrLocked) {
			return lock, stopped, err
		}
		if p, running := holder(path); running && !stopped {
			if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return nil, false, fmt.Errorf("stop process %d: %w", p.Pid, err)
			}
			stopped = true
			term.printf("stopping the bank in %s (process %d)\n", term.dir, p.Pid)
		}
		if !stopped && !waiting && time.Since(began) > askers {
			waiting = true
			term.printf("a bank is just being started or stopped in %s; waiting for it\n", term.dir)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, stopped, fmt.Errorf("the bank has not stopped: %w", errors.Join(err, ctx.Err()))
		}
	}
}
