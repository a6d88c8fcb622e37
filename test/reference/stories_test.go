package reference

import (
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

// spoken is one message of a story, as it goes to the broker.
type spoken struct {
	contract.Message
	envelope messaging.Envelope
	body     []byte
}

// stories plays transfers with the real machines of both services, until every message type has been said, and returns all that was.
func stories(t *testing.T) []spoken {
	t.Helper()
	var said []spoken
	for i, story := range []struct {
		balance     int64
		destination ledger.Status
	}{
		{balance: 2500, destination: ledger.Open},
		{balance: 2499, destination: ledger.Open},
		{balance: 2500, destination: ledger.Frozen},
	} {
		said = append(said, play(t, byte(i+1), story.balance, story.destination)...)
	}
	return said
}

func play(t *testing.T, number byte, balance int64, destination ledger.Status) []spoken {
	t.Helper()
	id := func(last byte) uuid.UUID { return uuid.UUID{6: 0x40, 8: 0x80, 14: number, 15: last} }
	accounts := map[uuid.UUID]*ledger.Account{
		id(1): {ID: id(1), Currency: "EUR", Status: ledger.Open, Balance: balance},
		id(2): {ID: id(2), Currency: "EUR", Status: destination},
	}
	transfer, next := lifecycle.Request(id(3), id(1), id(2), contract.Money{Minor: 2500, Currency: "EUR"})
	var leg ledger.Leg
	var said []spoken
	cause := ""
	for at := time.Date(2026, 11, 30, 10, 15, 0, 0, time.UTC); ; at = at.Add(10 * time.Millisecond) {
		message := put(t, next, cause, at)
		said = append(said, message)
		cause = message.envelope.MessageID
		if _, ours := lifecycle.FactOf(next.Type); ours {
			step, err := transfer.Hear(next.Type, next.Data)
			if err != nil || step.Message == nil {
				t.Fatalf("%s: %+v %v", next.Type, step, err)
			}
			next = *step.Message
			continue
		}
		if transfer.Status().Terminal() {
			return said
		}
		demand := next.Data.Request
		if next.Type == contract.TransferRefundRequested {
			demand = next.Data.Refund
		}
		request, err := demand()
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := leg.Handle(ledger.Kind(next.Type), request, accounts[ledger.AccountOf(ledger.Kind(next.Type), request)])
		if err != nil {
			t.Fatal(err)
		}
		next = outcome.Message
	}
}

func put(t *testing.T, m contract.Message, cause string, at time.Time) spoken {
	t.Helper()
	data, err := m.Data.Encode()
	if err != nil {
		t.Fatal(err)
	}
	out, err := outbox.NewMessage(outbox.Draft{
		ID: m.ID.String(), Type: m.Type, CorrelationID: m.Data.TransferID.Value, CausationID: cause, OccurredAt: at, Data: data,
	})
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := messaging.Decode(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return spoken{Message: m, envelope: envelope, body: out.Body}
}
