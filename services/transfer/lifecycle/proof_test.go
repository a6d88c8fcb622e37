package lifecycle_test

import (
	"slices"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
	"example.com/banking/services/transfer/lifecycle"
)

var told = []lifecycle.Fact{lifecycle.Debited, lifecycle.DebitRejected, lifecycle.Credited, lifecycle.CreditRejected, lifecycle.Refunded, lifecycle.TimedOut}

// subset is REQUESTED and those facts whose bit is set.
func subset(bits int) lifecycle.Facts {
	set := saga.Of(lifecycle.Requested)
	for i, fact := range told {
		if bits&(1<<i) != 0 {
			set = set.With(fact)
		}
	}
	return set
}

// status is the specification once more, in another form than the table.
func status(set lifecycle.Facts) lifecycle.Status {
	switch {
	case set.Has(lifecycle.Credited):
		return lifecycle.StatusCompleted
	case set.Has(lifecycle.Refunded):
		return lifecycle.StatusRefunded
	case set.Has(lifecycle.DebitRejected):
		return lifecycle.StatusRejected
	case set.Has(lifecycle.CreditRejected), set.Has(lifecycle.TimedOut):
		return lifecycle.StatusRefunding
	case set.Has(lifecycle.Debited):
		return lifecycle.StatusDebited
	}
	return lifecycle.StatusRequested
}

// possible: money that was never debited has gone nowhere and was refused by nobody else; money that was has one end at most, and
// money that was credited was not refused.
func possible(set lifecycle.Facts) bool {
	debited, credited, refunded := set.Has(lifecycle.Debited), set.Has(lifecycle.Credited), set.Has(lifecycle.Refunded)
	if set.Has(lifecycle.DebitRejected) && (debited || credited || refunded || set.Has(lifecycle.CreditRejected)) {
		return false
	}
	return !credited || !refunded && !set.Has(lifecycle.CreditRejected)
}

// TestEverySubsetInEveryOrder goes through all subsets of the facts and all orders of each. Whatever the order, a possible set
// ends in the same transfer; on the way each fact is new once, a change of status says its message and nothing else does, no
// message is said twice, and a terminal status is never left. In an impossible set the fact that breaks it is refused.
func TestEverySubsetInEveryOrder(t *testing.T) {
	t.Parallel()
	sets := 0
	for bits := range 1 << len(told) {
		set := subset(bits)
		facts := slices.Collect(set.Without(lifecycle.Requested).All())
		if possible(set) {
			sets++
		}
		permutations(facts, func(order []lifecycle.Fact) {
			transfer, first := newTransfer()
			said := []string{first.Type}
			for _, fact := range order {
				said = append(said, learn(t, &transfer, fact)...)
			}
			if possible(set) && (transfer.Facts != set || transfer.Status() != status(set)) {
				t.Fatalf("%v ends in %s %s, want %s %s", order, transfer.Facts, transfer.Status(), set, status(set))
			}
			for i, message := range said {
				if slices.Contains(said[:i], message) {
					t.Fatalf("%v says %v", order, said)
				}
			}
		})
	}
	if listed := len(slices.Collect(lifecycle.Rules().Possible())); listed != sets {
		t.Errorf("the process lists %d possible sets, there are %d", listed, sets)
	}
}

// learn tells a transfer a fact, compares the step with the specification, and returns what was said.
func learn(t *testing.T, transfer *lifecycle.Transfer, fact lifecycle.Fact) []string {
	t.Helper()
	before := *transfer
	step, err := transfer.Learn(fact, fact.String())
	if want := before.Facts.With(fact); !possible(want) {
		if class(err) != retry.Invariant || *transfer != before {
			t.Fatalf("%s after %s: %v, and the transfer is %+v", fact, before.Facts, err, *transfer)
		}
		return nil
	}
	if err != nil {
		t.Fatalf("%s after %s: %v", fact, before.Facts, err)
	}
	if step.New == before.Facts.Has(fact) || step.Fact != fact || step.From != before.Status() || step.To != transfer.Status() {
		t.Fatalf("%s after %s: %+v", fact, before.Facts, step)
	}
	if step.From.Terminal() && step.To != step.From {
		t.Fatalf("%s after %s leaves %s for %s", fact, before.Facts, step.From, step.To)
	}
	if !step.New && *transfer != before {
		t.Fatalf("%s for the second time changed the transfer", fact)
	}
	if (step.Message != nil) != (step.From != step.To) {
		t.Fatalf("%s after %s goes from %s to %s and says %+v", fact, before.Facts, step.From, step.To, step.Message)
	}
	if step.Message == nil {
		return nil
	}
	if *step.Message != transfer.Announce() {
		t.Fatalf("says %+v, its status would %+v", step.Message, transfer.Announce())
	}
	return []string{step.Message.Type}
}

func permutations(facts []lifecycle.Fact, visit func([]lifecycle.Fact)) {
	var place func(int)
	order := slices.Clone(facts)
	place = func(at int) {
		if at == len(order) {
			visit(order)
			return
		}
		for i := at; i < len(order); i++ {
			order[at], order[i] = order[i], order[at]
			place(at + 1)
			order[at], order[i] = order[i], order[at]
		}
	}
	place(0)
}

// TestEveryEventThreeTimesInEveryOrder tells a transfer the events of each way it can go, three copies of each, in all orders
// of the copies. The end is the same; and what is said is what would have been said had each come once, in the order of
// first arrival.
func TestEveryEventThreeTimesInEveryOrder(t *testing.T) {
	t.Parallel()
	for _, events := range [][]lifecycle.Fact{
		{lifecycle.Debited, lifecycle.Credited},
		{lifecycle.DebitRejected, lifecycle.TimedOut},
		{lifecycle.Debited, lifecycle.CreditRejected, lifecycle.Refunded},
		{lifecycle.Debited, lifecycle.TimedOut, lifecycle.Refunded},
		{lifecycle.Debited, lifecycle.TimedOut, lifecycle.Credited},
	} {
		copies := map[lifecycle.Fact]int{}
		for _, fact := range events {
			copies[fact] = 3
		}
		ends := map[lifecycle.Transfer]bool{}
		orders := 0
		var arrive func(transfer lifecycle.Transfer, said, firsts []string, once lifecycle.Transfer)
		arrive = func(transfer lifecycle.Transfer, said, saidOnce []string, once lifecycle.Transfer) {
			arrived := true
			for _, fact := range events {
				if copies[fact] == 0 {
					continue
				}
				arrived = false
				copies[fact]--
				next, nextOnce := transfer, once
				nextSaid, nextSaidOnce := slices.Concat(said, learn(t, &next, fact)), saidOnce
				if !once.Facts.Has(fact) {
					nextSaidOnce = slices.Concat(saidOnce, learn(t, &nextOnce, fact))
				}
				arrive(next, nextSaid, nextSaidOnce, nextOnce)
				copies[fact]++
			}
			if arrived {
				orders++
				ends[transfer] = true
				if transfer != once || !slices.Equal(said, saidOnce) {
					t.Fatalf("three copies end in %+v and say %v, one in %+v and %v", transfer, said, once, saidOnce)
				}
			}
		}
		transfer, _ := newTransfer()
		arrive(transfer, nil, nil, transfer)
		if len(ends) != 1 && !slices.Contains(events, lifecycle.TimedOut) {
			t.Errorf("%v: %d different ends", events, len(ends))
		}
		for end := range ends {
			if end.Facts != saga.Of(events...).With(lifecycle.Requested) {
				t.Errorf("%v ends in %s", events, end.Facts)
			}
		}
		t.Logf("%v: %d orders", events, orders)
	}
}

func TestStatusesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	messages := map[lifecycle.Status]string{
		lifecycle.StatusRequested: contract.TransferRequested,
		lifecycle.StatusDebited:   contract.TransferCreditRequested,
		lifecycle.StatusRefunding: contract.TransferRefundRequested,
		lifecycle.StatusCompleted: contract.TransferCompleted,
		lifecycle.StatusRejected:  contract.TransferRejected,
		lifecycle.StatusRefunded:  contract.TransferRefunded,
	}
	for _, s := range lifecycle.Statuses() {
		reaction := lifecycle.Rules().Reaction(s)
		open := s == lifecycle.StatusRequested || s == lifecycle.StatusDebited || s == lifecycle.StatusRefunding
		if reaction.Message != messages[s] || s.Terminal() == open {
			t.Errorf("%s: %+v", s, reaction)
		}
		if parsed, ok := lifecycle.ParseStatus(string(s)); !ok || parsed != s {
			t.Errorf("%s is read as %s", s, parsed)
		}
	}
	if _, ok := lifecycle.ParseStatus("completed"); ok {
		t.Error("a status in small letters was accepted")
	}
}
