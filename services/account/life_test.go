package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/life"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

// lifeLines are the events of an answer, skimmed: kind, type, what became of it.
func lifeLines(l life.Life) (lines []string) {
	for _, e := range l.Events {
		var words []string
		for _, text := range []string{string(e.Kind), strings.TrimPrefix(strings.TrimPrefix(e.Type, "Transfers.Transfer."), "Accounts.Account."), e.Class, e.Reason, e.By} {
			if text != "" {
				words = append(words, text)
			}
		}
		if e.Kind == life.Posted {
			words = append(words, fmt.Sprint(e.AmountMinor))
		}
		if e.Kind == life.Fact {
			words = append(words, e.Detail)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// A life without a broker: requests are handled by the service's own handlers, and what is said stays in the outbox.
func TestLifeOfLegs(t *testing.T) {
	t.Parallel()
	e := newEdge(t)
	lifeOf := func(id uuid.UUID) []string {
		t.Helper()
		l := answered[life.Life](t, e.call(t, "GET", "/legs/"+strings.ToUpper(id.String())+"/life", ""), http.StatusOK)
		if l.TransferID != id || l.Service != "account" || l.Events == nil {
			t.Errorf("the life of %s is %+v", id, l)
		}
		if !slices.IsSortedFunc(l.Events, func(a, b life.Event) int { return a.At.Compare(b.At) }) {
			t.Errorf("not oldest first: %+v", l.Events)
		}
		return lifeLines(l)
	}
	expect := func(id uuid.UUID, want ...string) {
		t.Helper()
		if got := lifeOf(id); !slices.Equal(got, want) {
			t.Errorf("the life is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	expect(uuid.New())

	from, to := e.open(t, "EUR", 100), e.open(t, "EUR", 0)
	refused, returned := newTransfer(from, to, 300), newTransfer(from, to, 30)
	e.ask(t, ledger.Requested, refused)
	expect(refused.id, "FACT INSUFFICIENT_FUNDS DEBIT_REJECTED", "WAITING DebitRejected")

	// As transfer says it, under the ids that follow from the transfer.
	say := func(kind ledger.Kind, tr transfer) {
		t.Helper()
		m := tr.message(t, kind)
		m.MessageID = life.MessageID(tr.id, string(kind))
		e.handle(t, kind, m)
	}
	say(ledger.Requested, returned)
	expect(returned.id, "HANDLED Requested", "POSTED -30", "FACT DEBITED", "WAITING Debited")
	if _, err := e.pool.Exec(t.Context(), `update accounts set status = 'FROZEN' where id = $1`, to); err != nil {
		t.Fatal(err)
	}
	say(ledger.CreditRequested, returned)
	say(ledger.RefundRequested, returned)
	if _, err := e.pool.Exec(t.Context(), `delete from outbox`); err != nil { // all has been sent
		t.Fatal(err)
	}
	expect(returned.id, "HANDLED Requested", "POSTED -30", "SENT Debited", "HANDLED CreditRequested", "SENT CreditRejected",
		"HANDLED RefundRequested", "POSTED 30", "FACT ACCOUNT_FROZEN REFUNDED", "SENT Refunded")
}

// Over a broker: a credit that came before its debit shows its attempts and then its effect, and a request that contradicts the
// transfer its parking, its replay and its return.
func TestLifeShowsFailures(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	url := env.Database(t, "account")
	b := bankAt(t, url)
	i := startReady(t, env, url, "ADMIN_TOKEN=secret", "RETRY_INTERVALS="+strings.TrimSuffix(strings.Repeat("200ms,", 99), ","))
	w := newWire(t, env)
	tr := newTransfer(b.open(t, "EUR", 100), b.open(t, "EUR", 0), 30)
	lifeNow := func() life.Life {
		t.Helper()
		return answered[life.Life](t, i.get(t, "/legs/"+tr.id.String()+"/life"), http.StatusOK)
	}
	count := func(kind life.Kind) (n int) {
		t.Helper()
		for _, e := range lifeNow().Events {
			if e.Kind == kind {
				n++
			}
		}
		return n
	}

	w.request(t, ledger.CreditRequested, tr, 1)
	await(t, "a failed attempt", func() bool { return count(life.Failed) > 0 })
	w.request(t, ledger.Requested, tr, 1)
	await(t, "the credit", func() bool { return count(life.Posted) == 2 })

	contradiction := tr
	contradiction.amount++
	id := w.request(t, ledger.CreditRequested, contradiction, 1)
	errorQueue := contract.ErrorQueue(contract.CreditRequestedQueue)
	parked := func(times int) {
		t.Helper()
		await(t, "the message in quarantine", func() bool {
			ready, _ := env.QueueDepth(t, errorQueue)
			return ready == 1 && count(life.Parked) == times
		})
	}
	parked(1)
	answered[map[string]any](t, i.admin(t, http.MethodPost, "/admin/quarantine/replay", fmt.Sprintf(`{"ids":[%q],"confirm":true}`, id)), http.StatusOK)
	parked(2)
	b.awaitSent(t)

	whole := lifeNow()
	first := whole.Events[0]
	if first.Kind != life.Failed || first.Class != "NOT_FOUND" || first.Attempt != 1 || first.NextDelayMs == nil || *first.NextDelayMs != 200 ||
		first.Queue != contract.CreditRequestedQueue || first.Type != contract.TransferCreditRequested || first.Detail == "" {
		t.Errorf("it begins with %+v", first)
	}
	got := slices.DeleteFunc(lifeLines(whole), func(line string) bool { return strings.Contains(line, "NOT_FOUND") }) // as many as there was time for
	want := []string{
		"POSTED -30", "SENT Debited", "HANDLED CreditRequested", "POSTED 30", "FACT CREDITED", "SENT Credited",
		"FAILED CreditRequested INVARIANT", "PARKED CreditRequested INVARIANT INVARIANT", "REPLAYED CreditRequested unknown",
		"FAILED CreditRequested INVARIANT", "PARKED CreditRequested INVARIANT INVARIANT",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the life is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
