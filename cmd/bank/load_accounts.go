package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
)

const loadOwner = "Load %d"

func loadAccountID(n int) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "bank load %d", n)).String()
}

// ofLoad says whether an account is one of those that loadAccounts opens.
func (a account) ofLoad() bool {
	var n int
	_, err := fmt.Sscanf(a.Owner, loadOwner, &n)
	return err == nil && a.ID == loadAccountID(n)
}

// openPatience is how long an account service that has died while the accounts are opened has to come back: the keeper of "bank up" starts
// it again within a second or a few.
const openPatience = 30 * time.Second

// loadAccounts opens the accounts among which a load moves money. Their ids are derived from their numbers, so that the next load finds
// them, and they are rich enough never to be refused. A call that was not answered is made again, for patience at most, which the same id makes
// harmless; but not the first: where nothing has answered yet, nothing is likely to.
func loadAccounts(ctx context.Context, service *api, n int, patience time.Duration, say func(string)) ([]string, error) {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = loadAccountID(i)
		open := func() error {
			body := map[string]any{"id": ids[i], "owner": fmt.Sprintf(loadOwner, i), "currency": "EUR", "openingBalanceMinor": 1_000_000_000_00}
			_, err := service.do(ctx, http.MethodPost, "/accounts", body, nil)
			return err
		}
		err := open()
		if err != nil && i > 0 && passing(err) {
			say(fmt.Sprintf("%s; the load's accounts are opened as soon as it is back, for %s at most", err, patience))
			err = again(ctx, patience, open)
		}
		if err != nil {
			return nil, fmt.Errorf("open account %d of %d of the load: %w%s", i+1, n, err, resume(i, err))
		}
	}
	return ids, nil
}

// passing says whether a call that failed so may succeed later: there was no answer, or one that asks for patience.
func passing(err error) bool {
	var refusal *problem
	return !errors.As(err, &refusal) || refusal.Status >= http.StatusInternalServerError
}

// again makes a call again and again until it succeeds, is refused, or the time is over.
func again(ctx context.Context, patience time.Duration, call func() error) error {
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		err := call()
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-tick.C:
		case <-over.C:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// resume says what to do when the service has gone while accounts were being opened.
func resume(opened int, err error) string {
	if opened == 0 || !passing(err) || errors.Is(err, context.Canceled) {
		return ""
	}
	return fmt.Sprintf("\n%d are open. See 'bank service list' and .bank/logs/account.log; when the service is back, the same command finds them and goes on", opened)
}
