package lifecycle

import (
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// Transfer is one transfer, as far as its process is concerned.
type Transfer struct {
	ID          uuid.UUID
	Source      uuid.UUID
	Destination uuid.UUID
	Money       contract.Money
	Facts       Facts
	Reason      string // why it was turned back, told by the first fact that did; "" when it was not, or was completed after all
}

// Request is a new transfer and the message that asks account for the debit.
func Request(id, source, destination uuid.UUID, money contract.Money) (Transfer, contract.Message) {
	return Machine{Process: process}.Request(id, source, destination, money)
}

// Status is what the facts make of the transfer.
func (t *Transfer) Status() Status { return process.Status(t.Facts) }

// Step is what one fact did to a transfer.
type Step struct {
	Fact     Fact
	New      bool              // the fact was not known: write it, and the transfer
	From, To Status            // equal when the fact changed no status
	Message  *contract.Message // what to say: only when the status changed
}

// Hear takes a message of account. An error changes nothing: VALIDATION for a type that is not account's, INVARIANT for a
// message that contradicts the transfer or what it has been told before.
func (t *Transfer) Hear(messageType string, data contract.Data) (Step, error) {
	return Machine{Process: process}.Hear(t, messageType, data)
}

// TimeOut tells an open transfer that it has been open for too long. The credit may still win: account decides.
func (t *Transfer) TimeOut() (Step, error) { return Machine{Process: process}.TimeOut(t) }

// Learn adds a fact; reason counts only for facts that turn a transfer back. A fact that cannot be together with those
// known is an error of class INVARIANT and leaves the transfer as it was.
func (t *Transfer) Learn(fact Fact, reason string) (Step, error) {
	return Machine{Process: process}.Learn(t, fact, reason)
}

// Check compares what account says with the transfer: the account concerned and, where the event carries them, amount and
// currency have to be there and to match. Anything else is an error of class INVARIANT.
func (t *Transfer) Check(fact Fact, data contract.Data) error {
	account := t.Source
	if fact == Credited || fact == CreditRejected {
		account = t.Destination
	}
	if told, ok := contract.ParseID(data.AccountID.Value); !ok || told != account {
		return retry.Errorf(retry.Invariant, "%s: data.accountId %.60q is not the account %s", fact, data.AccountID.Value, account)
	}
	if fact == DebitRejected || fact == CreditRejected {
		return nil
	}
	told := contract.Money{Minor: int64(data.AmountMinor), Currency: data.Currency.Value}
	if told != t.Money {
		return retry.Errorf(retry.Invariant, "%s: %d %.20q is not the transfer's %s", fact, told.Minor, told.Currency, t.Money)
	}
	return nil
}

// Announce is the message that belongs to the transfer's present status. Learn says when it is to be sent.
func (t *Transfer) Announce() contract.Message { return Machine{Process: process}.Announce(t) }
