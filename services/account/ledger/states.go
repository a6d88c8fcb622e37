package ledger

import (
	"slices"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
)

// State is the state of a leg.
type State string

// The states. None is never stored.
const (
	None           State = ""
	Debited        State = "DEBITED"
	DebitRejected  State = "DEBIT_REJECTED"
	Credited       State = "CREDITED"
	CreditRejected State = "CREDIT_REJECTED"
	Refunded       State = "REFUNDED"
)

func (s State) name() string {
	if s == None {
		return "none"
	}
	return string(s)
}

// Kind is the type of a request, as the message carries it.
type Kind string

// The requests account takes.
const (
	Requested       Kind = contract.TransferRequested
	CreditRequested Kind = contract.TransferCreditRequested
	RefundRequested Kind = contract.TransferRefundRequested
)

// LegTable is a transition table of legs.
type LegTable = saga.Table[State, Kind, Movement]

// States is the behaviour of a leg, complete: every request in every state has its row. A request whose step was taken
// already gets the answer it got then. A credit that comes after the refund, or a refund after the credit, is told
// what has become of the money instead.
func States() LegTable { return slices.Clone(states) }

var states = LegTable{
	{State: None, Request: Requested, Verdict: saga.Allowed, Next: Debited, Effect: Debit, Event: contract.AccountDebited},
	{State: None, Request: Requested, Verdict: saga.Refused, Next: DebitRejected, Event: contract.AccountDebitRejected},
	{State: None, Request: CreditRequested, Next: None, Fault: retry.NotFound},
	// The tombstone: the debit that is still under way will find it and be refused.
	{State: None, Request: RefundRequested, Next: DebitRejected, Event: contract.AccountDebitRejected},

	{State: Debited, Request: Requested, Next: Debited, Event: contract.AccountDebited},
	{State: Debited, Request: CreditRequested, Verdict: saga.Allowed, Next: Credited, Effect: Credit, Event: contract.AccountCredited},
	{State: Debited, Request: CreditRequested, Verdict: saga.Refused, Next: CreditRejected, Event: contract.AccountCreditRejected},
	{State: Debited, Request: RefundRequested, Next: Refunded, Effect: Refund, Event: contract.AccountRefunded},

	{State: DebitRejected, Request: Requested, Next: DebitRejected, Event: contract.AccountDebitRejected},
	{State: DebitRejected, Request: CreditRequested, Next: DebitRejected, Event: contract.AccountDebitRejected},
	{State: DebitRejected, Request: RefundRequested, Next: DebitRejected, Event: contract.AccountDebitRejected},

	{State: Credited, Request: Requested, Next: Credited, Event: contract.AccountDebited},
	{State: Credited, Request: CreditRequested, Next: Credited, Event: contract.AccountCredited},
	{State: Credited, Request: RefundRequested, Next: Credited, Event: contract.AccountCredited},

	{State: CreditRejected, Request: Requested, Next: CreditRejected, Event: contract.AccountDebited},
	{State: CreditRejected, Request: CreditRequested, Next: CreditRejected, Event: contract.AccountCreditRejected},
	{State: CreditRejected, Request: RefundRequested, Next: Refunded, Effect: Refund, Event: contract.AccountRefunded},

	{State: Refunded, Request: Requested, Next: Refunded, Event: contract.AccountDebited},
	{State: Refunded, Request: CreditRequested, Next: Refunded, Event: contract.AccountRefunded},
	{State: Refunded, Request: RefundRequested, Next: Refunded, Event: contract.AccountRefunded},
}
