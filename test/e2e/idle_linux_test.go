package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
)

// When nothing happens the services cost next to nothing: no busy polling, and memory that a small container has.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	const (
		window  = 20 * time.Second
		maxCPU  = 0.01 // of one core
		maxRSS  = 40 << 20
		perTick = time.Second / 100 // USER_HZ is 100 on every Linux that Go runs on
	)
	b := newBank(t, testenv.New(t), 1, nil)
	customers := b.open(2, 10_000)
	if _, err := b.send(customers[0], customers[1], 1); err != nil {
		t.Fatal(err)
	}
	b.awaitSettled(1, time.Minute)

	before := map[*replica]int{}
	for _, r := range b.replicas() {
		before[r] = cpuTicks(t, r.pid())
	}
	<-time.After(window) // the measurement itself: nothing is to happen in it
	for _, r := range b.replicas() {
		spent := time.Duration(cpuTicks(t, r.pid())-before[r]) * perTick
		share := float64(spent) / float64(window)
		rss := residentBytes(t, r.pid())
		t.Logf("%s idle: %.2f %% CPU, %d KiB RSS", r.name, 100*share, rss>>10)
		if share > maxCPU {
			t.Errorf("%s uses %.2f %% CPU when nothing happens", r.name, 100*share)
		}
		if rss > maxRSS {
			t.Errorf("%s uses %d KiB when nothing happens", r.name, rss>>10)
		}
	}
}

// cpuTicks is the processor time of a process so far, from fields 14 and 15 of its stat file.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

func residentBytes(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in the status file")
	return 0
}
