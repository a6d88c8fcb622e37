package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// demoAccount is an account that 'bank up' opens. The ids are fixed, which makes opening repeatable and lets the
// documentation name them.
type demoAccount struct {
	ID                  string `json:"id"`
	Owner               string `json:"owner"`
	Currency            string `json:"currency"`
	OpeningBalanceMinor int64  `json:"openingBalanceMinor"`

	frozen bool
}

var demoAccounts = []demoAccount{
	{ID: "00000000-0000-4000-8000-000000000001", Owner: "Alice", Currency: "EUR", OpeningBalanceMinor: 100_000},
	{ID: "00000000-0000-4000-8000-000000000002", Owner: "Bob", Currency: "EUR", OpeningBalanceMinor: 50_000},
	{ID: "00000000-0000-4000-8000-000000000003", Owner: "Carol", Currency: "EUR", OpeningBalanceMinor: 25_000},
	{ID: "00000000-0000-4000-8000-000000000004", Owner: "Dave", Currency: "USD", OpeningBalanceMinor: 75_000},
	{ID: "00000000-0000-4000-8000-000000000005", Owner: "Frieda (frozen)", Currency: "EUR", OpeningBalanceMinor: 10_000, frozen: true},
}

// seed opens the demo accounts. One that exists is left as people have made it: a demo account that was unfrozen by hand
// stays so.
func seed(ctx context.Context, accountURL string, term *terminal) error {
	client := &http.Client{Timeout: 15 * time.Second}
	defer client.CloseIdleConnections()
	opened := 0
	for _, account := range demoAccounts {
		status, err := post(ctx, client, accountURL+"/accounts", account)
		if err != nil {
			return err
		}
		if status != http.StatusCreated {
			continue
		}
		opened++
		if !account.frozen {
			continue
		}
		if _, err := post(ctx, client, accountURL+"/accounts/"+account.ID+"/freeze", nil); err != nil {
			return err
		}
	}
	term.printf("  %d demo accounts, %d of them new\n", len(demoAccounts), opened)
	return nil
}

func post(ctx context.Context, client *http.Client, address string, body any) (int, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, fmt.Errorf("POST %s: %w", address, err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, content)
	if err != nil {
		return 0, fmt.Errorf("POST %s: %w", address, err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("POST %s: %w", address, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return 0, fmt.Errorf("POST %s: %w", address, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return 0, fmt.Errorf("POST %s: %s: %s", address, resp.Status, answer)
	}
	return resp.StatusCode, nil
}
