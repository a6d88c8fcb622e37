package main

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
)

// account is an account as the account service shows it.
type account struct {
	ID           string    `json:"id"`
	Owner        string    `json:"owner"`
	Currency     string    `json:"currency"`
	Status       string    `json:"status"`
	BalanceMinor int64     `json:"balanceMinor"`
	CreatedAt    time.Time `json:"createdAt"`
}

// transfer is a transfer as the transfer service shows it.
type transfer struct {
	ID                   string    `json:"id"`
	Status               string    `json:"status"`
	SourceAccountID      string    `json:"sourceAccountId"`
	DestinationAccountID string    `json:"destinationAccountId"`
	AmountMinor          int64     `json:"amountMinor"`
	Currency             string    `json:"currency"`
	Reference            string    `json:"reference,omitzero"`
	Reason               string    `json:"reason,omitzero"`
	CreatedAt            time.Time `json:"createdAt"`
	UpdatedAt            time.Time `json:"updatedAt"`
	Timeline             []fact    `json:"timeline,omitempty"`
}

// fact is one line of a transfer's timeline.
type fact struct {
	Fact      string    `json:"fact"`
	At        time.Time `json:"at"`
	MessageID string    `json:"messageId"`
}

func (t transfer) ended() bool {
	return t.Status == "COMPLETED" || t.Status == "REJECTED" || t.Status == "REFUNDED"
}

// page is one page of a list.
type page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitzero"`
}

func (e *endpoints) account() *api { return newAPI("account", e.AccountURL).or(e.need("ACCOUNT_URL")) }
func (e *endpoints) transfer() *api {
	return newAPI("transfer", e.TransferURL).or(e.need("TRANSFER_URL"))
}

// others are the services beside account and transfer whose addresses are known. One that is not may never have been started here.
func (e *endpoints) others() []*api {
	var all []*api
	for _, other := range e.Others {
		if other.URL != "" {
			all = append(all, newAPI(other.Name, other.URL))
		}
	}
	return all
}

// api talks to one service.
type api struct {
	name string // for messages: "account", "transfer"
	base string
	http http.Client

	unknown error // why it has no address; nil when it has one
}

func newAPI(name, base string) *api {
	return &api{name: name, base: strings.TrimSuffix(base, "/"), http: http.Client{Timeout: 15 * time.Second}}
}

// or says what is answered to every call when there is no address.
func (a *api) or(unknown error) *api {
	a.unknown = unknown
	return a
}

// problem is a refusal of a service, in its own words (RFC 9457).
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	} `json:"errors"`
}

func (p *problem) Error() string {
	text := fmt.Sprintf("%d %s", p.Status, p.Title)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	for _, field := range p.Errors {
		text += fmt.Sprintf("\n  %s: %s", field.Field, field.Message)
	}
	return text
}

// do makes one call and reads the answer into result, unless that is nil. It returns the answer's headers.
func (a *api) do(ctx context.Context, method, path string, body, result any, headers ...string) (http.Header, error) {
	if a.unknown != nil {
		return nil, a.unknown
	}
	var reader io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := a.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the %s service does not answer: %w", a.name, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the %s service: %w", a.name, err)
	}
	if response.StatusCode >= 400 {
		refusal := &problem{Status: response.StatusCode, Title: http.StatusText(response.StatusCode)}
		_ = json.Unmarshal(answer, refusal) // what is no problem document is told by its status alone
		return response.Header, refusal
	}
	if result == nil {
		return response.Header, nil
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return response.Header, fmt.Errorf("the %s service answered something unexpected: %w", a.name, err)
	}
	return response.Header, nil
}

// list walks the pages of a list until it has limit items (0: all), calling visit for each.
func list[T any](ctx context.Context, a *api, path string, query url.Values, limit int, visit func(T) error) error {
	const pageSize = 200
	seen := 0
	for {
		size := pageSize
		if limit > 0 {
			size = min(pageSize, limit-seen)
		}
		query.Set("limit", fmt.Sprint(size))
		var got page[T]
		if _, err := a.do(ctx, http.MethodGet, path+"?"+query.Encode(), nil, &got); err != nil {
			return err
		}
		for _, item := range got.Items {
			if err := visit(item); err != nil {
				return err
			}
			seen++
		}
		if got.Next == "" || limit > 0 && seen >= limit {
			return nil
		}
		query.Set("after", got.Next)
	}
}

// refusedWith says whether err is a service's refusal with the given status.
func refusedWith(err error, status int) bool {
	var refusal *problem
	return errors.As(err, &refusal) && refusal.Status == status
}
