package lifecycle

import (
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// Machine makes transfers learn by a process. The service uses Rules; a proof may use a process that was broken on purpose.
type Machine struct{ Process Process }

// Request is the package's Request with the machine's own process.
func (m Machine) Request(id, source, destination uuid.UUID, money contract.Money) (Transfer, contract.Message) {
	t := Transfer{ID: id, Source: source, Destination: destination, Money: money, Facts: m.Process.Start}
	return t, m.Announce(&t)
}

// Hear is Transfer.Hear with the machine's own process.
func (m Machine) Hear(t *Transfer, messageType string, data contract.Data) (Step, error) {
	fact, ok := FactOf(messageType)
	if !ok {
		return Step{}, retry.Errorf(retry.Validation, "%.100q is not an event of an account", messageType)
	}
	if err := t.Check(fact, data); err != nil {
		return Step{}, err
	}
	return m.Learn(t, fact, data.Reason.Value)
}

// TimeOut is Transfer.TimeOut with the machine's own process.
func (m Machine) TimeOut(t *Transfer) (Step, error) { return m.Learn(t, TimedOut, contract.TimedOut) }

// Learn is Transfer.Learn with the machine's own process.
func (m Machine) Learn(t *Transfer, fact Fact, reason string) (Step, error) {
	turn, err := m.Process.Learn(t.Facts, fact)
	if err != nil {
		return Step{}, err
	}
	if turn.New {
		t.Facts = turn.Known
		t.Reason = turnedBy(t.Reason, turn.To, fact, reason)
	}
	step := Step{Fact: fact, New: turn.New, From: turn.From, To: turn.To}
	if turn.Changed() {
		message := m.Announce(t)
		step.Message = &message
	}
	return step, nil
}

// turnedBy is a transfer's reason after a new fact. The first reason stays: a refund because of the timeout stays one when
// account then says CANCELLED. It is taken even if the end is known already, so that the order of the facts does not
// show. A completed transfer was turned back by nothing, whatever the sweeper thought; the timeline still has it.
func turnedBy(known string, status Status, fact Fact, reason string) string {
	switch {
	case status == StatusCompleted:
		return ""
	case known == "" && (fact == DebitRejected || fact == CreditRejected || fact == TimedOut):
		if reason == "" { // nobody demands one of account, but account demands one of a refund
			return contract.Unspecified
		}
		return reason
	}
	return known
}

// Announce is Transfer.Announce with the machine's own process.
func (m Machine) Announce(t *Transfer) contract.Message {
	status := m.Process.Status(t.Facts)
	reaction := m.Process.Reaction(status)
	var data contract.Data
	if reaction.Terminal {
		data.Status = contract.Some(string(status))
	} else {
		data.SourceAccountID = contract.Some(t.Source.String())
		data.DestinationAccountID = contract.Some(t.Destination.String())
		data.AmountMinor = contract.Amount(t.Money.Minor)
		data.Currency = contract.Some(t.Money.Currency)
	}
	if t.Reason != "" {
		data.Reason = contract.Some(t.Reason)
	}
	return contract.Say(t.ID, reaction.Message, data)
}
