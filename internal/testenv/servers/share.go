package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"example.com/banking/internal/supervise"
)

// linger bridges the gap between two test processes of one `go test ./...`.
const linger = 5 * time.Second

// sharing is a folder in which several processes share one ephemeral pair.
type sharing struct {
	dir    string
	linger time.Duration
}

func (s *sharing) mutex() string      { return filepath.Join(s.dir, "start.lock") }
func (s *sharing) lease() string      { return filepath.Join(s.dir, "lease.lock") }
func (s *sharing) supervisor() string { return filepath.Join(s.dir, "supervisor.lock") }
func (s *sharing) addresses() string  { return filepath.Join(s.dir, "addresses.json") }

// Lease is a share in a pair of servers; it ends with Release or with the process.
type Lease struct {
	Addresses
	lock *supervise.FileLock
}

// Release gives the share back. The servers stop a few seconds after the last one.
func (l *Lease) Release() error { return l.lock.Unlock() }

// Share returns a lease on the pair in dir. The first process to come starts the pair, those that come meanwhile wait for it.
//
// The order of the locks keeps a newcomer from being handed servers that are about to stop: the supervisor removes
// the addresses while it holds the lease exclusively, and newcomers read them while they share it.
func Share(ctx context.Context, dir string, log io.Writer) (*Lease, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("shared servers: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("shared servers: %w", err)
	}
	sh := &sharing{dir: dir, linger: linger}
	mutex, err := supervise.LockExclusive(ctx, sh.mutex())
	if err != nil {
		return nil, fmt.Errorf("shared servers: wait for another process to start them: %w", err)
	}
	defer func() { _ = mutex.Unlock() }()
	for {
		lock, err := supervise.LockShared(ctx, sh.lease())
		if err != nil {
			return nil, fmt.Errorf("shared servers: wait for others to stop: %w", err)
		}
		lease := &Lease{lock: lock}
		idle, err := supervise.TryLock(sh.supervisor())
		running := errors.Is(err, supervise.ErrLocked)
		if err != nil && !running {
			return nil, errors.Join(fmt.Errorf("shared servers: %w", err), lease.Release())
		}
		if !running {
			if err := errors.Join(idle.Unlock(), sh.start(ctx, log, lease)); err != nil {
				return nil, errors.Join(err, lease.Release())
			}
			return lease, nil
		}
		content, err := os.ReadFile(sh.addresses())
		if err == nil {
			err = json.Unmarshal(content, &lease.Addresses)
		}
		if err == nil {
			return lease, nil
		}
		// A supervisor without addresses: whoever started it was killed before the servers were ready. It stops as soon as
		// nobody shares the lease.
		if err := lease.Release(); err != nil {
			return nil, fmt.Errorf("shared servers: %w", err)
		}
		gone, err := supervise.LockExclusive(ctx, sh.supervisor())
		if err != nil {
			return nil, fmt.Errorf("shared servers: wait for an abandoned start to be cleaned up: %w", err)
		}
		if err := gone.Unlock(); err != nil {
			return nil, fmt.Errorf("shared servers: %w", err)
		}
	}
}

// start starts the pair and leaves it to its supervisor, so that this process keeps no pipe and no goroutine.
func (sh *sharing) start(ctx context.Context, log io.Writer, lease *Lease) error {
	// Data of a supervisor that was killed itself: nobody has removed it.
	for _, left := range []string{"postgres", "rabbitmq", accessFile, filepath.Base(sh.addresses())} {
		if err := os.RemoveAll(filepath.Join(sh.dir, left)); err != nil {
			return fmt.Errorf("shared servers: remove old data: %w", err)
		}
	}
	s, err := Start(ctx, Config{Dir: sh.dir, Log: log, Ephemeral: true, shared: sh})
	if err != nil {
		return fmt.Errorf("shared servers: %w", err)
	}
	lease.Addresses = s.Addresses()
	content, err := json.Marshal(lease.Addresses)
	if err == nil {
		err = os.WriteFile(sh.addresses(), content, 0o600)
	}
	if err != nil {
		err = fmt.Errorf("shared servers: write addresses: %w", err)
	}
	return errors.Join(err, s.Stop()) // nobody restarts a shared server, so that its ports need no more than that it listens
}
