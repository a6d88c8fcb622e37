package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
)

const alice = "00000000-0000-4000-8000-000000000001"

func TestATransferIsMadeByTheService(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	c.transfer.on("POST /transfers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Idempotency-Replayed", "true")
		w.Header().Set("Set-Cookie", "theirs=1")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `{"id":"x","amountMinor":9007199254740993}`)
	})
	const body = `{"amountMinor":9007199254740993}`
	got := c.call(t, "POST", "/api/transfers", body, "Content-Type", "application/json", "Idempotency-Key", "lunch", "X-Operator", "nobody")
	if got.status != http.StatusAccepted || got.body != `{"id":"x","amountMinor":"9007199254740993"}` || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %+v", got)
	}
	if got.header.Get("Set-Cookie") != "" {
		t.Error("a cookie of the service came through")
	}
	request, sent := c.transfer.request(t, "POST /transfers")
	if sent != body || request.Header.Get("Idempotency-Key") != "lunch" || request.Header.Get("X-Operator") != "" || request.Header.Get("Authorization") != "" {
		t.Errorf("sent %s with %v", sent, request.Header)
	}
}

func TestRefusalsComeThroughAsTheyAre(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	c.account.refuse("POST /accounts/"+alice+"/close", http.StatusConflict, "The account's balance is not zero.")
	got := c.call(t, "POST", "/api/accounts/"+alice+"/close", "")
	if got.status != http.StatusConflict || !strings.Contains(got.body, "balance is not zero") || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %+v", got)
	}
	expectStatus(t, c.call(t, "GET", "/api/accounts/"+alice, ""), http.StatusNotFound)

	c.account.Close()
	got = c.call(t, "POST", "/api/accounts/"+alice+"/freeze", "")
	if got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "account does not answer: ") || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(got.body, "look before you make the same call again") {
		t.Errorf("of what may have been done it says %s", got.body)
	}
	for _, harmless := range []answer{
		c.call(t, "GET", "/api/accounts/"+alice, ""),
		c.call(t, "POST", "/api/accounts/"+alice+"/freeze", "", "Idempotency-Key", "cold"),
	} {
		if harmless.status != http.StatusServiceUnavailable || !strings.Contains(harmless.body, "The same call may be made again") {
			t.Errorf("of what can do no harm it says %+v", harmless)
		}
	}
}

func TestPathsAndQueriesArePassedOnEscaped(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.signIn(t)
	c.account.say("GET /admin/quarantine/q_error/a%2Fb%3Fc%20d", `{"key":"a/b?c d"}`)
	got := c.call(t, "GET", "/api/parked/account/message/q_error/a%2Fb%3Fc%20d", "")
	if got.status != http.StatusOK || got.body != `{"key":"a/b?c d"}` {
		t.Errorf("got %+v", got)
	}
	c.account.say("GET /accounts", `{"items":[]}`)
	expectStatus(t, c.call(t, "GET", "/api/accounts?limit=5&after=x%26y", ""), http.StatusOK)
	if request, _ := c.account.request(t, "GET /accounts"); request.URL.RawQuery != "limit=5&after=x%26y" {
		t.Errorf("query %q", request.URL.RawQuery)
	}
	expectStatus(t, c.call(t, "GET", "/api/parked/console", ""), http.StatusNotFound)
}

// A run's items are sent on while it goes on.
func TestARunIsSeenWhileItGoesOn(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.signIn(t)
	more := make(chan struct{})
	c.transfer.on("POST /admin/quarantine/replay", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[{"key":"a"}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		_, _ = io.WriteString(w, `],"done":1}`)
	})
	request, _ := http.NewRequestWithContext(t.Context(), "POST", c.url+"/api/parked/transfer/replay", strings.NewReader(`{"confirm":true}`))
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	const wanted = `{"items":[{"key":"a"}` + "\n"
	first := make([]byte, len(wanted))
	if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != wanted {
		t.Errorf("first %q, %v", first, err)
	}
	close(more)
	if rest, err := io.ReadAll(response.Body); err != nil || string(rest) != `],"done":1}` {
		t.Errorf("rest %q, %v", rest, err)
	}
	if _, sent := c.transfer.request(t, "POST /admin/quarantine/replay"); sent != `{"confirm":true}` {
		t.Errorf("sent %s", sent)
	}
}

func TestARunThatBreaksOffIsNotWhole(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.signIn(t)
	c.transfer.on("POST /admin/quarantine/replay", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"items":[`)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	request, _ := http.NewRequestWithContext(t.Context(), "POST", c.url+"/api/parked/transfer/replay", strings.NewReader(`{}`))
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if content, err := io.ReadAll(response.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v: want an end that is not one", content, err)
	}
}

func TestAnotherTokenThanTheServices(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.signIn(t)
	c.account.refuse("GET /admin/quarantine", http.StatusUnauthorized, "This call needs the admin token.")
	expectStatus(t, c.call(t, "GET", "/api/parked/account", ""), http.StatusBadGateway)
	if got := c.call(t, "GET", "/api/session", ""); !strings.Contains(got.body, `"signedIn":true`) {
		t.Errorf("the session has ended: %s", got.body)
	}
}

func TestOtherSitesCannotAct(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.signIn(t)
	for _, call := range []string{"POST /api/transfers", "POST /api/session", "DELETE /api/session", "POST /api/accounts/" + alice + "/freeze", "POST /api/parked/transfer/replay"} {
		method, path, _ := strings.Cut(call, " ")
		expectStatus(t, c.call(t, method, path, "{}", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
		expectStatus(t, c.call(t, method, path, "{}", "Origin", "http://elsewhere.example"), http.StatusForbidden)
	}
	// What changes something cannot be had by GET.
	for _, path := range []string{"/api/accounts/" + alice + "/freeze", "/api/parked/transfer/discard"} {
		expectStatus(t, c.call(t, "GET", path, ""), http.StatusMethodNotAllowed)
	}
	if n := c.account.total() + c.transfer.total(); n != 0 {
		t.Errorf("the services were asked %d times", n)
	}
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	for _, call := range []string{"GET /", "GET /static/js/app.js", "GET /nothing", "POST /", "GET /api/session", "GET /api/parked/transfer", "GET /readyz", "GET /events"} {
		method, path, _ := strings.Cut(call, " ")
		header := c.call(t, method, path, "").header
		policy := header.Get("Content-Security-Policy")
		for _, wanted := range []string{"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(policy, wanted) {
				t.Errorf("%s: policy %q without %s", call, policy, wanted)
			}
		}
		if strings.Contains(policy, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", call, header)
		}
	}
}

func TestOperationalRoutes(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	for _, f := range []*fake{c.account, c.transfer, c.management} {
		f.Close() // that others are away is what it is there to show
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	c.client.Transport = transport
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml"} {
		expectStatus(t, c.call(t, "GET", path, ""), http.StatusOK)
	}
}

func TestConfiguration(t *testing.T) {
	t.Parallel()
	_, err := service.Load[config]([]string{"ACCOUNT_URL=account:8081", "TRANSFER_URL=ftp://x", "RABBITMQ_MANAGEMENT_URL=http://operator:hunter2@"}, defaults)
	var wrong *service.ConfigError
	if !errors.As(err, &wrong) || len(wrong.Lines) != 3 || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v; want three lines and no password", err)
	}
	cfg, err := service.Load[config]([]string{"RABBITMQ_MANAGEMENT_URL=http://operator:x@localhost:15672"}, defaults)
	if err != nil || cfg.HTTPAddr != "127.0.0.1:8080" || cfg.AccountURL != "http://127.0.0.1:8081" || cfg.TransferURL != "http://127.0.0.1:8082" || cfg.Vhost != "banking" {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if _, err := service.Load[config](nil, defaults); err == nil || !strings.Contains(err.Error(), "RABBITMQ_MANAGEMENT_URL") {
		t.Errorf("without an address of the broker: %v", err)
	}
}

// A name of another site that leads to this machine by now is not the console's: its page would read and act as ours.
func TestTheConsoleAnswersToNoForeignName(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	for _, path := range []string{"/", "/js/app.js", "/api/accounts", "/events", "/healthz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "evil.example:8080"
		response, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %d, want 421", path, response.StatusCode)
		}
	}
}
