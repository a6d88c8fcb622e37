package ledger

import (
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
	"github.com/google/uuid"
)

// Leg is what account knows of one transfer: its own record of what was decided about the money. It is written only in the
// transaction that moves the money, so it cannot be wrong about it. The zero Leg is that of a transfer account has not heard of.
type Leg struct {
	Transfer    uuid.UUID
	Source      uuid.UUID
	Destination uuid.UUID
	Money       contract.Money
	State       State
	Reason      string // why account refused, "" when it did not; it outlives the refund that follows a refused credit
}

// Outcome is what handling a request came to.
type Outcome struct {
	Changed bool             // the leg is new, or in another state: write it
	Entries []Entry          // the entries to write; none when no money moved. With entries, the account is to be written too
	Message contract.Message // what to say; the same id and data when it has been said before
}

// AccountOf is the one account that a request concerns: the source for a debit or a refund, the destination for a credit. No
// request needs both, so that the two may live in different databases and neither waits for the other's lock.
func AccountOf(kind Kind, r contract.Request) uuid.UUID {
	if kind == CreditRequested {
		return r.Destination
	}
	return r.Source
}

// Handle decides a request. The account is that of AccountOf, nil when there is none. Handle changes leg and account in memory and
// says what to write and what to send. An error changes nothing; its class is NOT_FOUND for a credit without a debit, and
// INVARIANT for a request that contradicts what is stored.
func (l *Leg) Handle(kind Kind, r contract.Request, account *Account) (Outcome, error) {
	return Machine{Table: states}.Handle(l, kind, r, account)
}

// Machine handles requests by a table. The service uses States; a proof may use a table that was broken on purpose.
type Machine struct{ Table LegTable }

// Handle is Leg.Handle with the machine's own table.
func (m Machine) Handle(l *Leg, kind Kind, r contract.Request, account *Account) (Outcome, error) {
	if account != nil && account.ID != AccountOf(kind, r) {
		return Outcome{}, retry.Errorf(retry.Unknown, "%s of transfer %s was given account %s", kind, r.TransferID, account.ID)
	}
	if err := l.contradicts(r); err != nil {
		return Outcome{}, err
	}
	verdict, reason := saga.Any, ""
	if m.Table.Judged(l.State, kind) {
		verdict, reason = judge(kind, r, account)
	}
	row, ok := m.Table.Find(l.State, kind, verdict)
	if !ok {
		return Outcome{}, retry.Errorf(retry.Validation, "%s is not a request", kind)
	}
	if row.Fault != "" {
		return Outcome{}, retry.Errorf(row.Fault, "%s of transfer %s: the leg is %s", kind, r.TransferID, l.State.name())
	}
	var entries []Entry
	if row.Effect != "" {
		var err error
		if entries, err = post(row.Effect, r.TransferID, account, r.Money); err != nil {
			return Outcome{}, err
		}
	}
	changed := row.Next != l.State
	if changed {
		if l.State == None && kind == RefundRequested {
			reason = contract.Cancelled
		}
		if reason == "" {
			reason = l.Reason
		}
		*l = Leg{Transfer: r.TransferID, Source: r.Source, Destination: r.Destination, Money: r.Money, State: row.Next, Reason: reason}
	}
	return Outcome{Changed: changed, Entries: entries, Message: l.say(row.Event)}, nil
}

// contradicts compares a request with what was recorded when the leg was made.
func (l *Leg) contradicts(r contract.Request) error {
	if l.State == None {
		return nil
	}
	if l.Transfer != r.TransferID || l.Source != r.Source || l.Destination != r.Destination || l.Money != r.Money {
		return retry.Errorf(retry.Invariant, "transfer %s is recorded as %s from %s to %s, the request (transfer %s) says %s from %s to %s",
			l.Transfer, l.Money, l.Source, l.Destination, r.TransferID, r.Money, r.Source, r.Destination)
	}
	return nil
}

func judge(kind Kind, r contract.Request, account *Account) (saga.Verdict, string) {
	var reason string
	if kind == CreditRequested {
		reason = account.refusesCredit(r.Money)
	} else {
		reason = account.refusesDebit(r.Money)
	}
	if reason != "" {
		return saga.Refused, reason
	}
	return saga.Allowed, ""
}

// say makes a message from the leg alone, so that it is the same whenever it is said.
func (l *Leg) say(messageType string) contract.Message {
	account := l.Source
	if messageType == contract.AccountCredited || messageType == contract.AccountCreditRejected {
		account = l.Destination
	}
	data := contract.Data{AccountID: contract.Some(account.String())}
	switch messageType {
	case contract.AccountDebitRejected, contract.AccountCreditRejected:
		data.Reason = contract.Some(l.Reason)
	default:
		data.AmountMinor = contract.Amount(l.Money.Minor)
		data.Currency = contract.Some(l.Money.Currency)
	}
	return contract.Say(l.Transfer, messageType, data)
}
