package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// awaitOrphans waits for the servers and services of a bank that was killed. Their supervisor stops them, which takes some seconds; until
// then they run without a bank. It says whether there were any. The caller holds the bank's lock, so that no other bank starts some.
func awaitOrphans(ctx context.Context, term *terminal) (bool, error) {
	path := servers.SupervisorLock(filepath.Join(term.dir, "servers"))
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	lock, err := supervise.TryLock(path)
	if errors.Is(err, supervise.ErrLocked) {
		term.printf("the bank that ran in %s was killed; its servers and services are stopping\n", term.dir)
		ctx, cancel := context.WithTimeout(ctx, downTimeout)
		defer cancel()
		if lock, err = supervise.LockExclusive(ctx, path); err != nil {
			return true, fmt.Errorf("the servers of a bank that was killed have not stopped: %w", err)
		}
		return true, lock.Unlock()
	}
	if err != nil {
		return false, err
	}
	return false, lock.Unlock()
}
