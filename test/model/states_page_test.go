package model

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
)

var update = flag.Bool("update", false, "write docs/reference/states.md instead of comparing it")

// TestStatesPage keeps the reference page equal to the tables that run.
func TestStatesPage(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "reference", "states.md")
	want := statesPage()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the tables say; run go generate ./test/model", path)
	}
}

func statesPage() string {
	effects := map[ledger.Movement]string{
		ledger.Debit:  "source −a, transit +a",
		ledger.Credit: "transit −a, destination +a",
		ledger.Refund: "transit −a, source +a",
	}
	describe := func(m ledger.Movement) string { return effects[m] }
	return strings.Join([]string{
		`<!-- Written by "go generate ./test/model". Change the tables in the code, not this page. -->

# States

Two services, two state machines. Account judges: it keeps a leg for each transfer, the record of what it decided about the
money, and looks requests up in a table. Transfer remembers: it keeps the set of facts it was told, and its status is a
function of the set. This page is printed from the data they run on; a test fails when the two differ, and another changes each row
and rule in turn and fails when the model check does not notice.

## Transfer: facts and status

A set of facts knows no order and no number, so messages may come late, twice, or in the wrong order. The first line that fits, from
the top, gives the status. Only a change of status says something; that is why each message is said once.
`,
		strings.TrimSuffix(lifecycle.Rules().Markdown(), "\n"),
		`
A fact that is *refused* cannot be together with what is known. The message is parked with reason ` + "`INVARIANT`" + ` and the transfer
stays as it was; so it is with an event whose account, amount or currency is not the transfer's. ` + "`known`" + `: the status implies the fact.

The reason of a transfer is that of the first fact that turned it back. A completed transfer has none: where a timeout lost
against the credit, it is history and stands in the timeline.

` + "```mermaid\n" + lifecycle.Rules().Mermaid() + "```" + `

## Account: the leg of a transfer

` + "`a`" + ` is the amount. Rules are asked only where the table says what follows from a yes and a no. A request whose step was taken
before, under whatever messageId, gets its answer again, with the same messageId as the first time. A refund that comes before its
debit leaves a rejected leg with reason ` + "`CANCELLED`" + `, for the late debit to find.
`,
		strings.TrimSuffix(ledger.States().Markdown(describe), "\n"),
		`
In every state, a request with the same transferId and another account, amount or currency fails with ` + "`INVARIANT`" + ` and changes nothing.

A debit is refused for the first of these that holds: there is no such source, it is frozen or closed, it is in another currency, it does
not hold the amount. A credit looks at the destination in the same order, and instead of the last is refused when the balance,
together with all refunds that may still arrive, would not fit an int64. A refund is not judged: it always posts, and room for it was
kept. The destination is looked at only when its credit is due, because it may live elsewhere: a transfer to a frozen or unknown
account is debited, refused and refunded.

` + "```mermaid\n" + ledger.States().Mermaid() + "```\n",
	}, "\n")
}
