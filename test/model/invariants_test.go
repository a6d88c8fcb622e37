package model

import (
	"fmt"
	"math/big"
	"slices"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/account/ledger"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

// safe holds in every instant.
func (w *world) safe() error {
	sums := map[string]*big.Int{}
	balances := map[uuid.UUID]*big.Int{}
	add := func(e ledger.Entry) {
		into(sums, e.Money.Currency, e.Money.Minor)
		if e.Book == ledger.Customer {
			into(balances, e.Account, e.Money.Minor)
		}
	}
	for _, e := range w.opening {
		add(e)
	}
	for i, entries := range w.entries {
		for _, e := range entries {
			add(e)
		}
		if err := w.movesOnce(i); err != nil {
			return err
		}
	}
	for currency, sum := range sums {
		if sum.Sign() != 0 {
			return fmt.Errorf("customers + transit + funding = %s %s", sum, currency)
		}
	}
	for _, a := range w.accounts {
		sum := balances[a.ID]
		if sum == nil {
			sum = new(big.Int)
		}
		if a.Balance < 0 || sum.Cmp(big.NewInt(a.Balance)) != 0 {
			return fmt.Errorf("account %s has a balance of %d, its entries sum to %s", a.ID, a.Balance, sum)
		}
		if real := w.mayReturn(a.ID); a.MayReturn < real {
			return fmt.Errorf("account %s keeps room for %d, but %d may return", a.ID, a.MayReturn, real)
		}
	}
	return nil
}

func into[K comparable](sums map[K]*big.Int, key K, minor int64) {
	if sums[key] == nil {
		sums[key] = new(big.Int)
	}
	sums[key].Add(sums[key], big.NewInt(minor))
}

// movesOnce: the entries of a transfer are none, debit, debit + credit, or debit + refund, of its amount and on its accounts.
func (w *world) movesOnce(transfer int) error {
	t := w.transfers[transfer]
	switch made := movements(w.entries[transfer]); fmt.Sprint(made) {
	case "[]", "[DEBIT]", "[DEBIT CREDIT]", "[DEBIT REFUND]":
	default:
		return fmt.Errorf("the money of a transfer moved by %v", made)
	}
	for _, e := range w.entries[transfer] {
		if e.Book != ledger.Customer {
			continue
		}
		account, gain := t.Source, t.Money.Minor
		switch e.Movement {
		case ledger.Debit:
			gain = -gain
		case ledger.Credit:
			account = t.Destination
		}
		if want := (contract.Money{Minor: gain, Currency: t.Money.Currency}); e.Account != account || e.Money != want {
			return fmt.Errorf("%s posted %s to %s, want %s to %s", e.Movement, e.Money, e.Account, want, account)
		}
	}
	return nil
}

// movements are the movements of a transfer in their order.
func movements(entries []ledger.Entry) []ledger.Movement {
	var made []ledger.Movement
	for _, e := range entries {
		if e.Book == ledger.Customer {
			made = append(made, e.Movement)
		}
	}
	return made
}

// answers: account answers a request with what has become of it, and says only what its entries bear out. A refusal has a
// reason, so an account that never refused cannot claim that it did.
func answers(kind ledger.Kind, m contract.Message, made []ledger.Movement) error {
	debited, credited, refunded := slices.Contains(made, ledger.Debit), slices.Contains(made, ledger.Credit), slices.Contains(made, ledger.Refund)
	refused := m.Data.Reason.Value != ""
	borneOut, fits := false, false
	switch m.Type {
	case contract.AccountDebited:
		borneOut, fits = debited, kind == ledger.Requested
	case contract.AccountDebitRejected:
		borneOut, fits = !debited && refused, true
	case contract.AccountCredited:
		borneOut, fits = credited, kind != ledger.Requested
	case contract.AccountCreditRejected:
		borneOut, fits = debited && !credited && refused, kind == ledger.CreditRequested
	case contract.AccountRefunded:
		borneOut, fits = refunded, kind != ledger.Requested
	}
	if !borneOut {
		return fmt.Errorf("account says %s %+v after %v", m.Type, m.Data, made)
	}
	if !fits {
		return fmt.Errorf("account answers %s with %s", kind, m.Type)
	}
	return nil
}

// settled holds whenever every message has arrived: the transfers have ended, nothing is in transit, and the services agree.
func (w *world) settled() error {
	transit := map[string]*big.Int{}
	for i, status := range w.statuses {
		said, agreed := "", ledger.None
		switch status {
		case lifecycle.StatusCompleted:
			said, agreed = contract.TransferCompleted, ledger.Credited
		case lifecycle.StatusRejected:
			said, agreed = contract.TransferRejected, ledger.DebitRejected
		case lifecycle.StatusRefunded:
			said, agreed = contract.TransferRefunded, ledger.Refunded
		}
		if said == "" || w.legs[i].State != agreed {
			return fmt.Errorf("no message is left, the transfer is %s and its leg %s", status, w.legs[i].State)
		}
		for _, end := range messageTypes[read:] {
			if p := w.packets[w.place(i, end)]; (p.said == 1) != (end == said) {
				return fmt.Errorf("the transfer is %s and has said %s %d times", status, end, p.said)
			}
		}
		for _, e := range w.entries[i] {
			if e.Book == ledger.Transit {
				into(transit, e.Money.Currency, e.Money.Minor)
			}
		}
	}
	for currency, sum := range transit {
		if sum.Sign() != 0 {
			return fmt.Errorf("no message is left, and %s %s are in transit", sum, currency)
		}
	}
	return nil
}
