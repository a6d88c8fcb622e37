package main

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv/servers"
)

// What becomes of a service that is started again, told by what the bank prints and answers.
func TestServiceIsStartedAgain(t *testing.T) {
	t.Parallel()
	bin, dir := programs(t), bankFolder(t)
	t.Cleanup(func() { _, _ = bankCommand(t, bin, "down", "--dir", dir) })
	if text, err := bankCommand(t, bin, "up", "--detach", "--any-port", "--dir", dir); err != nil {
		t.Fatalf("up --detach: %v\n%s", err, text)
	}
	where, err := loadEndpoints(dir)
	if err != nil {
		t.Fatal(err)
	}
	said := captured{filepath.Join(dir, "logs", "up.log")}
	says := func(text string) {
		t.Helper()
		waitFor(t, said, func() bool { return strings.Contains(said.String(), text) })
	}
	order := func(verb string) string {
		t.Helper()
		began := time.Now()
		text, err := bankCommand(t, bin, "service", verb, "transfer", "--dir", dir)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("service %s took %s", verb, took)
		}
		if err != nil {
			return text
		}
		return ""
	}
	obeyed := func(verb string) {
		t.Helper()
		if refused := order(verb); refused != "" {
			t.Errorf("service %s: %s", verb, refused)
		}
	}
	set := func(name string) (unset func()) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
	again := "transfer runs again"

	// One that ends at once does not run again, and says why.
	repair := set(brokenFile)
	obeyed("kill")
	says("transfer ended before it was ready (exit status 1):\nbroken by the test")
	if strings.Contains(said.String(), again) {
		t.Errorf("it is said to run before it does:\n%s", said)
	}
	repair()
	says(again)

	// One that is not ready yet has not come back, and is served all the same.
	before, beforePID := strings.Count(said.String(), again), get(where.TransferURL+"/pid")
	ready := set(unreadyFile)
	obeyed("kill")
	waitFor(t, said, func() bool { pid := get(where.TransferURL + "/pid"); return pid != "" && pid != beforePID })
	obeyed("pause")
	obeyed("resume")
	says("waiting for transfer: held up by the test")
	if now := strings.Count(said.String(), again); now != before {
		t.Errorf("it is said to run before it is ready:\n%s", said)
	}
	ready()
	waitFor(t, said, func() bool { return strings.Count(said.String(), again) > before })
	if refused := strings.TrimSpace(order("start")); refused != "bank: transfer is running, there is nothing to start" {
		t.Errorf("start of what runs: %q", refused)
	}

	// A port is the bank's while nobody listens on it, and nobody is taken for the service who does.
	obeyed("stop")
	address, err := url.Parse(where.TransferURL)
	if err != nil {
		t.Fatal(err)
	}
	var other servers.Ports
	t.Cleanup(other.Release)
	if other.Take(portOf(t, where.TransferURL)) {
		t.Error("another bank can take the port of a stopped service")
		other.Release()
	}
	stranger, err := net.Listen("tcp", address.Host)
	if err != nil {
		t.Fatal(err)
	}
	taken := "port " + address.Port() + " is taken by another program"
	if refused := order("start"); !strings.Contains(refused, taken) {
		t.Errorf("start on a port on which somebody listens: %q", refused)
	}
	says("transfer did not start, trying again in 1s: " + taken)
	if err := stranger.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, said, func() bool { return strings.Count(said.String(), again) > before+1 })

	// So are the ports of the servers.
	if text, err := bankCommand(t, bin, "service", "stop", "postgres", "--dir", dir); err != nil {
		t.Errorf("service stop postgres: %v, %s", err, text)
	}
	if other.Take(portOf(t, where.TransferDatabaseURL)) {
		t.Error("another bank can take the port of a stopped server")
	}
}
