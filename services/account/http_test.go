package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

// edge is the HTTP side over a bank of its own. Every answer is held against openapi.yaml on the way.
type edge struct {
	*bank
	url    string
	client *http.Client
}

func newEdge(t *testing.T) *edge {
	t.Helper()
	b := newBank(t)
	return &edge{bank: b, url: serve(t, b.store), client: &http.Client{Transport: openapitest.New(t, openAPI, nil)}}
}

func serve(t *testing.T, s *store) (url string) {
	t.Helper()
	server, err := service.NewHTTP(service.HTTPConfig{
		Addr: "127.0.0.1:0", OpenAPI: openAPI, Problem: problem, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	(&api{store: s, clock: time.Now}).routes(server.Echo)
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)
	return listening.URL
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (e *edge) call(t *testing.T, method, path, body string) answer {
	t.Helper()
	return call(t, e.client, method, e.url+path, body)
}

func call(t testing.TB, client *http.Client, method, url, body string) answer {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, url, content)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, all}
}

// answered decodes the body of an answer that must have the status.
func answered[T any](t testing.TB, a answer, status int) T {
	t.Helper()
	var into T
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if err := json.Unmarshal(a.body, &into); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return into
}

type listJSON[T any] struct {
	Items []T
	Next  *string
}

func TestOpenAccount(t *testing.T) {
	t.Parallel()
	e := newEdge(t)

	t.Run("with an id of ours", func(t *testing.T) {
		opened := e.call(t, "POST", "/accounts", `{"owner": "Ada", "currency": "EUR", "openingBalanceMinor": 2500}`)
		account := answered[accountJSON](t, opened, http.StatusCreated)
		if account.Owner != "Ada" || account.Currency != "EUR" || account.Status != ledger.Open || account.BalanceMinor != 2500 {
			t.Errorf("opened %+v", account)
		}
		if want := "/accounts/" + account.ID.String(); opened.header.Get("Location") != want {
			t.Errorf("Location %q, want %q", opened.header.Get("Location"), want)
		}
		if got := answered[accountJSON](t, e.call(t, "GET", opened.header.Get("Location"), ""), http.StatusOK); got != account {
			t.Errorf("read %+v, opened %+v", got, account)
		}
	})
	t.Run("without money there are no entries", func(t *testing.T) {
		account := answered[accountJSON](t, e.call(t, "POST", "/accounts", `{"owner": "Bob", "currency": "EUR", "openingBalanceMinor": 0}`), http.StatusCreated)
		entries := e.call(t, "GET", "/accounts/"+account.ID.String()+"/entries", "")
		if got := string(entries.body); strings.TrimSpace(got) != `{"items":[],"next":null}` {
			t.Errorf("statement %s", got)
		}
	})
	t.Run("as much as there can be", func(t *testing.T) {
		account := answered[accountJSON](t, e.call(t, "POST", "/accounts", `{"owner": "`+strings.Repeat("ß", 200)+`", "currency": "EUR", "openingBalanceMinor": 9223372036854775807}`), http.StatusCreated)
		if account.BalanceMinor != 9223372036854775807 {
			t.Errorf("balance %d", account.BalanceMinor)
		}
	})
	t.Run("an id of the caller makes it repeatable", func(t *testing.T) {
		id := uuid.New()
		body := func(id string, rest string) string {
			return fmt.Sprintf(`{"id": %q, %s}`, id, rest)
		}
		const same = `"owner": "Ada", "currency": "EUR", "openingBalanceMinor": 2500`
		first := answered[accountJSON](t, e.call(t, "POST", "/accounts", body(strings.ToUpper(id.String()), same)), http.StatusCreated)
		if first.ID != id {
			t.Errorf("id %s, want %s", first.ID, id)
		}
		answered[accountJSON](t, e.call(t, "POST", "/accounts/"+id.String()+"/freeze", ""), http.StatusOK)
		again := e.call(t, "POST", "/accounts", body(id.String(), `"openingBalanceMinor": 2500, "currency": "EUR", "owner": "Ada", "unknown": 1`))
		if got := answered[accountJSON](t, again, http.StatusOK); got.Status != ledger.Frozen || got.CreatedAt != first.CreatedAt {
			t.Errorf("repeated: %+v", got)
		}
		for _, other := range []string{
			`"owner": "Eve", "currency": "EUR", "openingBalanceMinor": 2500`,
			`"owner": "Ada", "currency": "USD", "openingBalanceMinor": 2500`,
			`"owner": "Ada", "currency": "EUR", "openingBalanceMinor": 2501`,
		} {
			answered[service.Problem](t, e.call(t, "POST", "/accounts", body(id.String(), other)), http.StatusConflict)
		}
		entries := answered[listJSON[entryJSON]](t, e.call(t, "GET", "/accounts/"+id.String()+"/entries", ""), http.StatusOK)
		if len(entries.Items) != 1 || entries.Items[0].Kind != ledger.Opening || entries.Items[0].AmountMinor != 2500 || entries.Items[0].TransferID.Valid {
			t.Errorf("statement %+v", entries)
		}
	})
	expectInvariants(t, e.pool)
}

func TestOpenAccountRefusesBadBodies(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	const rest = `"currency": "EUR", "openingBalanceMinor": 1`
	for name, c := range map[string]struct{ body, field string }{
		"nothing":              {"", ""},
		"no JSON":              {"owner=Ada", ""},
		"no object":            {`["Ada"]`, ""},
		"null":                 {"null", ""},
		"trailing data":        {`{"owner": "Ada", ` + rest + `} {}`, ""},
		"cut off":              {`{"owner": "Ada", `, ""},
		"no owner":             {`{` + rest + `}`, "owner"},
		"empty owner":          {`{"owner": "", ` + rest + `}`, "owner"},
		"owner too long":       {`{"owner": "` + strings.Repeat("x", 201) + `", ` + rest + `}`, "owner"},
		"owner with NUL":       {`{"owner": "A\u0000", ` + rest + `}`, "owner"},
		"owner is a number":    {`{"owner": 5, ` + rest + `}`, "owner"},
		"owner is null":        {`{"owner": null, ` + rest + `}`, "owner"},
		"owner twice":          {`{"owner": "Ada", "owner": "Ada", ` + rest + `}`, "owner"},
		"other letter case":    {`{"Owner": "Ada", ` + rest + `}`, "owner"},
		"half a character":     {`{"owner": "\ud800", ` + rest + `}`, ""},
		"id is no UUID":        {`{"id": "abc", "owner": "Ada", ` + rest + `}`, "id"},
		"id without hyphens":   {`{"id": "00112233445566778899aabbccddeeff", "owner": "Ada", ` + rest + `}`, "id"},
		"id is null":           {`{"id": null, "owner": "Ada", ` + rest + `}`, "id"},
		"no currency":          {`{"owner": "Ada", "openingBalanceMinor": 1}`, "currency"},
		"small currency":       {`{"owner": "Ada", "currency": "eur", "openingBalanceMinor": 1}`, "currency"},
		"long currency":        {`{"owner": "Ada", "currency": "EURO", "openingBalanceMinor": 1}`, "currency"},
		"no amount":            {`{"owner": "Ada", "currency": "EUR"}`, "openingBalanceMinor"},
		"negative amount":      {amountOf("-1"), "openingBalanceMinor"},
		"negative zero":        {amountOf("-0"), "openingBalanceMinor"},
		"amount with a point":  {amountOf("1.0"), "openingBalanceMinor"},
		"amount with exponent": {amountOf("1e3"), "openingBalanceMinor"},
		"amount as text":       {amountOf(`"1"`), "openingBalanceMinor"},
		"amount is null":       {amountOf("null"), "openingBalanceMinor"},
		"amount too large":     {amountOf("9223372036854775808"), "openingBalanceMinor"},
		"amount much too long": {amountOf(strings.Repeat("9", 100)), "openingBalanceMinor"},
	} {
		t.Run(name, func(t *testing.T) {
			p := answered[service.Problem](t, e.call(t, "POST", "/accounts", c.body), http.StatusBadRequest)
			if c.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != c.field || p.Errors[0].Message == "") {
				t.Errorf("errors %+v, want one about %s", p.Errors, c.field)
			}
		})
	}
	t.Run("everything wrong is said at once", func(t *testing.T) {
		p := answered[service.Problem](t, e.call(t, "POST", "/accounts", `{"id": "x"}`), http.StatusBadRequest)
		if len(p.Errors) != 4 {
			t.Errorf("errors %+v, want 4", p.Errors)
		}
	})
	t.Run("too large", func(t *testing.T) {
		answered[service.Problem](t, e.call(t, "POST", "/accounts", `{"owner": "`+strings.Repeat("x", 1<<20)+`"}`), http.StatusRequestEntityTooLarge)
	})
	if got := answered[listJSON[accountJSON]](t, e.call(t, "GET", "/accounts", ""), http.StatusOK); len(got.Items) != 0 {
		t.Errorf("opened nevertheless: %+v", got.Items)
	}
}

func amountOf(text string) string {
	return `{"owner": "Ada", "currency": "EUR", "openingBalanceMinor": ` + text + `}`
}

func TestNothingThere(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	for _, id := range []string{uuid.NewString(), "not-a-real-id", "00112233445566778899aabbccddeeff", "%00"} {
		for _, call := range []string{"GET /accounts/ID", "GET /accounts/ID/entries", "POST /accounts/ID/freeze", "POST /accounts/ID/unfreeze", "POST /accounts/ID/close", "GET /legs/ID"} {
			t.Run(call+" "+id, func(t *testing.T) {
				method, path, _ := strings.Cut(strings.ReplaceAll(call, "ID", id), " ")
				answered[service.Problem](t, e.call(t, method, path, ""), http.StatusNotFound)
			})
		}
	}

	answered[service.Problem](t, e.call(t, "GET", "/nothing", ""), http.StatusNotFound)
	wrongMethod := e.call(t, "DELETE", "/accounts/"+uuid.NewString(), "")
	answered[service.Problem](t, wrongMethod, http.StatusMethodNotAllowed)
	if allow := wrongMethod.header.Get("Allow"); !strings.Contains(allow, "GET") {
		t.Errorf("Allow %q", allow)
	}
}

func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	proxy := testenv.NewProxy(t, url)
	b := bankAt(t, proxy.URL(url))
	e := &edge{bank: b, url: serve(t, b.store), client: &http.Client{Transport: openapitest.New(t, openAPI, nil)}}
	id := b.open(t, "EUR", 1).String()

	proxy.Refuse()
	proxy.Cut()
	for _, call := range []string{
		"GET /accounts", "GET /accounts/" + id, "GET /accounts/" + id + "/entries", "POST /accounts/" + id + "/freeze",
		"GET /ledger", "GET /legs/" + id, "GET /legs/" + id + "/life", "POST /accounts",
	} {
		method, path, _ := strings.Cut(call, " ")
		body := ""
		if call == "POST /accounts" {
			body = amountOf("1")
		}
		a := e.call(t, method, path, body)
		answered[service.Problem](t, a, http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", call)
		}
	}
	proxy.Accept()
	answered[accountJSON](t, e.call(t, "GET", "/accounts/"+id, ""), http.StatusOK)
}
