package contract_test

import (
	"testing"

	"example.com/banking/pkg/contract"
	"github.com/google/uuid"
)

func TestWhatIsSaidAgainHasTheSameID(t *testing.T) {
	t.Parallel()
	transfer := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	first := contract.Say(transfer, contract.AccountDebited, contract.Data{})
	if again := contract.Say(transfer, contract.AccountDebited, contract.Data{}); again != first {
		t.Errorf("%+v and %+v", first, again)
	}
	if first.ID.Version() != 5 || first.Data.TransferID.Value != transfer.String() {
		t.Errorf("%+v", first)
	}
	if other := contract.Say(transfer, contract.AccountCredited, contract.Data{}); other.ID == first.ID {
		t.Error("two types share an id")
	}
	if other := contract.Say(uuid.New(), contract.AccountDebited, contract.Data{}); other.ID == first.ID {
		t.Error("two transfers share an id")
	}
}
