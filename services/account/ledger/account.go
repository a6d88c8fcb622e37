package ledger

import (
	"errors"
	"math"

	"example.com/banking/pkg/contract"
	"github.com/google/uuid"
)

// Status says what an account may do. FROZEN and CLOSED accounts refuse debits and credits; a refund always posts.
type Status string

// The statuses.
const (
	Open   Status = "OPEN"
	Frozen Status = "FROZEN"
	Closed Status = "CLOSED"
)

// Account is a customer's account, locked by whoever changes it.
type Account struct {
	ID       uuid.UUID
	Owner    string
	Currency string
	Status   Status
	Balance  int64 // minor units, never below zero

	// MayReturn is how much, in minor units, may still come back in refunds: what was debited and neither credited elsewhere nor
	// refunded. It may be larger than that, never smaller. A credit leaves room for it, because a refund cannot be refused:
	// without the room, an account that was filled up while its refund was on the way would overflow.
	//
	// A debit adds to it and a refund takes from it, but a credit elsewhere does not (that would lock the payer's row), so
	// it drifts upwards. When it stands in the way of a credit, it is to be computed anew from the open legs; see Fits.
	MayReturn int64
}

// ErrClosed is the answer to freezing or unfreezing a closed account.
var ErrClosed = errors.New("the account is closed")

// ErrNotEmpty is the answer to closing an account that holds money.
var ErrNotEmpty = errors.New("the account's balance is not zero")

// Freeze stops debits and credits. Freezing a frozen account changes nothing; a closed one answers ErrClosed.
func (a *Account) Freeze() error { return a.become(Frozen) }

// Unfreeze undoes Freeze. Unfreezing an open account changes nothing; a closed one answers ErrClosed.
func (a *Account) Unfreeze() error { return a.become(Open) }

func (a *Account) become(status Status) error {
	if a.Status == Closed {
		return ErrClosed
	}
	a.Status = status
	return nil
}

// Close ends an account that holds nothing, else answers ErrNotEmpty. A debit in flight does not hinder it: the refund
// would still post. Closing a closed account changes nothing.
func (a *Account) Close() error {
	if a.Status != Closed && a.Balance != 0 {
		return ErrNotEmpty
	}
	a.Status = Closed
	return nil
}

// Fits says whether a credit of amount leaves the balance, with everything that may still return, within an int64.
func (a *Account) Fits(amount int64) bool {
	return a.MayReturn <= math.MaxInt64-a.Balance && amount <= math.MaxInt64-a.Balance-a.MayReturn
}

// refusesDebit is the reason why money may not leave the account, "" when it may. The first reason counts: is there an
// account, may it be used, is it of the currency, does it hold enough.
func (a *Account) refusesDebit(money contract.Money) string {
	if reason := a.refusesUse(money.Currency); reason != "" {
		return reason
	}
	if a.Balance < money.Minor {
		return contract.InsufficientFunds
	}
	return ""
}

// refusesCredit is the reason why money may not arrive on the account, "" when it may; the order is that of refusesDebit.
func (a *Account) refusesCredit(money contract.Money) string {
	if reason := a.refusesUse(money.Currency); reason != "" {
		return reason
	}
	if !a.Fits(money.Minor) {
		return contract.LimitExceeded
	}
	return ""
}

func (a *Account) refusesUse(currency string) string {
	switch {
	case a == nil:
		return contract.AccountNotFound
	case a.Status == Frozen:
		return contract.AccountFrozen
	case a.Status == Closed:
		return contract.AccountClosed
	case a.Currency != currency:
		return contract.CurrencyMismatch
	}
	return ""
}
