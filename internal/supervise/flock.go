package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// FileLock is an flock: it ends with the process that holds it, however that process ends.
type FileLock struct{ file *os.File }

// ErrLocked says that another process holds the lock.
var ErrLocked = errors.New("locked by another process")

// LockExclusive waits until no other process holds the file, creating it when needed.
func LockExclusive(ctx context.Context, path string) (*FileLock, error) {
	return poll(ctx, path, syscall.LOCK_EX)
}

// LockShared waits until no other process holds the file exclusively.
func LockShared(ctx context.Context, path string) (*FileLock, error) {
	return poll(ctx, path, syscall.LOCK_SH)
}

// TryLock takes the file exclusively or fails at once with ErrLocked.
func TryLock(path string) (*FileLock, error) { return lock(path, syscall.LOCK_EX|syscall.LOCK_NB) }

// Locked says whether another process holds the file exclusively. A file that is not there is held by nobody, and not made.
func Locked(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	l, err := lock(path, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		err = l.Unlock()
	}
	return errors.Is(err, ErrLocked)
}

// lockBlocking sleeps in the kernel: a supervisor that waits for hours must not wake up for it.
func lockBlocking(path string) (*FileLock, error) { return lock(path, syscall.LOCK_EX) }

const pollInterval = 50 * time.Millisecond

// poll asks again and again, because a blocking flock cannot be cancelled.
func poll(ctx context.Context, path string, how int) (*FileLock, error) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		l, err := lock(path, how|syscall.LOCK_NB)
		if !errors.Is(err, ErrLocked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-tick.C:
		}
	}
}

func lock(path string, how int) (*FileLock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, ErrLocked)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return &FileLock{file: file}, nil
}

// Write replaces the file's content, by which the holder makes itself known to others.
func (l *FileLock) Write(text string) error {
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("truncate lock: %w", err)
	}
	if _, err := l.file.WriteAt([]byte(text), 0); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

// Unlock releases the lock.
func (l *FileLock) Unlock() error { return l.file.Close() }
