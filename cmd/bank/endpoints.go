package main

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"example.com/banking/internal/supervise"
	"example.com/banking/services"
)

// endpoints are the addresses and secrets of a running bank, under the names that they have in the file and in
// the environment.
type endpoints struct {
	AccountURL, TransferURL, ConsoleURL     string
	AMQPURL, ManagementURL                  string // the operator's
	AccountDatabaseURL, TransferDatabaseURL string
	AdminToken                              string
	ControlURL                              string // of the bank's keeper: see package control
	Others                                  []serviceEndpoint

	dir string // of the bank that they are said to belong to
}

// serviceEndpoint are the addresses of a service beside account, transfer and the console: FEES_URL and FEES_DATABASE_URL of fees.
type serviceEndpoint struct{ Name, URL, DatabaseURL string }

// field is an address and its name in the file.
type field struct {
	key   string
	value *string
}

func (e *endpoints) fields() []field {
	fields := []field{
		{"ACCOUNT_URL", &e.AccountURL},
		{"TRANSFER_URL", &e.TransferURL},
		{"CONSOLE_URL", &e.ConsoleURL},
		{"AMQP_URL", &e.AMQPURL},
		{"RABBITMQ_MANAGEMENT_URL", &e.ManagementURL},
		{"ACCOUNT_DATABASE_URL", &e.AccountDatabaseURL},
		{"TRANSFER_DATABASE_URL", &e.TransferDatabaseURL},
		{"ADMIN_TOKEN", &e.AdminToken},
		{"CONTROL_URL", &e.ControlURL},
	}
	for i := range e.Others {
		other := &e.Others[i]
		prefix := strings.ToUpper(other.Name)
		fields = append(fields, field{prefix + "_URL", &other.URL}, field{prefix + "_DATABASE_URL", &other.DatabaseURL})
	}
	return fields
}

func endpointsFile(dir string) string { return filepath.Join(dir, "endpoints.env") }

// loadEndpoints reads the file that 'bank up' wrote into dir and lets the environment override it. Without the file, or with that of a bank
// that was killed, the environment alone has to do. What neither names stays empty: see need.
func loadEndpoints(dir string) (*endpoints, error) {
	e := &endpoints{dir: dir}
	others, err := services.Others()
	if err != nil {
		return e, err
	}
	for _, other := range others {
		e.Others = append(e.Others, serviceEndpoint{Name: other.Name})
	}
	values := map[string]string{}
	file, err := os.Open(endpointsFile(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return e, fmt.Errorf("read addresses: %w", err)
	case e.killed(): // its ports are another's by now, perhaps another bank's
		_ = file.Close()
	default:
		defer func() { _ = file.Close() }()
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			if key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), "="); ok && !strings.HasPrefix(key, "#") {
				values[key] = value
			}
		}
		if err := lines.Err(); err != nil {
			return e, fmt.Errorf("read addresses: %w", err)
		}
	}
	for _, field := range e.fields() {
		*field.value = values[field.key]
		if value, set := os.LookupEnv(field.key); set {
			*field.value = value
		}
	}
	return e, nil
}

// need fails, naming them all, when one of the keys has no value.
func (e *endpoints) need(keys ...string) error {
	var missing []string
	for _, field := range e.fields() {
		for _, key := range keys {
			if field.key == key && *field.value == "" {
				missing = append(missing, key)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if e.killed() {
		return e.wasKilled()
	}
	names := strings.Join(missing, ", ")
	if e.dir != "" && supervise.Locked(filepath.Join(e.dir, lockFile)) {
		return fmt.Errorf("%s not known yet: a bank is starting in %s, and says its addresses when it is ready", names, e.dir)
	}
	return fmt.Errorf("%s not known: start a bank with 'bank up' (or 'make up'), or set it in the environment", names)
}

// gone explains why nobody answers, when the bank has been killed while it was being asked: nil when that is not so.
func (e *endpoints) gone(err error) error {
	var unreachable *net.OpError
	if !errors.As(err, &unreachable) || !e.killed() {
		return nil
	}
	return e.wasKilled()
}

// killed says whether the bank that wrote its addresses down has ended without taking them away.
func (e *endpoints) killed() bool {
	lock := filepath.Join(e.dir, lockFile)
	for _, path := range []string{endpointsFile(e.dir), lock} {
		if _, missing := os.Stat(path); missing != nil {
			return false
		}
	}
	return !supervise.Locked(lock)
}

func (e *endpoints) wasKilled() error {
	return fmt.Errorf("the bank in %s does not run any more, it was killed; the addresses in %s are its last. '%s' starts it again", e.dir, endpointsFile(e.dir), e.upCommand())
}

// usualDir is the default of --dir.
const usualDir = ".bank"

// upCommand starts the bank in this folder. The usual folder goes without saying.
func (e *endpoints) upCommand() string {
	if usual, err := filepath.Abs(usualDir); err == nil && e.dir == usual {
		return "bank up"
	}
	if strings.ContainsAny(e.dir, " \t'\"$&;|<>()*?`\\") {
		return fmt.Sprintf("bank up --dir %q", e.dir)
	}
	return "bank up --dir " + e.dir
}

// save writes the file for the owner's eyes only: it holds passwords. It appears whole or not at all.
func (e *endpoints) save(dir string) error {
	var text strings.Builder
	for _, field := range e.fields() {
		if *field.value != "" {
			text.WriteString(field.key + "=" + *field.value + "\n")
		}
	}
	unfinished := endpointsFile(dir) + ".new"
	if err := os.WriteFile(unfinished, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	if err := os.Rename(unfinished, endpointsFile(dir)); err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}
	return nil
}
