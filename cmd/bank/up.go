package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/banking/internal/supervise"
	"example.com/banking/internal/testenv/servers"
	"example.com/banking/services"
)

type upCommand struct {
	Detach  bool `help:"Return when the bank is ready and let it run in the background."`
	AnyPort bool `help:"Take free ports also where the usual ones (8080 to 8082) are free, so that banks beside each other never wait for the same."`
}

// startTimeout is how long servers and services together may take to become ready.
const startTimeout = 3 * time.Minute

func (c *upCommand) Run(ctx context.Context, term *terminal) error {
	if c.Detach {
		return detach(ctx, term, c.AnyPort)
	}
	ready, err := readyPipe()
	if err != nil {
		return err
	}
	b, err := openBank(ctx, term)
	if err == nil {
		defer b.close()
		b.anyPort = c.AnyPort
		if err = b.listenForOrders(); err == nil {
			err = b.start(ctx)
		}
	}
	if err != nil && ctx.Err() != nil {
		term.printf("stopped before everything was ready\n")
		return exitError(1)
	}
	if err != nil {
		return err
	}
	b.printNextSteps()
	if err := announceReady(ready); err != nil {
		return err
	}
	if err := b.watch(ctx); err != nil {
		term.printf("\nstopping: waiting for what still ends; the data stays in %s\n", term.dir)
		return err
	}
	term.printf("\nstopping: services first, then the servers; the data stays in %s\n", term.dir)
	return nil
}

// bank is a running bank: the private servers and the services on them. The bank's lock is held as long as it runs.
type bank struct {
	term     *terminal
	lock     *supervise.FileLock
	servers  *servers.Servers
	services []*service
	others   []services.Service // beside account, transfer and the console
	anyPort  bool               // the usual ones are left to others
	where    endpoints
	orders   net.Listener // nil: nobody can give any
	// environment is what the services are given beside the addresses: see inherited.
	environment []string
}

const (
	lockFile  = "up.lock"
	tokenFile = "admin-token"
)

// openBank takes the folder's lock and starts the servers.
func openBank(ctx context.Context, term *terminal) (*bank, error) {
	for _, dir := range []string{term.dir, filepath.Join(term.dir, "logs")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("folder of the bank: %w", err)
		}
	}
	path := filepath.Join(term.dir, lockFile)
	lock, err := takeFolder(ctx, path)
	if errors.Is(err, supervise.ErrLocked) {
		if p, running := holder(path); running {
			return nil, fmt.Errorf("a bank is already running in %s (process %d): stop it first, with Ctrl-C where it runs or with 'bank down' (make down), "+
				"or give this one a folder of its own with --dir (BANK_DIR=… make demo)", term.dir, p.Pid)
		}
		return nil, fmt.Errorf("a bank is just being started or stopped in %s: try again when that is done; 'bank down' waits for it", term.dir)
	}
	if err != nil {
		return nil, err
	}
	if err := sign(lock); err != nil {
		return nil, errors.Join(err, leave(lock))
	}
	context.AfterFunc(ctx, func() { _ = lock.Write("") }) // who stops must not be told to again: that would end it at once
	if _, err := awaitOrphans(ctx, term); err != nil {
		return nil, errors.Join(err, leave(lock))
	}
	b := &bank{term: term, lock: lock, environment: inherited(os.Environ())}
	term.printf("starting PostgreSQL and RabbitMQ in %s\n", filepath.Join(term.dir, "servers"))
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	b.servers, err = servers.Start(ctx, servers.Config{Dir: filepath.Join(term.dir, "servers"), Log: indented{term.out}})
	if err != nil {
		return nil, errors.Join(err, leave(lock))
	}
	return b, nil
}

// start starts the services, seeds accounts and publishes the addresses.
func (b *bank) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var err error
	if b.others, err = services.Others(); err != nil {
		return err
	}
	var names []string
	for _, other := range b.others {
		names = append(names, other.Name)
	}
	access, err := b.servers.Provision(ctx, names...)
	if err != nil {
		return err
	}
	token, err := adminToken(filepath.Join(b.term.dir, tokenFile))
	if err != nil {
		return err
	}
	b.where = endpoints{
		AMQPURL: access.OperatorAMQPURL, ManagementURL: access.ManagementURL,
		AccountDatabaseURL: access.AccountDatabaseURL, TransferDatabaseURL: access.TransferDatabaseURL,
		AdminToken: token,
	}
	if b.orders != nil {
		b.where.ControlURL = "http://" + b.orders.Addr().String()
	}
	if err := b.startServices(ctx, access); err != nil {
		return err
	}
	if err := seed(ctx, b.where.AccountURL, b.term); err != nil {
		return fmt.Errorf("seed accounts: %w", err)
	}
	if err := b.where.save(b.term.dir); err != nil {
		return err
	}
	b.printAddresses()
	return nil
}

// close stops everything, the services before the servers: see servers.Run.
func (b *bank) close() {
	_ = b.lock.Write("") // nobody needs to stop it now, see holder
	if b.orders != nil {
		_ = b.orders.Close() // its server has done so, if there was one
	}
	// A bank that is gone has no addresses.
	if err := os.Remove(endpointsFile(b.term.dir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		_, _ = fmt.Fprintln(b.term.err, "bank:", err)
	}
	if err := b.servers.Stop(); err != nil {
		_, _ = fmt.Fprintln(b.term.err, "bank:", err)
	}
	if err := leave(b.lock); err != nil {
		_, _ = fmt.Fprintln(b.term.err, "bank:", err)
	}
}

// adminToken returns the token of an earlier start or a new one, so that a token that a person has copied stays valid.
func adminToken(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err == nil && len(strings.TrimSpace(string(content))) > 0 {
		return strings.TrimSpace(string(content)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read admin token: %w", err)
	}
	token := rand.Text()
	if err := os.WriteFile(path, []byte(token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write admin token: %w", err)
	}
	return token, nil
}

func (b *bank) printAddresses() {
	b.term.printf("\nThe bank is open.\n\n")
	if b.where.ConsoleURL != "" { // started last, and what one wants to open first
		b.term.printf("  %-12s %s  (sign in with the token in %s)\n", "console", b.where.ConsoleURL, filepath.Join(b.term.dir, tokenFile))
	}
	for _, s := range b.services {
		if s.url != b.where.ConsoleURL {
			b.term.printf("  %-12s %s\n", s.name, s.url)
		}
	}
	b.term.printf("  %-12s %s  (user and password in %s)\n", "RabbitMQ", withoutPassword(b.where.ManagementURL), endpointsFile(b.term.dir))
	b.term.printf("  %-12s %s, %s\n", "PostgreSQL", withoutPassword(b.where.AccountDatabaseURL), withoutPassword(b.where.TransferDatabaseURL))
	b.term.printf("  %-12s %s\n", "AMQP", withoutPassword(b.where.AMQPURL))
	b.term.printf("  %-12s %s\n", "logs", filepath.Join(b.term.dir, "logs"))
}

// printNextSteps says what one can do with a bank that stays open.
func (b *bank) printNextSteps() {
	if b.where.ConsoleURL != "" {
		b.term.printf("\nOpen %s in a browser and make a transfer.\n", b.where.ConsoleURL)
	}
	b.term.printf(`
Try, in another terminal:
  curl %[1]s/accounts
  curl -i %[2]s/transfers -H 'Content-Type: application/json' \
    -d '{"sourceAccountId":"%[3]s","destinationAccountId":"%[4]s","amountMinor":2500,"currency":"EUR"}'
  curl %[2]s/transfers/summary
`, b.where.AccountURL, b.where.TransferURL, demoAccounts[0].ID, demoAccounts[1].ID)
	if os.Getenv(detached) != "" {
		b.term.printf("\nIt runs in the background; 'bank down' stops it.\n")
	} else {
		b.term.printf("\nCtrl-C stops all of it; the data stays.\n")
	}
}
