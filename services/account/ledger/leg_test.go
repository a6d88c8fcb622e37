package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

var (
	transferID    = uuid.MustParse("00000000-0000-7000-8000-000000000001")
	sourceID      = uuid.MustParse("00000000-0000-7000-8000-00000000000a")
	destinationID = uuid.MustParse("00000000-0000-7000-8000-00000000000b")

	kinds  = []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested}
	states = []ledger.State{ledger.None, ledger.Debited, ledger.DebitRejected, ledger.Credited, ledger.CreditRejected, ledger.Refunded}
)

func euros(minor int64) contract.Money { return contract.Money{Minor: minor, Currency: "EUR"} }

func request(minor int64) contract.Request {
	return contract.Request{TransferID: transferID, Source: sourceID, Destination: destinationID, Money: euros(minor)}
}

// bank is one leg with its two accounts.
type bank struct {
	leg                 ledger.Leg
	source, destination ledger.Account
	entries             []ledger.Entry
}

func newBank(source, destination int64) *bank {
	b := &bank{}
	b.source, _ = ledger.OpenAccount(sourceID, "Ada", "EUR", source)
	b.destination, _ = ledger.OpenAccount(destinationID, "Bob", "EUR", destination)
	return b
}

func (b *bank) handle(kind ledger.Kind, r contract.Request) (ledger.Outcome, error) {
	account := &b.source
	if ledger.AccountOf(kind, r) == destinationID {
		account = &b.destination
	}
	outcome, err := b.leg.Handle(kind, r, account)
	b.entries = append(b.entries, outcome.Entries...)
	return outcome, err
}

// in is a bank whose leg, over 30 EUR, is in a state.
func in(t *testing.T, state ledger.State) *bank {
	t.Helper()
	b := newBank(100, 0)
	ways := map[ledger.State][]ledger.Kind{
		ledger.Debited:        {ledger.Requested},
		ledger.DebitRejected:  {ledger.RefundRequested},
		ledger.Credited:       {ledger.Requested, ledger.CreditRequested},
		ledger.CreditRejected: {ledger.Requested, ledger.CreditRequested},
		ledger.Refunded:       {ledger.Requested, ledger.RefundRequested},
	}
	if state == ledger.CreditRejected {
		b.destination.Status = ledger.Frozen
	}
	for _, kind := range ways[state] {
		if _, err := b.handle(kind, request(30)); err != nil {
			t.Fatal(err)
		}
	}
	if b.leg.State != state {
		t.Fatalf("the leg is %q, want %q", b.leg.State, state)
	}
	return b
}

func TestEveryRequestInEveryStateHasExactlyOneRow(t *testing.T) {
	t.Parallel()
	table := ledger.States()
	rows := 0
	for _, state := range states {
		for _, kind := range kinds {
			verdicts := []saga.Verdict{saga.Any}
			if table.Judged(state, kind) {
				verdicts = []saga.Verdict{saga.Allowed, saga.Refused}
			}
			for _, verdict := range verdicts {
				matching := 0
				for _, row := range table {
					if row.State == state && row.Request == kind && row.Verdict == verdict {
						matching++
					}
				}
				if matching != 1 {
					t.Errorf("%q × %s (%s) has %d rows", state, kind, verdict, matching)
				}
				rows += matching
			}
		}
	}
	if rows != len(table) {
		t.Errorf("the table has %d rows, %d of them can be reached", len(table), rows)
	}
}

// TestEverySequenceOfRequests tries all sequences of five steps, each a request while the accounts say yes, or while they say no.
func TestEverySequenceOfRequests(t *testing.T) {
	t.Parallel()
	const steps = 5
	total := 1
	for range steps {
		total *= 2 * len(kinds)
	}
	for sequence := range total {
		b := newBank(100, 0)
		said := map[uuid.UUID]contract.Message{}
		var trace []string
		for rest, step := sequence, 0; step < steps; step, rest = step+1, rest/(2*len(kinds)) {
			kind, status := kinds[rest%len(kinds)], ledger.Open
			if rest%(2*len(kinds)) >= len(kinds) {
				status = ledger.Frozen
			}
			b.source.Status, b.destination.Status = status, status
			trace = append(trace, fmt.Sprint(kind, " ", status))
			if err := b.step(kind, said); err != nil {
				t.Fatalf("%v: %v", trace, err)
			}
		}
	}
}

// step handles a request twice: the second copy must change nothing and be answered the same, also if the rules have changed
// their mind in between.
func (b *bank) step(kind ledger.Kind, said map[uuid.UUID]contract.Message) error {
	before := *b
	first, err := b.handle(kind, request(30))
	if err != nil {
		if class(err) != retry.NotFound || before.leg.State != ledger.None || kind != ledger.CreditRequested {
			return err
		}
		if b.leg != before.leg || b.source != before.source || b.destination != before.destination {
			return errors.New("a failed request changed something")
		}
		return nil
	}
	if known, again := said[first.Message.ID]; again && known != first.Message {
		return fmt.Errorf("the same messageId for %+v and %+v", known, first.Message)
	}
	said[first.Message.ID] = first.Message
	if first.Changed != (b.leg != before.leg) || !first.Changed && first.Entries != nil {
		return fmt.Errorf("outcome %+v, leg before %+v, after %+v", first, before.leg, b.leg)
	}
	if err := b.sound(); err != nil {
		return err
	}
	status := b.source.Status
	b.source.Status, b.destination.Status = ledger.Closed, ledger.Open
	after := *b
	second, err := b.handle(kind, request(30))
	if err != nil || second.Changed || second.Entries != nil || second.Message != first.Message {
		return fmt.Errorf("the second copy: %+v, %v; the first: %+v", second, err, first)
	}
	if b.leg != after.leg || b.source != after.source || b.destination != after.destination {
		return errors.New("the second copy changed something")
	}
	b.source.Status, b.destination.Status = status, status
	return nil
}

// sound checks the entries and the balances made from them.
func (b *bank) sound() error {
	var movements []ledger.Movement
	source, destination, transit := int64(100), int64(0), int64(0)
	for i, e := range b.entries {
		if i%2 == 0 {
			movements = append(movements, e.Movement)
			if other := b.entries[i+1]; e.Money.Minor+other.Money.Minor != 0 || e.Money.Currency != other.Money.Currency || e.Movement != other.Movement {
				return fmt.Errorf("%+v and %+v are no pair", e, other)
			}
		}
		switch {
		case e.Book == ledger.Transit:
			transit += e.Money.Minor
		case e.Account == sourceID:
			source += e.Money.Minor
		case e.Account == destinationID:
			destination += e.Money.Minor
		}
	}
	want := map[ledger.State][]ledger.Movement{
		ledger.Debited:        {ledger.Debit},
		ledger.CreditRejected: {ledger.Debit},
		ledger.Credited:       {ledger.Debit, ledger.Credit},
		ledger.Refunded:       {ledger.Debit, ledger.Refund},
	}
	if !slices.Equal(movements, want[b.leg.State]) {
		return fmt.Errorf("a leg in %s moved money by %v", b.leg.State, movements)
	}
	if b.source.Balance != source || b.destination.Balance != destination || source+destination+transit != 100 {
		return fmt.Errorf("balances %d and %d; entries say %d, %d, and %d in transit", b.source.Balance, b.destination.Balance, source, destination, transit)
	}
	return nil
}

func TestAContradictionIsAnInvariantAndChangesNothing(t *testing.T) {
	t.Parallel()
	contradictions := map[string]func(*contract.Request){
		"transfer":    func(r *contract.Request) { r.TransferID = uuid.New() },
		"amount":      func(r *contract.Request) { r.Money.Minor++ },
		"currency":    func(r *contract.Request) { r.Money.Currency = "USD" },
		"source":      func(r *contract.Request) { r.Source = uuid.New() },
		"destination": func(r *contract.Request) { r.Destination = uuid.New() },
	}
	for _, state := range states[1:] {
		for _, kind := range kinds {
			for what, contradict := range contradictions {
				b := in(t, state)
				before := *b
				r := request(30)
				contradict(&r)
				var account *ledger.Account // of an unknown id, unless it is one of ours
				switch ledger.AccountOf(kind, r) {
				case sourceID:
					account = &b.source
				case destinationID:
					account = &b.destination
				}
				_, err := b.leg.Handle(kind, r, account)
				if class(err) != retry.Invariant {
					t.Errorf("%s with another %s in %s: %v", kind, what, state, err)
				}
				if b.leg != before.leg || b.source != before.source || b.destination != before.destination {
					t.Errorf("%s with another %s in %s changed something", kind, what, state)
				}
			}
		}
	}
}

func class(err error) retry.Class {
	var classed *retry.Error
	if errors.As(err, &classed) {
		return classed.Class
	}
	return ""
}
