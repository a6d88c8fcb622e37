package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// service is one of the bank's own programs, run from the folder that the bank program lies in.
type service struct {
	name    string
	process supervise.Process
	url     string
	child   *supervise.Child
}

// stopTimeout exceeds a service's SHUTDOWN_GRACE of 15 s, so that a graceful stop is never cut short.
const stopTimeout = 20 * time.Second

// startServices starts every service whose program is there and waits until all are ready. Account and transfer must
// be there.
func (b *bank) startServices(ctx context.Context, access servers.Bank) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own folder: %w", err)
	}
	programs := filepath.Dir(exe)
	kinds := []struct {
		name     string
		port     int
		optional bool
		url      *string
		env      func() []string
	}{
		{"account", 8081, false, &b.where.AccountURL, func() []string {
			return []string{"DATABASE_URL=" + access.AccountDatabaseURL, "AMQP_URL=" + access.AccountAMQPURL}
		}},
		{"transfer", 8082, false, &b.where.TransferURL, func() []string {
			return []string{"DATABASE_URL=" + access.TransferDatabaseURL, "AMQP_URL=" + access.TransferAMQPURL}
		}},
		{"console", 8080, true, &b.where.ConsoleURL, func() []string {
			return []string{"ACCOUNT_URL=" + b.where.AccountURL, "TRANSFER_URL=" + b.where.TransferURL,
				"RABBITMQ_MANAGEMENT_URL=" + access.ManagementURL}
		}},
	}
	taken := map[int]bool{}
	for _, kind := range kinds {
		path := filepath.Join(programs, kind.name)
		if _, err := os.Stat(path); err != nil {
			if kind.optional && errors.Is(err, os.ErrNotExist) {
				continue
			}
			return fmt.Errorf("program of the service %s: %w (build it with 'make build')", kind.name, err)
		}
		port, err := choosePort(kind.port, taken)
		if err != nil {
			return err
		}
		if port != kind.port {
			b.term.printf("  port %d is taken, %s listens on %d\n", kind.port, kind.name, port)
		}
		taken[port] = true
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		*kind.url = "http://" + address
		env := append(inherited(), kind.env()...)
		s := &service{name: kind.name, url: *kind.url, process: supervise.Process{
			Name: kind.name, Path: path, Dir: b.term.dir, StopTimeout: stopTimeout,
			Env: append(env, "HTTP_ADDR="+address, "ADMIN_TOKEN="+b.where.AdminToken),
			Log: filepath.Join(b.term.dir, "logs", kind.name+".log"),
		}}
		if s.child, err = b.servers.Run(s.process); err != nil {
			return err
		}
		b.services = append(b.services, s)
	}
	for _, s := range b.services {
		if err := s.awaitReady(ctx, b.term); err != nil {
			return err
		}
	}
	return nil
}

// inherited is the caller's environment without what says where servers are: tuning (CONSUMER_PREFETCH=… bank up) gets
// through to the services, an AMQP_URL of something else does not.
func inherited() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "DATABASE_URL", "AMQP_URL", "HTTP_ADDR", "ADMIN_TOKEN", "ACCOUNT_URL", "TRANSFER_URL", "RABBITMQ_MANAGEMENT_URL", detached:
		default:
			env = append(env, variable)
		}
	}
	return env
}

// choosePort returns the usual port when nobody has it, else a free one.
func choosePort(usual int, taken map[int]bool) (int, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(usual)))
	if err != nil {
		return servers.FreePort(taken)
	}
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("probe port %d: %w", usual, err)
	}
	return usual, nil
}

const readyInterval = 100 * time.Millisecond

// awaitReady polls /readyz. A service that ends before it is ready has its log's end shown, since the reason stands there.
func (s *service) awaitReady(ctx context.Context, term *terminal) error {
	began := time.Now()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	reason := ""
	for {
		ready, why := probe(ctx, client, s.url+"/readyz")
		if ready {
			term.printf("  %s is ready on %s (%.1f s)\n", s.name, s.url, time.Since(began).Seconds())
			return nil
		}
		if why != reason && time.Since(began) > 2*time.Second {
			reason = why
			term.printf("  waiting for %s: %s\n", s.name, reason)
		}
		select {
		case <-s.child.Done():
			return fmt.Errorf("%s ended before it was ready (%s):\n%s", s.name, s.child.Exit(), lastLines(s.process.Log))
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready: %w: %s", s.name, ctx.Err(), why)
		case <-tick.C:
		}
	}
}

func probe(ctx context.Context, client *http.Client, address string) (ready bool, why string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, err.Error()
	}
	resp, err := client.Do(req)
	if err != nil {
		return false, "does not answer yet"
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		return false, err.Error()
	}
	return resp.StatusCode == http.StatusOK, strings.TrimSpace(string(body))
}

func lastLines(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	const most = 2000
	if len(content) > most {
		content = content[len(content)-most:]
	}
	return strings.TrimSpace(string(content))
}

func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// indented puts two spaces before each line written, to set the servers' progress off.
type indented struct{ to io.Writer }

func (w indented) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.to, "  "+string(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
