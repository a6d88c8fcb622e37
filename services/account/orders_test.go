package main

import (
	"fmt"
	"testing"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/account/ledger"
)

const copies = 3

// orders lists every order in which three requests can arrive, three copies of each: 9! / (3!·3!·3!) = 1680.
func orders() (all [][]ledger.Kind) {
	left := map[ledger.Kind]int{ledger.Requested: copies, ledger.CreditRequested: copies, ledger.RefundRequested: copies}
	var order []ledger.Kind
	var extend func()
	extend = func() {
		if len(order) == len(left)*copies {
			all = append(all, append([]ledger.Kind(nil), order...))
			return
		}
		for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested} {
			if left[kind] > 0 {
				left[kind]--
				order = append(order, kind)
				extend()
				order = order[:len(order)-1]
				left[kind]++
			}
		}
	}
	extend()
	return all
}

// journey is a transfer whose requests arrive in one of the orders.
type journey struct {
	transfer
	order    []ledger.Kind
	messages map[ledger.Kind]*messaging.Message
}

// expected plays a journey on the pure ledger: what counts is the order in which requests are first handled, and a credit before its
// debit is none.
func (j journey) expected(t *testing.T) (ledger.Leg, []string) {
	t.Helper()
	data := j.data()
	request, err := data.Request()
	if err != nil {
		t.Fatal(err)
	}
	from := ledger.Account{ID: j.from, Currency: "EUR", Status: ledger.Open, Balance: j.amount}
	to := ledger.Account{ID: j.to, Currency: "EUR", Status: ledger.Open}
	var leg ledger.Leg
	var says []string
	handled := map[ledger.Kind]bool{}
	for _, kind := range append(j.order, ledger.CreditRequested) { // the credit is retried in the end
		account := &from
		if kind == ledger.CreditRequested {
			account = &to
		}
		if handled[kind] {
			continue
		}
		outcome, err := leg.Handle(kind, request, account)
		if retry.ClassOf(err) == retry.NotFound {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		handled[kind] = true
		text := outcome.Message.Type
		if outcome.Message.Data.Reason.Present {
			text += " " + outcome.Message.Data.Reason.Value
		}
		says = append(says, text)
	}
	return leg, says
}

// Every request of a transfer three times, in every order: the same leg, the same entries and the same answers as the ledger gives when
// each comes once. All orders run side by side, so that a batch holds transfers in every state.
func TestEveryOrderOfRequests(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	var journeys []journey
	from, to := b.open(t, "EUR", 1_000_000), b.open(t, "EUR", 0)
	for _, order := range orders() {
		j := journey{newTransfer(from, to, 5), order, map[ledger.Kind]*messaging.Message{}}
		for kind := range queueOf {
			j.messages[kind] = j.message(t, kind)
		}
		journeys = append(journeys, j)
	}
	if len(journeys) != 1680 {
		t.Fatalf("%d orders, want 1680", len(journeys))
	}

	deliver := func(kind ledger.Kind, batch []*messaging.Message, mayBeEarly bool) {
		t.Helper()
		if len(batch) == 0 {
			return
		}
		results, err := b.handlers[kind](t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range results {
			if err != nil && (!mayBeEarly || retry.ClassOf(err) != retry.NotFound) {
				t.Fatalf("%s: %v", kind, err)
			}
		}
	}
	for step := range len(journeys[0].order) {
		for kind := range queueOf {
			var batch []*messaging.Message
			for _, j := range journeys {
				if j.order[step] == kind {
					batch = append(batch, j.messages[kind])
				}
			}
			deliver(kind, batch, kind == ledger.CreditRequested)
		}
	}
	var again []*messaging.Message
	for _, j := range journeys {
		again = append(again, j.messages[ledger.CreditRequested])
	}
	deliver(ledger.CreditRequested, again, false)

	says := map[string][]string{}
	for _, s := range b.outgoing(t) {
		text := s.Type
		if s.Data.Reason.Present {
			text += " " + s.Data.Reason.Value
		}
		says[s.Data.TransferID.Value] = append(says[s.Data.TransferID.Value], text)
	}
	ends := map[ledger.State]int{}
	for _, j := range journeys {
		want, wantSays := j.expected(t)
		got, _, err := b.leg(t.Context(), j.id)
		if err != nil {
			t.Fatal(err)
		}
		if got.State != want.State || got.Reason != want.Reason {
			t.Errorf("order %v ends as %s %s, want %s %s", j.order, got.State, got.Reason, want.State, want.Reason)
		}
		if fmt.Sprint(says[j.id.String()]) != fmt.Sprint(wantSays) {
			t.Errorf("order %v says %q, want %q", j.order, says[j.id.String()], wantSays)
		}
		ends[got.State]++
	}
	if ends[ledger.Credited] == 0 || ends[ledger.Refunded] == 0 || ends[ledger.DebitRejected] == 0 || len(ends) != 3 {
		t.Errorf("ends %v, want credited, refunded and cancelled ones", ends)
	}
	b.expectBalance(t, to, 5*int64(ends[ledger.Credited]))
	expectInvariants(t, b.pool)
}
