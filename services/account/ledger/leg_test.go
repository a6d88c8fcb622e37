package ledger_test

import (
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

func TestATransferIsDebitedCreditedAndNeverTwice(t *testing.T) {
	t.Parallel()
	source, _ := ledger.OpenAccount(uuid.New(), "Ada", "EUR", 100)
	destination, _ := ledger.OpenAccount(uuid.New(), "Bob", "EUR", 0)
	r := contract.Request{TransferID: uuid.New(), Source: source.ID, Destination: destination.ID, Money: contract.Money{Minor: 30, Currency: "EUR"}}
	var leg ledger.Leg
	for range 3 {
		outcome, err := leg.Handle(ledger.Requested, r, &source)
		if err != nil || outcome.Message.Type != contract.AccountDebited {
			t.Fatalf("debit: %+v, %v", outcome, err)
		}
	}
	for range 3 {
		outcome, err := leg.Handle(ledger.CreditRequested, r, &destination)
		if err != nil || outcome.Message.Type != contract.AccountCredited {
			t.Fatalf("credit: %+v, %v", outcome, err)
		}
	}
	if source.Balance != 70 || destination.Balance != 30 {
		t.Errorf("balances %d and %d, want 70 and 30", source.Balance, destination.Balance)
	}
}
