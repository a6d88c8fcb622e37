package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
)

// program is a kind of service: what is run, where it usually listens and what it is told beside that.
type program struct {
	name string
	port int
	url  *string // where its address is noted
	env  []string
}

// startServices starts account and transfer, which must be there, what other services there are, and the console, which may be. It
// returns when all are ready.
func (b *bank) startServices(ctx context.Context, access servers.Bank) error {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own folder: %w", err)
	}
	folder := filepath.Dir(exe)
	programs := []program{
		{"account", 8081, &b.where.AccountURL,
			[]string{"DATABASE_URL=" + access.AccountDatabaseURL, "AMQP_URL=" + access.AccountAMQPURL}},
		{"transfer", 8082, &b.where.TransferURL,
			[]string{"DATABASE_URL=" + access.TransferDatabaseURL, "AMQP_URL=" + access.TransferAMQPURL}},
	}
	b.where.Others = make([]serviceEndpoint, len(access.Others))
	for i, other := range access.Others {
		b.where.Others[i] = serviceEndpoint{Name: other.Name, DatabaseURL: other.DatabaseURL}
		programs = append(programs, program{other.Name, b.others[i].Port, &b.where.Others[i].URL,
			[]string{"DATABASE_URL=" + other.DatabaseURL, "AMQP_URL=" + other.AMQPURL}})
	}
	if err := b.startPrograms(ctx, folder, programs...); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, "console")); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	// Only now are the addresses certain that it is told.
	return b.startPrograms(ctx, folder, program{"console", 8080, &b.where.ConsoleURL,
		[]string{"ACCOUNT_URL=" + b.where.AccountURL, "TRANSFER_URL=" + b.where.TransferURL,
			"SERVICES=" + strings.Join(b.otherAddresses(), ","), "RABBITMQ_MANAGEMENT_URL=" + access.ManagementURL, "CONTROL_URL=" + b.where.ControlURL}})
}

// otherAddresses are those of the services beside account and transfer, as the console wants them.
func (b *bank) otherAddresses() (all []string) {
	for _, other := range b.where.Others {
		all = append(all, other.Name+"="+other.URL)
	}
	return all
}

// startPrograms starts programs at the same time and returns when all are ready.
func (b *bank) startPrograms(ctx context.Context, folder string, programs ...program) error {
	var started []*service
	for _, p := range programs {
		path := filepath.Join(folder, p.name)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("program of the service %s: %w (build it with 'make build')", p.name, err)
		}
		s := &service{name: p.name, token: b.where.AdminToken, run: b.servers.Run, ports: b.servers.Ports(), process: supervise.Process{
			Name: p.name, Path: path, Dir: b.term.dir, StopTimeout: stopTimeout,
			Env: append(append(slices.Clone(b.environment), p.env...), "ADMIN_TOKEN="+b.where.AdminToken),
			Log: filepath.Join(b.term.dir, "logs", p.name+".log"),
		}}
		port := p.port
		if b.anyPort {
			port = 0 // any
		}
		if err := s.start(port, b.term); err != nil {
			return err
		}
		started = append(started, s)
	}
	for i, s := range started {
		if err := s.bringUp(ctx, b.term); err != nil {
			return err
		}
		*programs[i].url = s.url
		b.services = append(b.services, s)
	}
	return nil
}

// inherited is the caller's environment without what says where servers are: tuning (CONSUMER_PREFETCH=… bank up) gets
// through to the services, an AMQP_URL of something else does not.
func inherited(environ []string) []string {
	return without(environ, "DATABASE_URL", "AMQP_URL", "HTTP_ADDR", "ADMIN_TOKEN", "ACCOUNT_URL", "TRANSFER_URL",
		"RABBITMQ_MANAGEMENT_URL", "RABBITMQ_VHOST", "SERVICES", "CONTROL_URL", detached)
}

// without returns the environment without the variables of those names.
func without(environ []string, names ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(names, name)
	})
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
