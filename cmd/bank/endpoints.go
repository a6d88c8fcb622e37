package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// endpoints are the addresses and secrets of a running bank, under the names that they have in the file and in
// the environment.
type endpoints struct {
	AccountURL, TransferURL, ConsoleURL     string
	AMQPURL, ManagementURL                  string // the operator's
	AccountDatabaseURL, TransferDatabaseURL string
	AdminToken                              string
	ControlURL                              string // of the bank's keeper: see package control
}

func (e *endpoints) fields() []struct {
	key   string
	value *string
} {
	return []struct {
		key   string
		value *string
	}{
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
}

func endpointsFile(dir string) string { return filepath.Join(dir, "endpoints.env") }

// loadEndpoints reads the file that 'bank up' wrote into dir and lets the environment override it. Without the file the
// environment alone has to do. What neither names stays empty: see need.
func loadEndpoints(dir string) (*endpoints, error) {
	e := &endpoints{}
	values := map[string]string{}
	file, err := os.Open(endpointsFile(dir))
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return e, fmt.Errorf("read addresses: %w", err)
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
	return fmt.Errorf("%s not known: start a bank with 'bank up' (or 'make up'), or set it in the environment",
		strings.Join(missing, ", "))
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
