package model

import (
	"errors"
	"flag"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
)

var seed = flag.Uint64("seed", 0, "seed of the random runs; 0 takes a new one")

// TestRandomRunsOfTransfersThatShareAccounts plays many transfers at once, too many for every run. Some accounts are missing, some
// poor, one so full that money fits only when some has left, and amounts are tiny or enormous. After a while the network
// delivers what it still has, and everything must have ended.
func TestRandomRunsOfTransfersThatShareAccounts(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	t.Logf("to repeat: go test ./test/model -run %s -seed %d", t.Name(), first)
	const runs = 200
	for run := range uint64(runs) {
		random := rand.New(rand.NewPCG(first, run))
		if broken := wander(randomWorld(random), random, 150); broken != nil {
			t.Fatalf("seed %d, run %d: %s", first, run, broken)
		}
	}
}

func randomWorld(random *rand.Rand) *world {
	pick := func(from ...int64) int64 { return from[random.IntN(len(from))] }
	var accounts []ledger.Account
	var opening []ledger.Entry
	for i := range 4 {
		currency := "EUR"
		if random.IntN(10) == 0 {
			currency = "USD"
		}
		a, entries := ledger.OpenAccount(name("account", i), "", currency, pick(0, 50, 1000, math.MaxInt64/2, math.MaxInt64-100, math.MaxInt64))
		accounts, opening = append(accounts, a), append(opening, entries...)
	}
	orders := make([]order, 2+random.IntN(6))
	for i := range orders {
		source := random.IntN(5) // the fifth account does not exist
		orders[i] = order{name("account", source), name("account", (source+1+random.IntN(4))%5),
			contract.Money{Minor: pick(1, 30, 60, 1000, math.MaxInt64/2, math.MaxInt64-100, math.MaxInt64), Currency: "EUR"}}
	}
	n := network{copies: 1 + uint8(random.IntN(2)), most: 3, repeat: true, stray: random.IntN(4) == 0, timeout: random.IntN(2) == 0,
		freeze: random.IntN(2) == 0, inbox: random.IntN(2) == 0, wire: true}
	return newWorld(n, realJudge, realMemory, accounts, opening, orders...)
}

// wander does something at random, again and again, and lets the world come to rest in the end.
func wander(w *world, random *rand.Rand, steps int) *violation {
	var trace []action
	for step := 0; ; step++ {
		if step == steps {
			w.repeat, w.stray, w.timeout, w.freeze = false, false, false, false
		}
		possible := w.actions()
		if len(possible) == 0 {
			return nil
		}
		a := possible[random.IntN(len(possible))]
		trace = append(trace, a)
		if err := w.do(a); err != nil {
			return &violation{err, trace}
		}
		if err := w.check(); err != nil {
			return &violation{err, trace}
		}
		if step > 100*steps {
			return &violation{errors.New("delivering what is waiting never comes to rest"), trace}
		}
	}
}

// TestRandomRunsFindPlantedFaults: random runs are no decoration either.
func TestRandomRunsFindPlantedFaults(t *testing.T) {
	t.Parallel()
	const runs = 2000
	for name, broken := range map[string]judge{
		"credit applied twice": brokenJudge(t, ledger.Credited, ledger.CreditRequested, func(r *row) { r.Effect = ledger.Credit }),
		"refund after credit": brokenJudge(t, ledger.Credited, ledger.RefundRequested, func(r *row) {
			r.Next, r.Effect, r.Event = ledger.Refunded, ledger.Refund, contract.AccountRefunded
		}),
		"no room for refunds": forgetful{realJudge},
	} {
		found := false
		for run := range uint64(runs) {
			random := rand.New(rand.NewPCG(1, run))
			w := randomWorld(random)
			w.judge = broken
			if found = wander(w, random, 150) != nil; found {
				break
			}
		}
		if !found {
			t.Errorf("%s: not found in %d runs", name, runs)
		}
	}
}

// forgetful keeps no room for money that may return.
type forgetful struct{ ledger.Machine }

func (m forgetful) Handle(l *ledger.Leg, kind ledger.Kind, r contract.Request, account *ledger.Account) (ledger.Outcome, error) {
	if account != nil {
		account.MayReturn = 0
	}
	return m.Machine.Handle(l, kind, r, account)
}
