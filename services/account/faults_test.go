package main

import (
	"net/http"
	"strings"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
)

// Fault points are off unless FAULTS says otherwise. Whoever has no token does not even learn that.
func TestFaultsAreOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	i := startReady(t, env, env.Database(t, "account"), "ADMIN_TOKEN=secret")
	if a := i.admin(t, http.MethodPost, "/admin/faults", `{"point":"handler","action":"exit"}`); !strings.Contains(answered[service.Problem](t, a, http.StatusNotFound).Detail, "FAULTS=on") {
		t.Errorf("answer %s", a.body)
	}
	answered[service.Problem](t, i.get(t, "/admin/faults"), http.StatusUnauthorized)
}

// One failure on order is one retry, and then the request takes effect.
func TestOrderedFailureIsRetried(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	b := bankAt(t, url)
	i := startReady(t, env, url, "ADMIN_TOKEN=secret", "FAULTS=on", "RETRY_INTERVALS=100ms,5m")
	answered[map[string]any](t, i.admin(t, http.MethodPost, "/admin/faults", `{"point":"handler","action":"error","class":"TIMEOUT","count":1}`), http.StatusCreated)
	tr := newTransfer(b.open(t, "EUR", 100), b.open(t, "EUR", 0), 30)
	newWire(t, env).request(t, ledger.Requested, tr, 1)
	b.awaitLeg(t, tr)
	await(t, "the request to be acked", func() bool { return i.handled(t, ledger.Requested, "done") == 1 })
	if n := i.handled(t, ledger.Requested, "retried"); n != 1 {
		t.Errorf("retried %d times, want once", n)
	}
	b.expectBalance(t, tr.from, 70)
}

// admin makes a call with the token.
func (i *instance) admin(t *testing.T, method, path, body string) answer {
	t.Helper()
	authorized := &http.Client{Transport: bearer{i.client.Transport}, Timeout: patience}
	return call(t, authorized, method, i.url+path, body)
}

type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer secret")
	return b.next.RoundTrip(r)
}
