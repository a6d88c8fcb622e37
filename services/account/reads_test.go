package main

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

// pages reads a list to its end, limit by limit, and calls between after each page.
func pages[T any](t *testing.T, e *edge, path string, limit int, between func()) (all []T) {
	t.Helper()
	query := fmt.Sprintf("?limit=%d", limit)
	for range 100 {
		page := answered[listJSON[T]](t, e.call(t, "GET", path+query, ""), http.StatusOK)
		all = append(all, page.Items...)
		if len(page.Items) > limit {
			t.Fatalf("page of %d, limit %d", len(page.Items), limit)
		}
		if page.Next == nil {
			return all
		}
		query = fmt.Sprintf("?limit=%d&after=%s", limit, url.QueryEscape(*page.Next))
		between()
	}
	t.Fatal("the list has no end")
	return nil
}

func TestAccountPages(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	var want []uuid.UUID
	for range 7 {
		want = append([]uuid.UUID{e.open(t, "EUR", 1)}, want...)
	}
	// Accounts that are opened meanwhile come before the first page and must not shift the others.
	got := pages[accountJSON](t, e, "/accounts", 3, func() { e.open(t, "EUR", 1) })
	if len(got) != len(want) {
		t.Fatalf("%d accounts, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].ID != want[i] {
			t.Errorf("account %d is %s, want %s: newest first", i, got[i].ID, want[i])
		}
	}
	if got := answered[listJSON[accountJSON]](t, e.call(t, "GET", "/accounts?limit=200", ""), http.StatusOK); len(got.Items) != 9 || got.Next != nil {
		t.Errorf("%d accounts on one page, next %v", len(got.Items), got.Next)
	}
}

func TestStatement(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	from, to := e.open(t, "EUR", 100), e.open(t, "EUR", 0)
	credited, refunded := newTransfer(from, to, 30), newTransfer(from, to, 20)
	e.ask(t, ledger.Requested, credited)
	e.ask(t, ledger.CreditRequested, credited)
	e.ask(t, ledger.Requested, refunded)
	e.ask(t, ledger.RefundRequested, refunded)

	expect := func(account uuid.UUID, want ...string) {
		t.Helper()
		path := "/accounts/" + strings.ToUpper(account.String()) + "/entries"
		entries := pages[entryJSON](t, e, path, 2, func() {})
		var got []string
		for i, entry := range entries {
			got = append(got, fmt.Sprintf("%s %d", entry.Kind, entry.AmountMinor))
			if entry.TransferID.Valid == (entry.Kind == ledger.Opening) {
				t.Errorf("%s has transfer %v", entry.Kind, entry.TransferID)
			}
			if i > 0 && entry.PostedAt.After(entries[i-1].PostedAt) {
				t.Errorf("entry %d was posted after the one before it, newest come first", i)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("statement %q, want %q", got, want)
		}
	}
	expect(from, "REFUND 20", "DEBIT -20", "DEBIT -30", "OPENING 100")
	expect(to, "CREDIT 30")
}

func TestMalformedQueries(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	account := e.open(t, "EUR", 1)

	for _, path := range []string{"/accounts", "/accounts/" + account.String() + "/entries"} {
		for _, query := range []string{"limit=0", "limit=201", "limit=-1", "limit=ten", "limit=", "limit=1.5", "after=x", "after=" + account.String()} {
			answered[service.Problem](t, e.call(t, "GET", path+"?"+query, ""), http.StatusBadRequest)
		}
	}
}

func TestFreezeUnfreezeClose(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	account := e.open(t, "EUR", 30)
	step := func(verb string, status int, want ledger.Status) {
		t.Helper()
		a := e.call(t, "POST", "/accounts/"+account.String()+"/"+verb, "")
		if status == http.StatusOK {
			if got := answered[accountJSON](t, a, status); got.Status != want {
				t.Errorf("%s: answered %s, want %s", verb, got.Status, want)
			}
		} else {
			answered[service.Problem](t, a, status)
		}
		if got, err := e.account(t.Context(), account); err != nil || got.Status != want {
			t.Errorf("%s: stored %s (%v), want %s", verb, got.Status, err, want)
		}
	}
	step("unfreeze", http.StatusOK, ledger.Open)
	step("freeze", http.StatusOK, ledger.Frozen)
	step("freeze", http.StatusOK, ledger.Frozen)
	step("close", http.StatusConflict, ledger.Frozen) // it holds money
	step("unfreeze", http.StatusOK, ledger.Open)
	e.ask(t, ledger.Requested, newTransfer(account, e.open(t, "EUR", 0), 30))
	step("close", http.StatusOK, ledger.Closed) // although the debit is in flight
	step("close", http.StatusOK, ledger.Closed)
	step("freeze", http.StatusConflict, ledger.Closed)
	step("unfreeze", http.StatusConflict, ledger.Closed)
}

func TestLedger(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	expect := func(want string) {
		t.Helper()
		if got := strings.TrimSpace(string(e.call(t, "GET", "/ledger", "").body)); got != want {
			t.Errorf("ledger %s, want %s", got, want)
		}
	}
	expect(`{"ok":true,"currencies":[]}`)

	// Three full accounts: their sum is beyond 64 bits, and has to be exact all the same.
	from, to := e.open(t, "EUR", math.MaxInt64), e.open(t, "EUR", 0)
	e.open(t, "EUR", math.MaxInt64)
	e.open(t, "EUR", math.MaxInt64)
	e.open(t, "USD", 5)
	e.open(t, "ABC", 0)
	const others = `{"currency":"ABC","customersMinor":0,"inTransitMinor":0,"fundingMinor":0,"sumMinor":0},`
	const dollars = `,{"currency":"USD","customersMinor":5,"inTransitMinor":0,"fundingMinor":-5,"sumMinor":0}]}`
	euros := func(customers, inTransit string) string {
		return `{"ok":true,"currencies":[` + others + `{"currency":"EUR","customersMinor":` + customers + `,"inTransitMinor":` + inTransit +
			`,"fundingMinor":-27670116110564327421,"sumMinor":0}` + dollars
	}
	expect(euros("27670116110564327421", "0"))
	tr := newTransfer(from, to, 421)
	e.ask(t, ledger.Requested, tr)
	expect(euros("27670116110564327000", "421"))
	e.ask(t, ledger.CreditRequested, tr)
	expect(euros("27670116110564327421", "0"))

	// Money from nowhere does not go unnoticed.
	if _, err := e.pool.Exec(t.Context(), `update accounts set balance_minor = balance_minor + 1 where id = $1`, to); err != nil {
		t.Fatal(err)
	}
	if got := answered[ledgerJSON](t, e.call(t, "GET", "/ledger", ""), http.StatusOK); got.OK || got.Currencies[1].SumMinor.Int64() != 1 {
		t.Errorf("ledger %+v, want it broken by 1", got)
	}
}

func TestLeg(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	from, to := e.open(t, "EUR", 100), e.open(t, "EUR", 0)
	debited, refused := newTransfer(from, to, 30), newTransfer(from, to, 300)
	e.ask(t, ledger.Requested, debited)
	e.ask(t, ledger.Requested, refused)

	got := answered[legJSON](t, e.call(t, "GET", "/legs/"+strings.ToUpper(debited.id.String()), ""), http.StatusOK)
	if got.TransferID != debited.id || got.State != ledger.Debited || got.Reason != "" || got.SourceAccountID != from ||
		got.DestinationAccountID != to || got.AmountMinor != 30 || got.Currency != "EUR" || got.UpdatedAt.IsZero() {
		t.Errorf("leg %+v", got)
	}
	got = answered[legJSON](t, e.call(t, "GET", "/legs/"+refused.id.String(), ""), http.StatusOK)
	if got.State != ledger.DebitRejected || got.Reason != contract.InsufficientFunds {
		t.Errorf("leg %+v", got)
	}
}
