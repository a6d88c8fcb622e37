package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The library makes each flush of a program longer, by what its file says at that moment. Its only sign from outside is time, and only a
// lower bound of that can be tested on a busy machine.
func TestSlowSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	library, err := buildSlowSync(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	disk, err := newSlowSync(library, filepath.Join(dir, "delay"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	const delay = 300 * time.Millisecond
	if err := disk.set(delay); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{file}, {"--data", file}} { // fsync and fdatasync
		if took := flushTime(t, disk, flags); took < delay {
			t.Errorf("sync %q took %s, want %s at least", flags, took, delay)
		}
	}
	if err := disk.set(0); err != nil {
		t.Fatal(err)
	}
	fastest := time.Hour
	for range 5 {
		fastest = min(fastest, flushTime(t, disk, []string{file}))
	}
	if fastest >= delay {
		t.Errorf("without a delay sync took %s five times", fastest)
	}
}

// flushTime runs coreutils' sync with the library in front of it.
func flushTime(t *testing.T, disk slowSync, args []string) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sync", args...)
	cmd.Env = append(os.Environ(), disk.env()...)
	began := time.Now()
	// The linker only warns about a library that it cannot load, and goes on without.
	if out, err := cmd.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Fatalf("sync: %v\n%s", err, out)
	}
	return time.Since(began)
}
