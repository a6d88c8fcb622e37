package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// tour is a guided walk through a running system: it does something, says what is to be seen and why, and checks that it
// is so. A check that fails does not end the tour; it is counted, and the tour fails in the end.
type tour struct {
	to      *endpoints
	out     *output
	broker  *broker
	logs    string // folder with the services' logs
	checks  int
	failed  []string
	chapter int
}

var errTourFailed = errors.New("the tour saw something else than it should have")

// guide walks through every chapter. logs is the folder with the services' logs.
func guide(ctx context.Context, to *endpoints, logs string, out *output) error {
	b, err := newBroker(to)
	if err != nil {
		return err
	}
	t := &tour{to: to, out: out, broker: b, logs: logs}
	people := &cast{}
	for _, chapter := range []func(context.Context, *cast) error{
		t.openAccounts, t.completeTransfer, t.refuseForFunds, t.refundFromFrozen,
		t.repeatWithKey, t.repeatEvents, t.parkPoison, t.verifyAll,
	} {
		if err := chapter(ctx, people); err != nil {
			return fmt.Errorf("the tour cannot go on: %w", err)
		}
	}
	if len(t.failed) > 0 {
		fmt.Fprintf(out, "\n%s\n", out.bad(fmt.Sprintf("%d of %d checks failed:", len(t.failed), t.checks)))
		for _, what := range t.failed {
			fmt.Fprintf(out, "  ! %s\n", what)
		}
		return errTourFailed
	}
	fmt.Fprintf(out, "\n%s\n", out.good(fmt.Sprintf("All %d checks held.", t.checks)))
	return nil
}

func (t *tour) title(text string) {
	t.chapter++
	fmt.Fprintf(t.out, "\n%s\n", t.out.strong(fmt.Sprintf("%d. %s", t.chapter, text)))
}

func (t *tour) say(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(t.out, "  %s\n", strings.TrimSuffix(line, "\n"))
	}
}

// check notes whether what was seen is what must be.
func (t *tour) check(held bool, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	t.checks++
	if held {
		fmt.Fprintf(t.out, "  %s %s\n", t.out.good("ok  "), what)
		return
	}
	t.failed = append(t.failed, what)
	fmt.Fprintf(t.out, "  %s %s\n", t.out.bad("FAIL"), what)
}

// balance asks account for a balance in minor units.
func (t *tour) balance(ctx context.Context, id string) (int64, error) {
	var a account
	_, err := t.to.account().do(ctx, http.MethodGet, "/accounts/"+id, nil, &a)
	return a.BalanceMinor, err
}

// checkBalances compares the balances of the cast with what they must be.
func (t *tour) checkBalances(ctx context.Context, people ...*person) error {
	for _, p := range people {
		got, err := t.balance(ctx, p.id)
		if err != nil {
			return err
		}
		t.check(got == p.balance, "%s has %s", p.name, amount(p.balance, "EUR"))
	}
	return nil
}

// transfer asks for a transfer, follows it to its end and prints its timeline.
func (t *tour) transfer(ctx context.Context, request transferCreate) (transfer, error) {
	accepted, _, err := createTransfer(ctx, t.to.transfer(), request)
	if err != nil {
		return transfer{}, err
	}
	t.say("POST /transfers: 202 Accepted, transfer %s is %s", accepted.ID, accepted.Status)
	told := 0
	ended, err := followTransfer(ctx, t.to.transfer(), accepted.ID, time.Minute, func(seen transfer) {
		for ; told < len(seen.Timeline); told++ {
			fmt.Fprintln(t.out, factLine(seen.Timeline[told], seen.CreatedAt))
		}
	})
	if err == nil {
		t.say("it is %s", verdict(t.out, ended))
	}
	return ended, err
}

// await asks until the answer is yes.
func await(ctx context.Context, limit time.Duration, what string, ask func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		if yes, err := ask(ctx); err != nil || yes {
			return err
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s", limit, what)
		}
	}
}
