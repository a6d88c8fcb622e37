package model

import (
	"slices"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/saga"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
)

// The planted faults: machines that are broken as real ones were before. The check has to find each of them, and for the
// right reason.

func TestPlantedCreditAppliedTwice(t *testing.T) {
	t.Parallel()
	broken := brokenJudge(t, ledger.Credited, ledger.CreditRequested, func(row *saga.Row[ledger.State, ledger.Kind, ledger.Movement]) {
		row.Effect = ledger.Credit
	})
	// An inbox would hide it: the second copy is not handled at all. The leg has to hold by itself.
	mustFind(t, scenarios[0].world(anything, broken, realMemory), "moved by [DEBIT CREDIT CREDIT]")
}

func TestPlantedRefundAfterCredit(t *testing.T) {
	t.Parallel()
	broken := brokenJudge(t, ledger.Credited, ledger.RefundRequested, func(row *saga.Row[ledger.State, ledger.Kind, ledger.Movement]) {
		row.Next, row.Effect, row.Event = ledger.Refunded, ledger.Refund, contract.AccountRefunded
	})
	mustFind(t, scenarios[0].world(anything, broken, realMemory), "moved by [DEBIT CREDIT REFUND]")
	mustFind(t, scenarios[0].world(remembered, broken, realMemory), "moved by [DEBIT CREDIT REFUND]")
}

// The property that breaks: a transfer says each message at most once in its life. Here the inbox of account would absorb the
// second one, which is why counting what account does would not find it.
func TestPlantedReactionOnEveryFact(t *testing.T) {
	t.Parallel()
	mustFind(t, scenarios[0].world(anything, realJudge, talkative{realMemory}), "for the second time")
	mustFind(t, scenarios[0].world(remembered, realJudge, talkative{realMemory}), "for the second time")
}

// talkative says what belongs to the status whenever it learns a fact, whether the status changed or not.
type talkative struct{ lifecycle.Machine }

func (m talkative) Hear(t *lifecycle.Transfer, messageType string, data contract.Data) (lifecycle.Step, error) {
	step, err := m.Machine.Hear(t, messageType, data)
	if err == nil && step.New {
		message := m.Announce(t)
		step.Message = &message
	}
	return step, err
}

// brokenJudge is the real table with one row changed.
func brokenJudge(t *testing.T, state ledger.State, kind ledger.Kind, fault func(*saga.Row[ledger.State, ledger.Kind, ledger.Movement])) judge {
	t.Helper()
	table := ledger.States()
	i := slices.IndexFunc(table, func(row saga.Row[ledger.State, ledger.Kind, ledger.Movement]) bool {
		return row.State == state && row.Request == kind
	})
	if i < 0 {
		t.Fatalf("the table has no row for %s in %s", kind, state)
	}
	row := table[i]
	fault(&row)
	return ledger.Machine{Table: table.With(i, row)}
}

func mustFind(t *testing.T, w *world, want string) {
	t.Helper()
	nodes, broken := explore(w)
	if broken == nil {
		t.Fatalf("%d states explored, and the fault was not found", len(nodes))
	}
	if !strings.Contains(broken.err.Error(), want) {
		t.Fatalf("found %q, want %q", broken.err, want)
	}
	t.Logf("found: %s", broken)
}
