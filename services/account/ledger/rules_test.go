package ledger_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

func TestWhyMoneyIsRefused(t *testing.T) {
	t.Parallel()
	dollars := func(a *ledger.Account) { a.Currency = "USD" }
	frozen := func(a *ledger.Account) { a.Status = ledger.Frozen }
	closed := func(a *ledger.Account) { a.Status = ledger.Closed }
	poor := func(a *ledger.Account) { a.Balance = 29 }
	full := func(a *ledger.Account) { a.Balance = math.MaxInt64 - 29 }
	awaiting := func(a *ledger.Account) { a.Balance, a.MayReturn = 1, math.MaxInt64-30 }
	tests := []struct {
		name   string
		kind   ledger.Kind
		with   []func(*ledger.Account) // nil: there is no account
		reason string
	}{
		{"debit, no account", ledger.Requested, nil, contract.AccountNotFound},
		{"debit, frozen before the wrong currency", ledger.Requested, []func(*ledger.Account){frozen, dollars, poor}, contract.AccountFrozen},
		{"debit, closed before the wrong currency", ledger.Requested, []func(*ledger.Account){closed, dollars, poor}, contract.AccountClosed},
		{"debit, the wrong currency before the funds", ledger.Requested, []func(*ledger.Account){dollars, poor}, contract.CurrencyMismatch},
		{"debit, one cent short", ledger.Requested, []func(*ledger.Account){poor}, contract.InsufficientFunds},
		{"credit, no account", ledger.CreditRequested, nil, contract.AccountNotFound},
		{"credit, frozen before the wrong currency", ledger.CreditRequested, []func(*ledger.Account){frozen, dollars, full}, contract.AccountFrozen},
		{"credit, closed before the wrong currency", ledger.CreditRequested, []func(*ledger.Account){closed, dollars, full}, contract.AccountClosed},
		{"credit, the wrong currency before the limit", ledger.CreditRequested, []func(*ledger.Account){dollars, full}, contract.CurrencyMismatch},
		{"credit, one cent too much", ledger.CreditRequested, []func(*ledger.Account){full}, contract.LimitExceeded},
		{"credit, one cent too much with what may return", ledger.CreditRequested, []func(*ledger.Account){awaiting}, contract.LimitExceeded},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b, want := newBank(100, 0), contract.AccountDebitRejected
			account := &b.source
			if test.kind == ledger.CreditRequested {
				b, want = in(t, ledger.Debited), contract.AccountCreditRejected
				account = &b.destination
			}
			for _, change := range test.with {
				change(account)
			}
			if test.with == nil {
				account = nil
			}
			outcome, err := b.leg.Handle(test.kind, request(30), account)
			if err != nil || outcome.Message.Type != want || !outcome.Changed || outcome.Entries != nil {
				t.Fatalf("%+v, %v", outcome, err)
			}
			if outcome.Message.Data.Reason != contract.Some(test.reason) || b.leg.Reason != test.reason {
				t.Errorf("reason %q, stored %q, want %q", outcome.Message.Data.Reason.Value, b.leg.Reason, test.reason)
			}
		})
	}
}

func TestTheLastCentAndTheLimitAreAllowed(t *testing.T) {
	t.Parallel()
	b := newBank(math.MaxInt64, 0)
	for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested} {
		if _, err := b.handle(kind, request(math.MaxInt64)); err != nil {
			t.Fatal(err)
		}
	}
	if b.leg.State != ledger.Credited || b.source.Balance != 0 || b.destination.Balance != math.MaxInt64 {
		t.Errorf("leg %s, balances %d and %d", b.leg.State, b.source.Balance, b.destination.Balance)
	}
}

func TestARefundAlwaysPosts(t *testing.T) {
	t.Parallel()
	for _, state := range []ledger.State{ledger.Debited, ledger.CreditRejected} {
		for _, status := range []ledger.Status{ledger.Open, ledger.Frozen, ledger.Closed} {
			b := in(t, state)
			b.source.Status = status
			outcome, err := b.handle(ledger.RefundRequested, request(30))
			if err != nil || outcome.Message.Type != contract.AccountRefunded || b.source.Balance != 100 || b.source.MayReturn != 0 {
				t.Errorf("from %s to an account that is %s: %+v, %v", state, status, outcome, err)
			}
		}
	}
}

// TestARefundFindsRoom fills up an account while its money is on the way, as far as credits go.
func TestARefundFindsRoom(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7)) // the same runs each time: what is tested is arithmetic at the limit
	for range 2000 {
		payer, _ := ledger.OpenAccount(sourceID, "", "EUR", math.MaxInt64-random.Int64N(3))
		other := uuid.New()
		type flight struct {
			leg ledger.Leg
			r   contract.Request
		}
		var flights []flight
		for range 10 {
			minor := 1 + random.Int64N(math.MaxInt64)
			if random.IntN(2) == 0 && minor <= payer.Balance {
				r := contract.Request{TransferID: uuid.New(), Source: payer.ID, Destination: other, Money: euros(minor)}
				var leg ledger.Leg
				if _, err := leg.Handle(ledger.Requested, r, &payer); err != nil {
					t.Fatal(err)
				}
				flights = append(flights, flight{leg, r})
			} else {
				r := contract.Request{TransferID: uuid.New(), Source: other, Destination: payer.ID, Money: euros(1 + random.Int64N(5))}
				leg := ledger.Leg{Transfer: r.TransferID, Source: other, Destination: payer.ID, Money: r.Money, State: ledger.Debited}
				if _, err := leg.Handle(ledger.CreditRequested, r, &payer); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, f := range flights {
			if _, err := f.leg.Handle(ledger.RefundRequested, f.r, &payer); err != nil {
				t.Fatal(err)
			}
		}
		if payer.MayReturn != 0 {
			t.Fatalf("everything has returned, and %d may still", payer.MayReturn)
		}
	}
}

func TestBrokenPromisesAreInvariantsAndChangeNothing(t *testing.T) {
	t.Parallel()
	noRoom := func(b *bank) *ledger.Account {
		b.source.Balance, b.source.MayReturn = math.MaxInt64-29, 0
		return &b.source
	}
	otherCurrency := func(b *bank) *ledger.Account {
		b.source.Currency = "USD"
		return &b.source
	}
	gone := func(*bank) *ledger.Account { return nil }
	for name, broken := range map[string]func(*bank) *ledger.Account{"no room": noRoom, "other currency": otherCurrency, "account gone": gone} {
		b := in(t, ledger.Debited)
		account := broken(b)
		leg, source := b.leg, b.source
		if _, err := b.leg.Handle(ledger.RefundRequested, request(30), account); class(err) != retry.Invariant {
			t.Errorf("%s: %v", name, err)
		}
		if b.leg != leg || b.source != source {
			t.Errorf("%s: something changed", name)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	b := newBank(100, 0)
	if _, err := b.leg.Handle(ledger.Requested, request(30), &b.destination); class(err) != retry.Unknown {
		t.Errorf("the wrong account: %v", err)
	}
	if _, err := b.leg.Handle("Transfers.Transfer.Completed", request(30), &b.source); class(err) != retry.Validation {
		t.Errorf("no request: %v", err)
	}
}

func TestAnswersCarryWhatTheContractLists(t *testing.T) {
	t.Parallel()
	money := contract.Data{TransferID: contract.Some(transferID.String()), AmountMinor: 30, Currency: contract.Some("EUR")}
	refusal := func(account uuid.UUID, reason string) contract.Data {
		return contract.Data{TransferID: money.TransferID, AccountID: contract.Some(account.String()), Reason: contract.Some(reason)}
	}
	of := func(account uuid.UUID) contract.Data {
		data := money
		data.AccountID = contract.Some(account.String())
		return data
	}
	for _, test := range []struct {
		state ledger.State
		kind  ledger.Kind
		want  contract.Message
	}{
		{ledger.Debited, ledger.Requested, contract.Say(transferID, contract.AccountDebited, of(sourceID))},
		{ledger.DebitRejected, ledger.Requested, contract.Say(transferID, contract.AccountDebitRejected, refusal(sourceID, contract.Cancelled))},
		{ledger.Credited, ledger.CreditRequested, contract.Say(transferID, contract.AccountCredited, of(destinationID))},
		{ledger.CreditRejected, ledger.CreditRequested, contract.Say(transferID, contract.AccountCreditRejected, refusal(destinationID, contract.AccountFrozen))},
		{ledger.Refunded, ledger.RefundRequested, contract.Say(transferID, contract.AccountRefunded, of(sourceID))},
	} {
		outcome, err := in(t, test.state).handle(test.kind, request(30))
		if err != nil || outcome.Message != test.want {
			t.Errorf("%s: %+v, %v, want %+v", test.state, outcome.Message, err, test.want)
		}
	}
}

func TestOpeningBalanceComesFromFunding(t *testing.T) {
	t.Parallel()
	account, entries := ledger.OpenAccount(sourceID, "Ada", "EUR", 500)
	if account.Balance != 500 || account.Status != ledger.Open || len(entries) != 2 {
		t.Fatalf("%+v, %+v", account, entries)
	}
	if e := entries[0]; e.Book != ledger.Customer || e.Account != sourceID || e.Money != euros(500) || e.Movement != ledger.Opening {
		t.Errorf("the customer's entry is %+v", e)
	}
	if e := entries[1]; e.Book != ledger.Funding || e.Account != (uuid.UUID{}) || e.Money != euros(-500) {
		t.Errorf("the funding entry is %+v", e)
	}
	if _, entries := ledger.OpenAccount(sourceID, "Ada", "EUR", 0); entries != nil {
		t.Errorf("an empty account has entries: %+v", entries)
	}
}

func TestFreezeUnfreezeClose(t *testing.T) {
	t.Parallel()
	a, _ := ledger.OpenAccount(sourceID, "Ada", "EUR", 1)
	for _, test := range []struct {
		what   string
		do     func() error
		err    error
		status ledger.Status
	}{
		{"freeze", a.Freeze, nil, ledger.Frozen},
		{"freeze again", a.Freeze, nil, ledger.Frozen},
		{"unfreeze", a.Unfreeze, nil, ledger.Open},
		{"unfreeze again", a.Unfreeze, nil, ledger.Open},
		{"close with a cent on it", a.Close, ledger.ErrNotEmpty, ledger.Open},
		{"close", func() error { a.Balance = 0; return a.Close() }, nil, ledger.Closed},
		{"close again, after a refund", func() error { a.Balance = 1; return a.Close() }, nil, ledger.Closed},
		{"freeze a closed one", a.Freeze, ledger.ErrClosed, ledger.Closed},
		{"unfreeze a closed one", a.Unfreeze, ledger.ErrClosed, ledger.Closed},
	} {
		if err := test.do(); !errors.Is(err, test.err) || a.Status != test.status {
			t.Errorf("%s: %v and %s, want %v and %s", test.what, err, a.Status, test.err, test.status)
		}
	}
}
