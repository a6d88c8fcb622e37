package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// Client asks the keeper of a running bank.
type Client struct {
	base, token string
}

// NewClient makes a client for the address and token in the bank's endpoints.
func NewClient(base, token string) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), token: token}
}

// Processes lists what the bank consists of.
func (c *Client) Processes(ctx context.Context) ([]Process, error) {
	var list struct {
		Items []Process `json:"items"`
	}
	err := c.call(ctx, http.MethodGet, "/processes", nil, &list)
	return list.Items, err
}

// Process is one of them.
func (c *Client) Process(ctx context.Context, name string) (Process, error) {
	all, err := c.Processes(ctx)
	if err != nil {
		return Process{}, err
	}
	for _, p := range all {
		if p.Name == name {
			return p, nil
		}
	}
	return Process{}, fmt.Errorf("%s: %w", name, ErrUnknown)
}

// Act carries an order out and returns what has become of the process. It may take as long as a server takes to start.
func (c *Client) Act(ctx context.Context, name string, verb Verb, environment map[string]string) (Process, error) {
	var body []byte
	if len(environment) > 0 {
		var err error
		if body, err = json.Marshal(order{environment}); err != nil {
			return Process{}, err
		}
	}
	var p Process
	err := c.call(ctx, http.MethodPost, "/processes/"+url.PathEscape(name)+"/"+string(verb), body, &p)
	return p, err
}

func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	if c.base == "" {
		return errors.New(`processes cannot be controlled here: that needs a bank started with "make up" (or "bank up")`)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the bank's keeper does not answer: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("the answer of the bank's keeper: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		said := refusal{Detail: response.Status}
		_ = json.Unmarshal(content, &said) // what is no problem document is told by its status
		return errors.New(said.Detail)
	}
	return json.Unmarshal(content, into)
}
