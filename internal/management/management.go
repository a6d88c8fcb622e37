// Package management is a client of RabbitMQ's management API, for what AMQP cannot tell: which queues there are, how they were declared,
// how many messages their consumers hold.
package management

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Client keeps no connection open between calls, so that it leaves no goroutine behind. No error holds the address, which has a password in it.
type Client struct {
	base *url.URL
	err  error // why there is no base
	http *http.Client
}

// New returns a client for an address with credentials, http://user:password@host:port. Every call of a client whose address is none says so.
func New(address string) *Client {
	c := &Client{http: &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
	if c.base, c.err = url.Parse(strings.TrimSuffix(address, "/")); c.err != nil {
		c.err = errors.New("its address is not a URL")
	}
	return c
}

// WithUser returns a client that comes with these credentials where the address has none.
func (c *Client) WithUser(name, password string) *Client {
	if c.err != nil || c.base.User != nil {
		return c
	}
	base := *c.base
	base.User = url.UserPassword(name, password)
	return &Client{base: &base, http: c.http}
}

// ErrNotFound is the API's 404.
var ErrNotFound = errors.New("not found")

// Get reads path, which starts with /api/ and is escaped, into result (nil: only the status counts).
func (c *Client) Get(ctx context.Context, path string, result any) error {
	return c.call(ctx, http.MethodGet, path, nil, result)
}

// Put creates or replaces what path names.
func (c *Client) Put(ctx context.Context, path string, body any) error {
	return c.call(ctx, http.MethodPut, path, body, nil)
}

// Delete removes what path names; something that is not there is no error.
func (c *Client) Delete(ctx context.Context, path string) error {
	if err := c.call(ctx, http.MethodDelete, path, nil, nil); err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	return nil
}

// The API answers 500 when a queue or connection it was about to describe ends under its hands. Asked again a moment later it knows that
// it is gone. Every call may be made twice: what is put or deleted already stays so.
const (
	tries      = 5
	firstPause = 100 * time.Millisecond // doubled from try to try
)

func (c *Client) call(ctx context.Context, method, path string, body, result any) error {
	if c.err != nil {
		return fmt.Errorf("the management API cannot be asked: %w", c.err)
	}
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("management %s %s: %w", method, path, err)
		}
	}
	for try := 1; ; try++ {
		status, answer, err := c.ask(ctx, method, path, content)
		switch {
		case err != nil:
			return fmt.Errorf("the management API does not answer %s %s: %w", method, path, err)
		case status == http.StatusNotFound:
			return fmt.Errorf("management %s %s: %w", method, path, ErrNotFound)
		case status >= http.StatusInternalServerError && try < tries && pause(ctx, firstPause<<(try-1)):
			continue
		case status >= http.StatusBadRequest:
			return fmt.Errorf("the management API answered %s %s with %d %s: %s", method, path, status, http.StatusText(status), answer)
		case result == nil:
			return nil
		}
		// It repeats a member here and there.
		if err := json.Unmarshal(answer, result, jsontext.AllowDuplicateNames(true)); err != nil {
			return fmt.Errorf("reading the management API's answer to %s %s: %w", method, path, err)
		}
		return nil
	}
}

// ask makes one call.
func (c *Client) ask(ctx context.Context, method, path string, content []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base.String()+path, bytes.NewReader(content))
	if err != nil {
		return 0, nil, errors.New("its address or the path cannot be used") // the error would quote the password
	}
	response, err := c.http.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // its own text repeats the address, password and all
		}
		return 0, nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// pause waits, and says whether there is still somebody who wants the answer.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
