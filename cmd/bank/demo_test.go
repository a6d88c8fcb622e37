package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTourIsNotTunedByTheCallersShell(t *testing.T) {
	t.Parallel()
	got := asDocumented([]string{"PATH=/bin", "LOG_FORMAT=text", "LOG_LEVEL=error", "RETRY_INTERVALS=1h", "RETRY_DELAY=1h",
		"RETRY_PROFILE=tiered", "RETRY_TIERS=1h", "RETRY_JITTER=0", "RETRY_CLASSIFY=off", "MAX_ATTEMPTS=9", "MAX_AGE=1s", "NOT_FOUND_MAX_AGE=1s",
		"SAGA_TIMEOUT=1s", "BREAKER=off", "RETRY_BUDGET=off", "CONSUMER_RATE_LIMIT=1", "FAULTS=on", "CONSUMER_PREFETCH=7"})
	want := []string{"PATH=/bin", "CONSUMER_PREFETCH=7", "LOG_FORMAT=json", "LOG_LEVEL=info"}
	if !slices.Equal(got, want) {
		t.Errorf("environment of the tour = %v, want %v", got, want)
	}
}

// The services of 'bank demo' must get that environment. These ones are no bank, so that the tour ends in its first chapter.
func TestDemoGivesItsServicesTheEnvironmentOfTheTour(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bank"), "demo", "--dir", dir)
	cmd.Env = append(os.Environ(), "LOG_FORMAT=text", "MAX_ATTEMPTS=9")
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "account is ready") || !strings.Contains(string(text), "the tour cannot go on") {
		t.Errorf("demo: %v, want a tour that finds no bank\n%s", err, text)
	}
}
