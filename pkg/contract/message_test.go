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
	if first.ID.Version() != 8 || first.ID.Variant() != uuid.RFC4122 || first.Data.TransferID.Value != transfer.String() {
		t.Errorf("%+v", first)
	}
	if other := contract.Say(transfer, contract.AccountCredited, contract.Data{}); other.ID == first.ID {
		t.Error("two types share an id")
	}
	if other := contract.Say(uuid.New(), contract.AccountDebited, contract.Data{}); other.ID == first.ID {
		t.Error("two transfers share an id")
	}
}

// The inboxes' indexes rely on it: what belongs to one moment stands together.
func TestIDsOfMessagesBeginWithTheTimeOfTheirTransfer(t *testing.T) {
	t.Parallel()
	early := uuid.MustParse("018f3a00-0001-7fff-bfff-ffffffffffff")
	late := uuid.MustParse("018f3a00-0002-7000-8000-000000000000")
	for _, first := range []string{contract.TransferRequested, contract.AccountDebited, contract.TransferCompleted} {
		for _, second := range []string{contract.TransferRequested, contract.AccountDebited, contract.TransferCompleted} {
			a, b := contract.Say(early, first, contract.Data{}).ID.String(), contract.Say(late, second, contract.Data{}).ID.String()
			if a >= b {
				t.Errorf("%s of the earlier transfer has the id %s, %s of the later one %s", first, a, second, b)
			}
		}
	}
}
