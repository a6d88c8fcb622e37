package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Management is a client of RabbitMQ's management API. It keeps no connection open between calls, so that it leaves
// no goroutine behind in tests that look for them.
type Management struct {
	base string // with credentials
	http *http.Client
}

// NewManagement returns a client for an address with credentials, http://user:password@host:port.
func NewManagement(base string) *Management {
	return &Management{base: base, http: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
}

// ErrNotFound is the API's 404.
var ErrNotFound = errors.New("not found")

// Get reads path, which starts with /api/, into result (nil: only the status counts).
func (m *Management) Get(ctx context.Context, path string, result any) error {
	return m.call(ctx, http.MethodGet, path, nil, result)
}

// Put creates or replaces what path names.
func (m *Management) Put(ctx context.Context, path string, body any) error {
	return m.call(ctx, http.MethodPut, path, body, nil)
}

// Delete removes what path names; something that is not there is no error.
func (m *Management) Delete(ctx context.Context, path string) error {
	if err := m.call(ctx, http.MethodDelete, path, nil, nil); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

func (m *Management) call(ctx context.Context, method, path string, body, result any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("management %s %s: %w", method, path, err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, m.base+path, content)
	if err != nil {
		return fmt.Errorf("management %s %s: %w", method, path, err)
	}
	resp, err := m.http.Do(req)
	if err != nil {
		var urlErr *url.Error
		if errors.As(err, &urlErr) {
			err = urlErr.Err // its own text repeats the address, password and all
		}
		return fmt.Errorf("management %s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("management %s %s: %w", method, path, err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return fmt.Errorf("management %s %s: %w", method, path, ErrNotFound)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("management %s %s: %s: %s", method, path, resp.Status, answer)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("management %s %s: %w", method, path, err)
	}
	return nil
}
