package model

import (
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
)

// anything is a network without mercy. Every message may arrive late, in any order and any number of times, or never; the
// sweeper, the operator and a stranger with access to the broker act whenever they like; nobody remembers messageIds.
var anything = network{copies: 1, most: 1, repeat: true, stray: true, timeout: true, freeze: true}

// remembered is the services as they are, with an inbox on both sides.
var remembered = network{copies: 1, most: 1, repeat: true, timeout: true, freeze: true, inbox: true}

// meddled is remembered with the stranger, whose messageIds no inbox knows, instead of the operator.
var meddled = network{copies: 1, most: 1, repeat: true, stray: true, timeout: true, inbox: true}

var (
	realJudge  = ledger.Machine{Table: ledger.States()}
	realMemory = lifecycle.Machine{Process: lifecycle.Rules()}
)

// scenario is one transfer of 30 EUR and the accounts it finds.
type scenario struct {
	name                string
	calm                bool   // no operator: freezing an account that refuses anyway only makes more states
	source, destination int64  // opening balances; below zero: there is no such account
	destinationCurrency string // "" is EUR
}

var scenarios = []scenario{
	{name: "enough money", source: 100},
	{name: "to the last cent", source: 30},
	{name: "too little money", source: 29},
	{name: "no source", source: -1},
	{name: "no destination", source: 100, destination: -1},
	{name: "other currency", calm: true, source: 100, destinationCurrency: "USD"},
	{name: "full destination", calm: true, source: 100, destination: 1<<63 - 1},
}

func (s scenario) world(n network, j judge, m memory) *world {
	n.freeze = n.freeze && !s.calm
	var accounts []ledger.Account
	var opening []ledger.Entry
	open := func(i int, currency string, minor int64) {
		if minor < 0 {
			return
		}
		a, entries := ledger.OpenAccount(name("account", i), "", currency, minor)
		accounts, opening = append(accounts, a), append(opening, entries...)
	}
	currency := s.destinationCurrency
	if currency == "" {
		currency = "EUR"
	}
	open(0, "EUR", s.source)
	open(1, currency, s.destination)
	return newWorld(n, j, m, accounts, opening, order{name("account", 0), name("account", 1), contract.Money{Minor: 30, Currency: "EUR"}})
}

func TestEveryRunOfOneTransfer(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]network{"without inbox": anything, "with inbox": remembered, "with inbox and meddling": meddled} {
		for _, s := range scenarios {
			t.Run(name+", "+s.name, func(t *testing.T) {
				t.Parallel()
				nodes, broken := explore(s.world(n, realJudge, realMemory))
				if broken != nil {
					t.Fatal(broken)
				}
				rest := 0
				for _, n := range nodes {
					if n.atRest {
						rest++
					}
				}
				t.Logf("%d states, %d of them at rest", len(nodes), rest)
				if rest == 0 {
					t.Error("no run came to an end")
				}
			})
		}
	}
}
