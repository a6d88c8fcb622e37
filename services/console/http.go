package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"example.com/banking/pkg/service"
	"example.com/banking/services/console/upstream"
	"example.com/banking/services/console/watch"
	"github.com/labstack/echo/v4"
)

// api lets a page act. It is thin: each call is one of a service's, with the same body and the same answer, refusals included. What it
// adds is the admin token, which the page never has, for who is signed in.
type api struct {
	account, transfer *upstream.Upstream
	services          []*upstream.Upstream // these and the added ones: those that have a quarantine
	token             string
	sessions          *sessions
	hub               *watch.Hub
}

func (a *api) register(e *echo.Echo) {
	for _, r := range []struct {
		method, path string
		to           *upstream.Upstream
		call         string   // the service's path; the parameters of ours are put in
		pokes        []string // topics that it changes
	}{
		{"GET", "/api/transfers", a.transfer, "/transfers", nil},
		{"POST", "/api/transfers", a.transfer, "/transfers", []string{"transfers", "summary"}},
		{"GET", "/api/transfers/:id", a.transfer, "/transfers/:id", nil},
		{"GET", "/api/accounts", a.account, "/accounts", nil},
		{"GET", "/api/accounts/:id", a.account, "/accounts/:id", nil},
		{"GET", "/api/accounts/:id/entries", a.account, "/accounts/:id/entries", nil},
		{"POST", "/api/accounts/:id/freeze", a.account, "/accounts/:id/freeze", []string{"accounts", "account:"}},
		{"POST", "/api/accounts/:id/unfreeze", a.account, "/accounts/:id/unfreeze", []string{"accounts", "account:"}},
		{"POST", "/api/accounts/:id/close", a.account, "/accounts/:id/close", []string{"accounts", "account:"}},
	} {
		e.Add(r.method, r.path, func(c echo.Context) error {
			err := a.forward(c, c.Request().Context(), r.to, pathOf(c, r.call), call{amounts: true})
			for _, topic := range r.pokes {
				if strings.HasSuffix(topic, ":") {
					topic += c.Param("id")
				}
				a.hub.Poke(topic)
			}
			return err
		})
	}
	for _, r := range []struct{ method, path, call string }{
		{"GET", "/api/parked/:service", "/admin/quarantine"},
		{"GET", "/api/parked/:service/message/:queue/:key", "/admin/quarantine/:queue/:key"},
		{"POST", "/api/parked/:service/replay", "/admin/quarantine/replay"},
		{"POST", "/api/parked/:service/discard", "/admin/quarantine/discard"},
		{"GET", "/api/parked/:service/audit", "/admin/quarantine/audit"},
		{"GET", "/api/parked/:service/audit/:id", "/admin/quarantine/audit/:id"},
	} {
		e.Add(r.method, r.path, func(c echo.Context) error { return a.administer(c, r.call) })
	}
}

// administer makes an admin call for who is signed in.
func (a *api) administer(c echo.Context, path string) error {
	signedIn, err := a.sessions.need(c)
	if err != nil {
		return err
	}
	var to *upstream.Upstream
	var names []string
	for _, s := range a.services {
		if names = append(names, s.Name); s.Name == c.Param("service") {
			to = s
		}
	}
	if to == nil {
		return service.NotFound("There is no such service; there are " + strings.Join(names, ", ") + ".")
	}
	operator := signedIn.operator
	if operator == "" {
		operator = "somebody"
	}
	header := http.Header{"Authorization": {"Bearer " + a.token}, "X-Operator": {operator + " (console)"}}
	ctx, cancel := service.Unhurried(c) // a replay goes on for as long as its rate demands
	defer cancel()
	err = a.forward(c, ctx, to, pathOf(c, path), call{header: header, stream: true})
	if c.Request().Method != http.MethodGet {
		a.hub.Poke("parked:" + to.Name)
	}
	return err
}

// call is how a call is forwarded.
type call struct {
	header  http.Header
	amounts bool // the answer has amounts of money in it
	stream  bool // the answer is sent on as it comes
}

// What goes to the service of a page's headers, and back of its answer's. No cookie does.
var (
	asked    = []string{"Content-Type", "Idempotency-Key", "Traceparent"}
	answered = []string{"Content-Type", "Retry-After", "Idempotency-Replayed", "Allow"}
)

// callTime is for a service to begin its answer, within what the page is promised.
const callTime = 7 * time.Second

func (a *api) forward(c echo.Context, ctx context.Context, to *upstream.Upstream, path string, how call) error {
	header := http.Header{}
	for _, name := range asked {
		if values := c.Request().Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	for name, values := range how.header {
		header[name] = values
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !how.stream {
		late := time.AfterFunc(callTime, cancel)
		defer late.Stop()
	}
	if query := c.Request().URL.RawQuery; query != "" {
		path += "?" + query
	}
	var body io.Reader
	if c.Request().Method != http.MethodGet {
		body = c.Request().Body
	}
	answer, err := to.Do(ctx, c.Request().Method, path, body, header)
	if err != nil {
		return away(c, err)
	}
	defer func() { _ = answer.Body.Close() }()
	for _, name := range answered {
		if values := answer.Header.Values(name); len(values) > 0 {
			c.Response().Header()[name] = values
		}
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	if answer.StatusCode == http.StatusUnauthorized {
		// The session is good; it is the console that holds another token than the service.
		return service.NewProblem(http.StatusBadGateway, to.Name+" does not take the console's admin token: they were started with different ones.")
	}
	if how.stream {
		return passOn(c, answer)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, 16<<20))
	if err != nil {
		return away(c, &upstream.Silent{Name: to.Name, Cause: err})
	}
	if how.amounts && answer.StatusCode < 300 {
		if content, err = upstream.QuoteAmounts(content); err != nil {
			return service.NewProblem(http.StatusBadGateway, to.Name+" answers with something that is no JSON.")
		}
	}
	return c.Blob(answer.StatusCode, answer.Header.Get("Content-Type"), content)
}

// passOn sends an answer on as it comes, so that a page sees a replay's progress.
func passOn(c echo.Context, answer *http.Response) error {
	control := http.NewResponseController(c.Response())
	c.Response().WriteHeader(answer.StatusCode)
	buffer := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			_ = control.SetWriteDeadline(time.Now().Add(20 * time.Second)) // a recorder in a test has none
			if _, wrong := c.Response().Write(buffer[:n]); wrong != nil {
				return nil // the page has gone; with the request's context, so does the call
			}
			if wrong := control.Flush(); wrong != nil && !errors.Is(wrong, http.ErrNotSupported) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			panic(http.ErrAbortHandler) // the page must see that the answer is not whole
		}
	}
}

// away is the answer when a service gives none: it may have done what it was asked for.
func away(c echo.Context, err error) error {
	if c.Request().Method == http.MethodGet || c.Request().Header.Get("Idempotency-Key") != "" {
		return service.Unavailable(err.Error()+". The same call may be made again.", err)
	}
	return service.Unavailable(err.Error()+". It is not known whether this was done: look before you make the same call again.", err)
}

// pathOf puts the parameters of a route into a service's path, escaped.
func pathOf(c echo.Context, path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, isParameter := strings.CutPrefix(part, ":"); isParameter {
			parts[i] = url.PathEscape(parameter(c, name))
		}
	}
	return strings.Join(parts, "/")
}

// parameter reads a parameter of the path. Echo leaves it escaped when the path needed escaping, as for a message id with a slash in it.
func parameter(c echo.Context, name string) string {
	text := c.Param(name)
	if c.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
	}
	return text
}
