package ledger

import (
	"math"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// Book is the part of the ledger that an entry belongs to.
type Book string

// The books. Transit and funding are sums of their entries, never a counter: a counter would be a row that every transfer
// has to lock.
const (
	Customer Book = "CUSTOMER" // what customers hold
	Transit  Book = "TRANSIT"  // what is debited and neither credited nor refunded
	Funding  Book = "FUNDING"  // where opening balances come from; its sum is negative
)

// Movement is one movement of money; it is the kind of both its entries.
type Movement string

// The movements. The last three are the effects in the table of the leg.
const (
	Opening Movement = "OPENING"
	Debit   Movement = "DEBIT"
	Credit  Movement = "CREDIT"
	Refund  Movement = "REFUND"
)

// Entry is one line of the ledger. Entries come in pairs that add up to zero.
type Entry struct {
	Book     Book
	Account  uuid.UUID // zero unless Book is Customer
	Transfer uuid.UUID // zero for an opening
	Movement Movement
	Money    contract.Money // signed: what the book gains
}

// OpenAccount is a new account and the entries of its opening balance, in minor units; none when it is zero.
func OpenAccount(id uuid.UUID, owner, currency string, opening int64) (Account, []Entry) {
	account := Account{ID: id, Owner: owner, Currency: currency, Status: Open, Balance: opening}
	if opening == 0 {
		return account, nil
	}
	return account, pair(Opening, id, uuid.UUID{}, Funding, opening, currency)
}

// post moves money of a transfer between an account and transit. It fails, and changes nothing, only when a promise was
// broken before: the rules have admitted the movement, or kept room for it.
func post(movement Movement, transfer uuid.UUID, account *Account, money contract.Money) ([]Entry, error) {
	if account == nil {
		return nil, retry.Errorf(retry.Invariant, "%s of transfer %s: the account does not exist", movement, transfer)
	}
	if account.Currency != money.Currency {
		return nil, retry.Errorf(retry.Invariant, "%s of %s: account %s is in %s", movement, money, account.ID, account.Currency)
	}
	signed := money.Minor
	if movement == Debit {
		signed = -signed
	}
	if signed > 0 && account.Balance > math.MaxInt64-signed || signed < 0 && account.Balance < -signed {
		return nil, retry.Errorf(retry.Invariant, "%s of %s leaves account %s outside its limits", movement, money, account.ID)
	}
	account.Balance += signed
	switch movement {
	case Debit:
		// What may return fits beside the balance at all times, so a bound above that is no better.
		account.MayReturn += min(money.Minor, math.MaxInt64-account.Balance-account.MayReturn)
	case Refund:
		account.MayReturn = max(0, account.MayReturn-money.Minor)
	}
	return pair(movement, account.ID, transfer, Transit, signed, money.Currency), nil
}

// pair is one movement: what the customer gains, the other book loses.
func pair(movement Movement, account, transfer uuid.UUID, other Book, gain int64, currency string) []Entry {
	return []Entry{
		{Book: Customer, Account: account, Transfer: transfer, Movement: movement, Money: contract.Money{Minor: gain, Currency: currency}},
		{Book: other, Transfer: transfer, Movement: movement, Money: contract.Money{Minor: -gain, Currency: currency}},
	}
}
