package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// usage is what the bank's processes have used so far, by part: account, transfer, console, PostgreSQL, RabbitMQ, and this program.
type usage struct {
	cpu     map[string]float64 // seconds
	rss     map[string]float64 // bytes
	machine float64            // seconds of all of the machine's cores, whoever used them
}

// The parts of a bank.
const (
	partPostgres = "PostgreSQL"
	partBroker   = "RabbitMQ"
	partClient   = "client"
)

// process is a line of /proc/PID/stat, as far as it matters here.
type process struct {
	pid, parent int
	name        string
	ticks       float64 // own time and that of ended children, in clock ticks
	pages       float64
}

// measure reads what the processes that descend from this one have used. It needs /proc, that is Linux.
func measure() (usage, error) {
	processes, err := readProcesses("/proc")
	if err != nil {
		return usage{}, err
	}
	busy, err := os.ReadFile("/proc/stat")
	if err != nil {
		return usage{}, err
	}
	u := usage{cpu: map[string]float64{}, rss: map[string]float64{}, machine: parseBusy(string(busy)) / ticksPerSecond}
	for _, p := range processes {
		part := partOf(p, processes)
		if part == "" {
			continue
		}
		u.cpu[part] += p.ticks / ticksPerSecond
		u.rss[part] += p.pages * float64(os.Getpagesize())
	}
	return u, nil
}

// ticksPerSecond is USER_HZ, which Linux has fixed at 100 for all its programs.
const ticksPerSecond = 100

// cores is how many the machine has.
var cores = float64(runtime.NumCPU())

// since is what was used between two measurements. Memory is that of the later one.
func (u usage) since(before usage) usage {
	diff := usage{cpu: map[string]float64{}, rss: u.rss, machine: u.machine - before.machine}
	for part, seconds := range u.cpu {
		diff.cpu[part] = seconds - before.cpu[part]
	}
	return diff
}

// others are the seconds that were used by none of the parts: other programs', and the kernel's own threads'.
func (u usage) others() float64 {
	rest := u.machine
	for _, seconds := range u.cpu {
		rest -= seconds
	}
	return max(rest, 0)
}

// ofBank sums up what all parts but the client have used.
func ofBank(cpu map[string]float64) (sum float64) {
	for part, seconds := range cpu {
		if part != partClient {
			sum += seconds
		}
	}
	return sum
}

// partOf says which part of the bank a process belongs to, "" for none.
func partOf(p process, all map[int]process) string {
	if p.pid == os.Getpid() {
		return partClient
	}
	part := ""
	for at, known := p, true; known; at, known = all[at.parent] {
		switch {
		case at.pid == os.Getpid():
			return part
		case at.name == "account", at.name == "transfer", at.name == "console":
			part = at.name
		case at.name == "postgres":
			part = partPostgres
		case at.name == "beam.smp", at.name == "rabbitmq-server", at.name == "epmd":
			part = partBroker
		}
	}
	return "" // somebody else's
}

func readProcesses(proc string) (map[int]process, error) {
	stats, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "stat"))
	if err != nil || len(stats) == 0 {
		return nil, fmt.Errorf("%s does not list processes: measuring what they use needs Linux", proc)
	}
	processes := make(map[int]process, len(stats))
	for _, path := range stats {
		line, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		if p, ok := parseStat(string(line)); ok {
			processes[p.pid] = p
		}
	}
	return processes, nil
}

// parseStat reads "pid (name) state ppid …". The name may hold anything, brackets too.
func parseStat(line string) (process, bool) {
	first, rest, ok := strings.Cut(line, " (")
	end := strings.LastIndex(rest, ") ")
	if !ok || end < 0 {
		return process{}, false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 22 {
		return process{}, false
	}
	number := func(i int) float64 {
		v, err := strconv.ParseFloat(fields[i], 64)
		ok = ok && err == nil
		return v
	}
	pid, err := strconv.Atoi(first)
	p := process{
		pid: pid, name: rest[:end], parent: int(number(1)),
		ticks: number(11) + number(12) + number(13) + number(14), pages: number(21),
	}
	return p, ok && err == nil
}

// parseBusy reads the first line of /proc/stat, "cpu user nice system idle iowait irq softirq steal …", and sums up all but waiting.
func parseBusy(stat string) (ticks float64) {
	line, _, _ := strings.Cut(stat, "\n")
	for i, field := range strings.Fields(line) {
		if i >= 1 && i <= 8 && i != 4 && i != 5 {
			v, err := strconv.ParseFloat(field, 64)
			if err != nil {
				return 0
			}
			ticks += v
		}
	}
	return ticks
}

// peakMemory is the most that a process has held in memory so far, in bytes.
func peakMemory(pid int) (float64, error) { return memoryLine(pid, "VmHWM:") }

// memoryOf is what a process holds in memory, in bytes.
func memoryOf(pid int) (float64, error) { return memoryLine(pid, "VmRSS:") }

func memoryLine(pid int, label string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("what process %d holds in memory: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, label); ok {
			var kilobytes float64
			if _, err := fmt.Sscanf(rest, "%f kB", &kilobytes); err != nil {
				return 0, fmt.Errorf("what process %d holds in memory: %q: %w", pid, line, err)
			}
			return kilobytes * 1024, nil
		}
	}
	return 0, fmt.Errorf("what process %d holds in memory: it has ended", pid)
}
