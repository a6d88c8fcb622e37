package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv/servers"
)

// peerNames are the systems that run.sh brings along, by the names of their folders.
var peerNames = []string{"watermill", "nestjs", "nestjs-batch"}

// ourPeer is the folder that plugs the bank in, and so its name in run.sh's lines.
const ourPeer = "bank"

var peers = scenario{
	name: "peers",
	about: "The bank beside the same saga on other people's libraries, in turns on one broker and one PostgreSQL, by run.sh of the folder that " +
		"--peers names. That script measures, compares every balance with the transfers, and counts no run that does not add up. The others make " +
		"their transfers inside the service and use classic queues; the bank is asked over HTTP, by a client that counts among the others who " +
		"use the machine, and uses quorum queues.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		if b.Peers == "" {
			return found, missing("no --peers folder was given")
		}
		dir, err := publicFolder()
		if err != nil {
			return found, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		s, err := servers.Start(ctx, servers.Config{Dir: filepath.Join(dir, "servers"), Ephemeral: true})
		if err != nil {
			return found, err
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		run, err := newPeerRun(ctx, s, b, dir)
		if err != nil {
			return found, err
		}
		var systems []string
		for _, name := range peerNames {
			if err := run.build(ctx, name); err != nil {
				b.say("%s cannot be built here: %s", name, err)
				found.notes = append(found.notes, fmt.Sprintf("%s cannot be built here, and is not measured: %s", name, firstLine(err)))
				continue
			}
			systems = append(systems, name)
		}
		lines, err := run.measure(ctx, b.PeersArgs, append(systems, filepath.Join(b.root, "test", "bench", "peers", ourPeer)))
		if err != nil {
			return found, err
		}
		return found, comparePeers(lines, &found)
	},
}

// peerRun is what run.sh runs with.
type peerRun struct {
	folder string // of run.sh
	out    string // where it builds and logs
	env    []string
	output io.Writer
}

// newPeerRun prepares a broker as run.sh expects it: user guest, and rabbitmqctl in PATH. PostgreSQL it starts itself, from the programs
// in PATH.
func newPeerRun(ctx context.Context, s *servers.Servers, b *bench, dir string) (peerRun, error) {
	r := peerRun{folder: b.Peers, out: filepath.Join(dir, "out"), output: b.progress}
	if _, err := os.Stat(filepath.Join(r.folder, "run.sh")); err != nil {
		return r, fmt.Errorf("--peers: %w", err)
	}
	api := management.New(s.Addresses().ManagementURL)
	if err := api.Put(ctx, "/api/users/guest", map[string]string{"password": "guest", "tags": "administrator"}); err != nil {
		return r, err
	}
	programs := filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		return r, err
	}
	control, env := s.Control()
	script := "#!/bin/sh\nexec env " + quoted(env) + " " + quoted([]string{control}) + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(programs, "rabbitmqctl"), []byte(script), 0o700); err != nil {
		return r, err
	}
	port, err := servers.FreePort(nil)
	if err != nil {
		return r, err
	}
	_, broker, _ := strings.Cut(s.AMQPURL("guest", "guest", "/"), "@")
	broker, _, _ = strings.Cut(broker, "/")
	path := strings.Join([]string{programs, filepath.Dir(servers.FindPostgres("initdb")), os.Getenv("PATH")}, string(filepath.ListSeparator))
	r.env = append(os.Environ(), "PATH="+path, "AMQP_HOST="+broker, "OUT="+r.out,
		fmt.Sprintf("PGPORT=%d", port), "PGDIR="+filepath.Join(dir, "postgres"))
	return r, nil
}

// quoted writes words as a shell reads them.
func quoted(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(all, " ")
}

// build builds one system as run.sh will, which then finds it done. What cannot be built would end the whole run.
func (r peerRun) build(ctx context.Context, name string) error {
	script := `set -eu; HERE=$1; SYSTEM=$1/$2; BUILD=$3; mkdir -p "$BUILD"; . "$SYSTEM/system.sh"; build`
	cmd := exec.CommandContext(ctx, "bash", "-c", script, "bash", r.folder, name, filepath.Join(r.out, name+".build"))
	cmd.Env = r.env
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s (%w)\n%s", lastLine(out), err, out)
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// measure runs run.sh once over the systems and returns its lines.
func (r peerRun) measure(ctx context.Context, args, systems []string) ([]peerLine, error) {
	cmd := exec.CommandContext(ctx, "bash", slices.Concat([]string{filepath.Join(r.folder, "run.sh"), "-n", "1"}, args, systems)...)
	cmd.Env = r.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it stops what it has started
	cmd.WaitDelay = time.Minute
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, r.output
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("run.sh: %w\n%s", err, out.Bytes())
	}
	return parsePeers(out.String())
}

// peerLine is run.sh's line about one run of one system.
type peerLine struct {
	system string
	values map[string]float64
}

var peerValue = regexp.MustCompile(`(\w+)=(-?[0-9.]+)`)

// parsePeers reads "NAME run=1 transfers_per_s=414 … correct=yes".
func parsePeers(text string) (lines []peerLine, err error) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(rest, "run=") {
			continue
		}
		if !strings.Contains(rest, "correct=yes") {
			return nil, fmt.Errorf("run.sh does not call this correct: %s", line)
		}
		l := peerLine{system: name, values: map[string]float64{}}
		for _, match := range peerValue.FindAllStringSubmatch(rest, -1) {
			if l.values[match[1]], err = strconv.ParseFloat(match[2], 64); err != nil {
				return nil, fmt.Errorf("run.sh: %q: %w", line, err)
			}
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// cpu is what all parts of a system use for a transfer, in ms.
func (l peerLine) cpu() (sum float64) {
	for name, v := range l.values {
		if strings.HasPrefix(name, "cpu_ms_") {
			sum += v
		}
	}
	return sum
}

// comparePeers adds each system's figures, and ours against each of the others'.
func comparePeers(lines []peerLine, found *result) error {
	i := slices.IndexFunc(lines, func(l peerLine) bool { return l.system == ourPeer })
	if i < 0 {
		return errors.New("run.sh has no line about the bank")
	}
	ours := lines[i]
	for _, l := range lines {
		found.add(l.system+": transfers per second", l.values["transfers_per_s"], "/s")
		found.add(l.system+": CPU per transfer", l.cpu(), "ms")
		found.add(l.system+": p50 at the fixed rate", l.values["p50_ms"], "ms")
		found.add(l.system+": p99 at the fixed rate", l.values["p99_ms"], "ms")
		found.add(l.system+": memory of account and transfer, most", l.values["rss_account_mb"]+l.values["rss_transfer_mb"], "MB")
		found.add(l.system+": share of the machine that others used", l.values["others_pct"], "%")
	}
	for _, l := range lines {
		if l.system != ourPeer {
			found.add("rate against "+l.system, ours.values["transfers_per_s"]/l.values["transfers_per_s"], "")
			found.add("CPU against "+l.system, ours.cpu()/l.cpu(), "")
			found.add("p50 against "+l.system, ours.values["p50_ms"]/l.values["p50_ms"], "")
		}
	}
	return nil
}
