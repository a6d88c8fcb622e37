package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
)

func TestMoneyMoves(t *testing.T) {
	t.Parallel()
	b := newBank(t)

	t.Run("debit and credit", func(t *testing.T) {
		from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 7)
		tr := newTransfer(from, to, 30)
		b.ask(t, ledger.Requested, tr)
		b.expectLeg(t, tr, ledger.Debited, "")
		b.expectBalance(t, from, 70)
		b.ask(t, ledger.CreditRequested, tr)
		b.expectLeg(t, tr, ledger.Credited, "")
		b.expectBalance(t, to, 37)
		b.expectEntries(t, tr, "DEBIT -30", "CREDIT 30")
		expectSaid(t, b.outgoing(t), tr, contract.AccountDebited, contract.AccountCredited)
	})
	t.Run("refused credit and refund", func(t *testing.T) {
		from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
		tr := newTransfer(from, to, 30)
		b.ask(t, ledger.Requested, tr)
		if _, err := b.change(t.Context(), to, (*ledger.Account).Freeze); err != nil {
			t.Fatal(err)
		}
		b.ask(t, ledger.CreditRequested, tr)
		b.expectLeg(t, tr, ledger.CreditRejected, contract.AccountFrozen)
		b.ask(t, ledger.RefundRequested, tr)
		b.expectLeg(t, tr, ledger.Refunded, contract.AccountFrozen)
		b.expectBalance(t, from, 100)
		b.expectEntries(t, tr, "DEBIT -30", "REFUND 30")
		expectSaid(t, b.outgoing(t), tr, contract.AccountDebited, contract.AccountCreditRejected+" ACCOUNT_FROZEN", contract.AccountRefunded)
	})
	t.Run("refund before debit leaves a tombstone", func(t *testing.T) {
		from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
		tr := newTransfer(from, to, 30)
		b.ask(t, ledger.RefundRequested, tr)
		b.ask(t, ledger.Requested, tr)
		b.expectLeg(t, tr, ledger.DebitRejected, contract.Cancelled)
		b.expectBalance(t, from, 100)
		b.expectEntries(t, tr)
		rejected := contract.AccountDebitRejected + " CANCELLED"
		expectSaid(t, b.outgoing(t), tr, rejected, rejected)
	})
	t.Run("refund to a closed account", func(t *testing.T) {
		from, to := b.open(t, "EUR", 30), b.open(t, "EUR", 0)
		tr := newTransfer(from, to, 30)
		b.ask(t, ledger.Requested, tr)
		if _, err := b.change(t.Context(), from, (*ledger.Account).Close); err != nil {
			t.Fatal(err)
		}
		b.ask(t, ledger.RefundRequested, tr)
		b.expectBalance(t, from, 30)
	})
	t.Run("an outcome said again has the same id and data", func(t *testing.T) {
		from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
		tr := newTransfer(from, to, 30)
		b.ask(t, ledger.Requested, tr)
		b.ask(t, ledger.Requested, tr) // the same request under a new messageId
		var about []said
		for _, s := range b.outgoing(t) {
			if s.Data.TransferID.Value == tr.id.String() {
				about = append(about, s)
			}
		}
		if len(about) != 2 || about[0] != about[1] {
			t.Errorf("said %+v, want the same twice", about)
		}
		b.expectBalance(t, from, 70)
	})
	expectInvariants(t, b.pool)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	rich, dollars := b.open(t, "EUR", 1000), b.open(t, "USD", 1000)
	frozen, closed, full := b.open(t, "EUR", 1000), b.open(t, "EUR", 0), b.open(t, "EUR", math.MaxInt64)
	for account, rule := range map[uuid.UUID]func(*ledger.Account) error{frozen: (*ledger.Account).Freeze, closed: (*ledger.Account).Close} {
		if _, err := b.change(t.Context(), account, rule); err != nil {
			t.Fatal(err)
		}
	}
	unknown := uuid.New()
	inDollars := newTransfer(rich, dollars, 1)

	for name, c := range map[string]struct {
		tr     transfer
		debit  string // the reason, "" when it is allowed
		credit string
	}{
		"insufficient":             {newTransfer(rich, full, 1001), contract.InsufficientFunds, ""},
		"unknown source":           {newTransfer(unknown, rich, 1), contract.AccountNotFound, ""},
		"frozen source":            {newTransfer(frozen, rich, 1), contract.AccountFrozen, ""},
		"closed source":            {newTransfer(closed, rich, 1), contract.AccountClosed, ""},
		"source of other money":    {newTransfer(dollars, rich, 1), contract.CurrencyMismatch, ""},
		"unknown destination":      {newTransfer(rich, unknown, 1), "", contract.AccountNotFound},
		"frozen destination":       {newTransfer(rich, frozen, 1), "", contract.AccountFrozen},
		"closed destination":       {newTransfer(rich, closed, 1), "", contract.AccountClosed},
		"destination of other":     {inDollars, "", contract.CurrencyMismatch},
		"destination is full":      {newTransfer(rich, full, 1), "", contract.LimitExceeded},
		"more than any account":    {newTransfer(rich, full, math.MaxInt64), contract.InsufficientFunds, ""},
		"everything of an account": {newTransfer(full, rich, math.MaxInt64), "", contract.LimitExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			b.ask(t, ledger.Requested, c.tr)
			if c.debit != "" {
				b.expectLeg(t, c.tr, ledger.DebitRejected, c.debit)
				expectSaid(t, b.outgoing(t), c.tr, contract.AccountDebitRejected+" "+c.debit)
				b.expectEntries(t, c.tr)
				return
			}
			b.ask(t, ledger.CreditRequested, c.tr)
			b.expectLeg(t, c.tr, ledger.CreditRejected, c.credit)
			b.ask(t, ledger.RefundRequested, c.tr)
			expectSaid(t, b.outgoing(t), c.tr, contract.AccountDebited, contract.AccountCreditRejected+" "+c.credit, contract.AccountRefunded)
		})
	}
	b.expectBalance(t, rich, 1000)
	b.expectBalance(t, full, math.MaxInt64)
	expectInvariants(t, b.pool)
}

// A credit keeps room for refunds that are on their way. What was credited elsewhere long ago must not take up that room for ever.
func TestRoomForRefunds(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	full, other := b.open(t, "EUR", math.MaxInt64), b.open(t, "EUR", 100)

	out, back := newTransfer(full, other, 100), newTransfer(other, full, 100)
	b.ask(t, ledger.Requested, out)
	b.ask(t, ledger.Requested, back)
	b.ask(t, ledger.CreditRequested, back)
	b.expectLeg(t, back, ledger.CreditRejected, contract.LimitExceeded) // out may still be refunded
	b.ask(t, ledger.RefundRequested, back)

	b.ask(t, ledger.CreditRequested, out)
	again := newTransfer(other, full, 100)
	b.ask(t, ledger.Requested, again)
	b.ask(t, ledger.CreditRequested, again)
	b.expectLeg(t, again, ledger.Credited, "") // out can no longer be
	b.expectBalance(t, full, math.MaxInt64)
	expectInvariants(t, b.pool)
}

func TestBadMessageLeavesItsNeighboursAlone(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	before, after := newTransfer(from, to, 1), newTransfer(from, to, 2)
	contradiction := before
	contradiction.amount = 99
	text := newTransfer(from, to, 3).message(t, ledger.Requested)
	text.Data = []byte(`{"transferId": "` + uuid.NewString() + `", "amountMinor": "2500"}`)
	wrongQueue := newTransfer(from, to, 4).message(t, ledger.CreditRequested)

	results := b.handle(t, ledger.Requested,
		before.message(t, ledger.Requested), contradiction.message(t, ledger.Requested), text, wrongQueue, after.message(t, ledger.Requested))
	for i, want := range []retry.Class{"", retry.Invariant, retry.Validation, retry.Validation, ""} {
		if got := retry.ClassOf(results[i]); got != want {
			t.Errorf("message %d: class %q (%v), want %q", i, got, results[i], want)
		}
	}
	b.expectBalance(t, from, 97)
	b.expectLeg(t, before, ledger.Debited, "")
	b.expectLeg(t, after, ledger.Debited, "")

	results = b.handle(t, ledger.CreditRequested,
		newTransfer(from, to, 5).message(t, ledger.CreditRequested), before.message(t, ledger.CreditRequested))
	if got := retry.ClassOf(results[0]); got != retry.NotFound || results[1] != nil {
		t.Errorf("results %v, want NOT_FOUND and nil", results)
	}
	b.expectBalance(t, to, 1)
	expectInvariants(t, b.pool)
}

// The contract lists a reason for refunds, and for them alone.
func TestARefundNeedsAReason(t *testing.T) {
	t.Parallel()
	tr := newTransfer(uuid.New(), uuid.New(), 5)
	for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested} {
		for reason, ok := range map[string]bool{``: kind != ledger.RefundRequested, `,"reason":""`: kind != ledger.RefundRequested, `,"reason":"TIMEOUT"`: true} {
			m := tr.message(t, kind)
			m.Data = fmt.Appendf(nil, `{"transferId":%q,"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":5,"currency":"EUR"%s}`, tr.id, tr.from, tr.to, reason)
			_, err := queueOf[kind].read(m)
			if ok != (err == nil) || (!ok && retry.ClassOf(err) != retry.Validation) {
				t.Errorf("%s with %q: %v", kind, reason, err)
			}
		}
	}
}

func TestSameIDOtherPayload(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	first := newTransfer(from, to, 1).message(t, ledger.Requested)
	second := newTransfer(from, to, 2).message(t, ledger.Requested)
	second.MessageID = first.MessageID
	if results := b.handle(t, ledger.Requested, first); results[0] != nil {
		t.Fatal(results[0])
	}
	if results := b.handle(t, ledger.Requested, second); retry.ClassOf(results[0]) != retry.Invariant {
		t.Errorf("result %v, want INVARIANT", results[0])
	}
	b.expectBalance(t, from, 99)
}

// An account that a batch names many times is read and written once; the sum must be right nevertheless, up to the last cent.
func TestHotAccountInOneBatch(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	hot, other := b.open(t, "EUR", 49), b.open(t, "EUR", 0)
	transfers := make([]transfer, 50)
	batch := make([]*messaging.Message, len(transfers))
	for i := range transfers {
		transfers[i] = newTransfer(hot, other, 1)
		batch[i] = transfers[i].message(t, ledger.Requested)
	}
	for i, err := range b.handle(t, ledger.Requested, batch...) {
		if err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	b.expectBalance(t, hot, 0)
	b.expectLeg(t, transfers[48], ledger.Debited, "")
	b.expectLeg(t, transfers[49], ledger.DebitRejected, contract.InsufficientFunds)
	expectInvariants(t, b.pool)
}

// Debit and refund of a transfer that nobody knows arrive at the same time: whoever comes second collides with the new leg,
// runs again and finds it. Either order is right, half of both is not.
func TestDebitAndRefundAtOnce(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	from, to := b.open(t, "EUR", 1000), b.open(t, "EUR", 0)
	conflicts := 0
	for range 30 {
		tr := newTransfer(from, to, 1)
		var group sync.WaitGroup
		var mu sync.Mutex
		for _, kind := range []ledger.Kind{ledger.Requested, ledger.RefundRequested} {
			batch := []*messaging.Message{tr.message(t, kind)}
			group.Go(func() {
				for {
					results, err := b.handlers[kind](t.Context(), batch)
					if retry.ClassOf(err) == retry.Conflict {
						mu.Lock()
						conflicts++
						mu.Unlock()
						continue
					}
					if err := errors.Join(append(results, err)...); err != nil {
						t.Errorf("%s: %v", kind, err)
					}
					return
				}
			})
		}
		group.Wait()
		leg, _, err := b.leg(t.Context(), tr.id)
		if err != nil {
			t.Fatal(err)
		}
		if leg.State != ledger.Refunded && leg.State != ledger.DebitRejected {
			t.Errorf("leg is %s", leg.State)
		}
	}
	t.Logf("%d collisions", conflicts)
	b.expectBalance(t, from, 1000)
	expectInvariants(t, b.pool)
}

// Batches of all kinds over few accounts, handled at once by several workers: every transaction ends, and the ledger holds at every
// look, in one snapshot.
func TestBatchesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBank(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	accounts := make([]uuid.UUID, 5)
	for i := range accounts {
		accounts[i] = b.open(t, "EUR", 500)
	}

	stop := make(chan struct{})
	looked := make(chan int)
	go func() {
		looks := 0
		defer func() { looked <- looks }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			sums, err := b.ledger(t.Context())
			if err != nil {
				t.Errorf("ledger: %v", err)
				return
			}
			if len(sums) != 1 || sums[0].Sum.Sign() != 0 || sums[0].Customers.Int64()+sums[0].InTransit.Int64() != 2500 {
				t.Errorf("ledger at look %d: %v", looks, sums)
				return
			}
			looks++
		}
	}()

	var workers sync.WaitGroup
	for worker := range 4 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range 10 {
				transfers := make([]transfer, 20)
				for i := range transfers {
					from := random.IntN(len(accounts))
					to := (from + 1 + random.IntN(len(accounts)-1)) % len(accounts)
					transfers[i] = newTransfer(accounts[from], accounts[to], 1+random.Int64N(200))
				}
				for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested} {
					random.Shuffle(len(transfers), func(i, j int) { transfers[i], transfers[j] = transfers[j], transfers[i] })
					if err := b.settle(t, kind, transfers); err != nil {
						t.Errorf("%s: %v", kind, err)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	if looks := <-looked; looks == 0 {
		t.Error("the ledger was never looked at")
	}
	expectInvariants(t, b.pool)
}

// settle handles one batch. The transfers of a batch are its own, so nothing that another one does may fail it.
func (b *bank) settle(t *testing.T, kind ledger.Kind, transfers []transfer) error {
	batch := make([]*messaging.Message, len(transfers))
	for i, tr := range transfers {
		batch[i] = tr.message(t, kind)
	}
	results, err := b.handlers[kind](t.Context(), batch)
	return errors.Join(append(results, err)...)
}
