package saga_test

import (
	"fmt"

	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/saga"
)

// step is a fact about an order of goods.
type step uint8

const (
	ordered step = iota
	paid
	shipped
	cancelled
)

func (s step) String() string { return [...]string{"ORDERED", "PAID", "SHIPPED", "CANCELLED"}[s] }

// An order of goods as a function of what is known of it. The rules are tried from the top.
var order = saga.Process[step, string]{
	Start:      saga.Of(ordered),
	Facts:      saga.Of(ordered, paid, shipped, cancelled),
	Rules:      []saga.Rule[step, string]{{saga.Of(cancelled), "CANCELLED"}, {saga.Of(shipped), "DONE"}, {saga.Of(paid), "TO_SHIP"}, {saga.Of(ordered), "OPEN"}},
	Impossible: [][2]step{{shipped, cancelled}},
	Reactions: []saga.Reaction[string]{
		{Status: "OPEN", Message: "Order.PaymentRequested"}, {Status: "TO_SHIP", Message: "Order.ShipmentRequested"},
		{Status: "DONE", Terminal: true}, {Status: "CANCELLED", Terminal: true},
	},
}

// Messages come late, twice and in the wrong order. A status that is a function of a set of facts does not care.
func ExampleProcess_Learn() {
	known := order.Start
	for _, fact := range []step{shipped, paid, paid, cancelled} { // the news of the shipment has overtaken that of the payment
		turn, err := order.Learn(known, fact)
		if err != nil {
			fmt.Printf("%-9v %s: %v\n", fact, retry.ClassOf(err), err)
			continue
		}
		fmt.Printf("%-9v new %-5v %s → %s\n", fact, turn.New, turn.From, turn.To)
		known = turn.Known
	}
	fmt.Println(known)
	// Output:
	// SHIPPED   new true  OPEN → DONE
	// PAID      new true  DONE → DONE
	// PAID      new false DONE → DONE
	// CANCELLED INVARIANT: SHIPPED and CANCELLED exclude each other; known are {ORDERED, PAID, SHIPPED}, told is CANCELLED
	// {ORDERED, PAID, SHIPPED}
}

// What a process may do can be listed, because it is data: here, everything that the news of a cancellation does.
func ExampleProcess_Moves() {
	for _, m := range order.Moves() {
		if m.Fact == cancelled {
			fmt.Println(m.From, "→", m.To, "refused at times:", m.Refused)
		}
	}
	// Output:
	// OPEN → [CANCELLED] refused at times: false
	// TO_SHIP → [CANCELLED] refused at times: false
	// DONE → [] refused at times: true
	// CANCELLED → [] refused at times: false
}

// What is said when a status is reached.
func ExampleProcess_Reaction() {
	for _, status := range []string{"OPEN", "TO_SHIP", "DONE"} {
		r := order.Reaction(status)
		fmt.Printf("%s: says %q, terminal %v\n", status, r.Message, r.Terminal)
	}
	// Output:
	// OPEN: says "Order.PaymentRequested", terminal false
	// TO_SHIP: says "Order.ShipmentRequested", terminal false
	// DONE: says "", terminal true
}

// A service that decides keeps a record of what it has decided, and looks up what a request does to it. Only the rows that ask for a verdict
// need the rules: a debit that is said again is not judged again.
func ExampleTable_Find() {
	type row = saga.Row[string, string, string]
	table := saga.Table[string, string, string]{
		row{State: "NONE", Request: "Debit", Verdict: saga.Allowed, Next: "DEBITED", Effect: "take", Event: "Debited"},
		row{State: "NONE", Request: "Debit", Verdict: saga.Refused, Next: "REJECTED", Event: "DebitRejected"},
		row{State: "DEBITED", Request: "Debit", Next: "DEBITED", Event: "Debited"},
		row{State: "REJECTED", Request: "Debit", Next: "REJECTED", Event: "DebitRejected"},
	}
	for _, state := range []string{"NONE", "DEBITED"} {
		verdict := saga.Any
		if table.Judged(state, "Debit") {
			verdict = saga.Allowed
		}
		found, ok := table.Find(state, "Debit", verdict)
		fmt.Printf("%s: to %s, does %q, answers %s (%v)\n", state, found.Next, found.Effect, found.Event, ok)
	}
	// Output:
	// NONE: to DEBITED, does "take", answers Debited (true)
	// DEBITED: to DEBITED, does "", answers Debited (true)
}

// Sets print as what they hold.
func ExampleFacts() {
	set := saga.Of(ordered, shipped)
	fmt.Println(set, set.Has(paid), set.With(paid).Len(), set.Without(shipped))
	// Output:
	// {ORDERED, SHIPPED} false 3 {ORDERED}
}
