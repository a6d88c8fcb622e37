package model

import (
	"fmt"
	"slices"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
)

// TestEveryRowMatters changes every row of the leg's table in every way, one at a time, and demands that the check notices.
// A change that went unnoticed would mean that the row is not needed, or that the check looks away.
func TestEveryRowMatters(t *testing.T) {
	t.Parallel()
	for i, row := range ledger.States() {
		for _, mutant := range mutants(row) {
			if survives(ledger.Machine{Table: ledger.States().With(i, mutant)}, realMemory) {
				t.Errorf("not noticed: %+v instead of %+v", mutant, row)
			}
		}
	}
}

type row = saga.Row[ledger.State, ledger.Kind, ledger.Movement]

// mutants are all rows that differ from the given one in one thing: where it leads, what it moves, what it says.
func mutants(r row) []row {
	var all []row
	for _, event := range messageTypes[requests:read] {
		if event != r.Event {
			m := r
			m.Event, m.Fault = event, ""
			all = append(all, m)
		}
	}
	if r.Fault != "" {
		return all // where it would lead does not matter
	}
	m := r
	m.Fault = retry.NotFound
	all = append(all, m)
	for _, next := range []ledger.State{ledger.None, ledger.Debited, ledger.DebitRejected, ledger.Credited, ledger.CreditRejected, ledger.Refunded} {
		if next != r.Next {
			m := r
			m.Next = next
			all = append(all, m)
		}
	}
	for _, effect := range []ledger.Movement{"", ledger.Debit, ledger.Credit, ledger.Refund} {
		if effect != r.Effect {
			m := r
			m.Effect = effect
			all = append(all, m)
		}
	}
	return all
}

// TestEveryRuleMatters does the same to transfer: every rule is left out in turn, loses a fact, or changes places with its
// neighbour, and every status says something else.
func TestEveryRuleMatters(t *testing.T) {
	t.Parallel()
	try := func(change string, mutate func(*lifecycle.Process)) {
		p := lifecycle.Rules()
		mutate(&p)
		if !same(p, lifecycle.Rules()) && survives(realJudge, lifecycle.Machine{Process: p}) {
			t.Errorf("not noticed: %s", change)
		}
	}
	real := lifecycle.Rules()
	for i, rule := range real.Rules {
		try(fmt.Sprintf("no rule for %s", rule.Status), func(p *lifecycle.Process) { p.Rules = slices.Delete(p.Rules, i, i+1) })
		if i > 0 {
			try(fmt.Sprintf("%s before %s", rule.Status, real.Rules[i-1].Status), func(p *lifecycle.Process) {
				p.Rules[i-1], p.Rules[i] = p.Rules[i], p.Rules[i-1]
			})
		}
		for fact := range rule.AnyOf.All() {
			if rule.AnyOf.Len() > 1 {
				try(fmt.Sprintf("%s does not make it %s", fact, rule.Status), func(p *lifecycle.Process) { p.Rules[i].AnyOf = rule.AnyOf.Without(fact) })
			}
		}
	}
	for i, reaction := range real.Reactions {
		for _, other := range []string{contract.TransferCreditRequested, contract.TransferRefundRequested, contract.TransferCompleted} {
			if other != reaction.Message {
				try(fmt.Sprintf("%s says %s", reaction.Status, other), func(p *lifecycle.Process) { p.Reactions[i].Message = other })
			}
		}
	}
}

// same says whether two processes cannot be told apart: the order of two rules does not matter when no possible set fits both.
func same(a, b lifecycle.Process) bool {
	for set := range b.Possible() {
		if a.Status(set) != b.Status(set) {
			return false
		}
	}
	return slices.Equal(a.Reactions, b.Reactions)
}

// outcomes are the transfers that go through every state: one completed, one rejected, one refunded.
var outcomes = []scenario{
	{name: "completed", source: 100},
	{name: "rejected", source: 29},
	{name: "refunded", source: 100, destination: -1},
}

// survives says whether no exploration finds anything wrong.
func survives(j judge, m memory) bool {
	open := anything
	open.freeze = false // finds nearly everything in far fewer states
	for _, n := range []network{open, meddled, anything} {
		for _, s := range outcomes {
			if _, broken := explore(s.world(n, j, m)); broken != nil {
				return false
			}
		}
	}
	return true
}
