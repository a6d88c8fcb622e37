package lifecycle

import (
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/saga"
)

// Fact is something that has happened to a transfer.
type Fact uint8

// The facts. All but the first and the last are told by account.
const (
	Requested Fact = iota
	Debited
	DebitRejected
	Credited
	CreditRejected
	Refunded
	TimedOut
)

var factNames = [...]string{
	Requested:      "REQUESTED",
	Debited:        "DEBITED",
	DebitRejected:  "DEBIT_REJECTED",
	Credited:       "CREDITED",
	CreditRejected: "CREDIT_REJECTED",
	Refunded:       "REFUNDED",
	TimedOut:       "TIMED_OUT",
}

func (f Fact) String() string { return factNames[f] }

// ParseFact reads a fact as it stands in the timeline.
func ParseFact(name string) (Fact, bool) {
	for f, known := range factNames {
		if known == name {
			return Fact(f), true
		}
	}
	return 0, false
}

// FactOf is the fact that a message of account tells; ok is false for every other type.
func FactOf(messageType string) (fact Fact, ok bool) {
	switch messageType {
	case contract.AccountDebited:
		return Debited, true
	case contract.AccountDebitRejected:
		return DebitRejected, true
	case contract.AccountCredited:
		return Credited, true
	case contract.AccountCreditRejected:
		return CreditRejected, true
	case contract.AccountRefunded:
		return Refunded, true
	}
	return 0, false
}

// Facts is what a transfer has been told.
type Facts = saga.Facts[Fact]

// Status is what the facts make of a transfer.
type Status string

// The statuses. The first three are open, the others terminal.
const (
	StatusRequested Status = "REQUESTED"
	StatusDebited   Status = "DEBITED"
	StatusRefunding Status = "REFUNDING"
	StatusCompleted Status = "COMPLETED"
	StatusRejected  Status = "REJECTED"
	StatusRefunded  Status = "REFUNDED"
)

// Statuses are all statuses, the open ones first.
func Statuses() []Status {
	return []Status{StatusRequested, StatusDebited, StatusRefunding, StatusCompleted, StatusRejected, StatusRefunded}
}

// ParseStatus reads a status by its name.
func ParseStatus(name string) (Status, bool) {
	for _, s := range Statuses() {
		if string(s) == name {
			return s, true
		}
	}
	return "", false
}

// Terminal says whether the transfer has ended: the status will never change again.
func (s Status) Terminal() bool { return process.Reaction(s).Terminal }

// Process is a process over the facts of a transfer.
type Process = saga.Process[Fact, Status]

// Rules is how facts become a status and what a change of status entails.
func Rules() Process { return process.Clone() }

var process = Process{
	Start: saga.Of(Requested),
	Facts: saga.Of(Requested, Debited, DebitRejected, Credited, CreditRejected, Refunded, TimedOut),
	Rules: []saga.Rule[Fact, Status]{
		{AnyOf: saga.Of(Credited), Status: StatusCompleted},
		{AnyOf: saga.Of(Refunded), Status: StatusRefunded},
		{AnyOf: saga.Of(DebitRejected), Status: StatusRejected},
		{AnyOf: saga.Of(CreditRejected, TimedOut), Status: StatusRefunding},
		{AnyOf: saga.Of(Debited), Status: StatusDebited},
		{AnyOf: saga.Of(Requested), Status: StatusRequested},
	},
	Impossible: [][2]Fact{
		{Credited, Refunded},
		{Debited, DebitRejected},
		{Credited, DebitRejected},
		{Credited, CreditRejected},
		{Refunded, DebitRejected},
		{CreditRejected, DebitRejected},
	},
	Reactions: []saga.Reaction[Status]{
		{Status: StatusRequested, Message: contract.TransferRequested},
		{Status: StatusDebited, Message: contract.TransferCreditRequested},
		{Status: StatusRefunding, Message: contract.TransferRefundRequested},
		{Status: StatusCompleted, Message: contract.TransferCompleted, Terminal: true},
		{Status: StatusRejected, Message: contract.TransferRejected, Terminal: true},
		{Status: StatusRefunded, Message: contract.TransferRefunded, Terminal: true},
	},
}
