package exercises

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
)

// customer is an account that the exercises own. It has the same id on every bank and in every run, so that nothing piles up.
type customer struct {
	name, id string
}

const (
	opening = 1_000_000_000 // ten million euros: many runs
	payment = 2_500
)

// open opens the customers' accounts, or finds them there, and thaws what an interrupted run has left frozen.
func (r *run) open(ctx context.Context, names ...string) ([]customer, error) {
	var customers []customer
	for _, name := range names {
		c := customer{name: name, id: uuid.NewSHA1(uuid.NameSpaceURL, []byte("example.com/banking/exercises/"+name)).String()}
		var account struct {
			Status string `json:"status"`
		}
		err := r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) { // a database that was restarted before is noticed by the next call
			err := r.account.call(ctx, http.MethodPost, "/accounts", map[string]any{
				"id": c.id, "owner": name + " (exercises)", "currency": "EUR", "openingBalanceMinor": opening}, &account)
			return err == nil, err
		})
		if err == nil && account.Status == "FROZEN" {
			err = r.thaw(ctx, c)
		}
		if err != nil {
			return nil, err
		}
		customers = append(customers, c)
	}
	return customers, nil
}

// pair is who pays and who is paid: of two customers the one who has more pays, so that no number of runs makes anybody poor.
func (r *run) pair(ctx context.Context) (payer, payee customer, err error) {
	both, err := r.open(ctx, "Ada", "Ben")
	if err != nil {
		return payer, payee, err
	}
	has, err := r.balances(ctx, both...)
	if err != nil {
		return payer, payee, err
	}
	if has[1] > has[0] {
		slices.Reverse(both)
	}
	return both[0], both[1], nil
}

func (r *run) balances(ctx context.Context, customers ...customer) (amounts []int64, err error) {
	for _, c := range customers {
		amount, err := r.balance(ctx, c)
		if err != nil {
			return nil, err
		}
		amounts = append(amounts, amount)
	}
	return amounts, nil
}

func (r *run) freeze(ctx context.Context, c customer) error {
	return r.account.call(ctx, http.MethodPost, "/accounts/"+c.id+"/freeze", nil, nil)
}

func (r *run) thaw(ctx context.Context, c customer) error {
	return r.account.call(ctx, http.MethodPost, "/accounts/"+c.id+"/unfreeze", nil, nil)
}

func (r *run) balance(ctx context.Context, c customer) (int64, error) {
	var account struct {
		BalanceMinor int64 `json:"balanceMinor"`
	}
	err := r.account.call(ctx, http.MethodGet, "/accounts/"+c.id, nil, &account)
	return account.BalanceMinor, err
}

// transfer is what the service says of one.
type transfer struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
	Timeline []struct {
		Fact      string    `json:"fact"`
		At        time.Time `json:"at"`
		MessageID string    `json:"messageId"`
	} `json:"timeline"`
}

func (t transfer) ended() bool {
	return t.Status == "COMPLETED" || t.Status == "REJECTED" || t.Status == "REFUNDED"
}

func (t transfer) facts() (facts []string) {
	for _, f := range t.Timeline {
		facts = append(facts, f.Fact)
	}
	return facts
}

func (t transfer) has(fact string) bool { return slices.Contains(t.facts(), fact) }

// openTransfers is how many have not ended, anybody's.
func (r *run) openTransfers(ctx context.Context) (open int, err error) {
	var byStatus map[string]int
	err = r.transfer.call(ctx, http.MethodGet, "/transfers/summary", nil, &byStatus)
	for status, n := range byStatus {
		if !(transfer{Status: status}).ended() {
			open += n
		}
	}
	return open, err
}

// ask asks for a transfer once.
func (r *run) ask(ctx context.Context, key string, from, to customer) (id string, err error) {
	var accepted transfer
	err = r.transfer.call(ctx, http.MethodPost, "/transfers", map[string]any{
		"sourceAccountId": from.id, "destinationAccountId": to.id, "amountMinor": payment, "currency": "EUR",
		"reference": fmt.Sprintf("exercise %d", r.exercise.Number)}, &accepted, "Idempotency-Key", key)
	return accepted.ID, err
}

// send asks for a transfer until it is accepted: a client with an idempotency key may ask as often as it likes, whatever is down.
func (r *run) send(ctx context.Context, from, to customer) (id string, err error) {
	key := uuid.NewString()
	var refusal error
	err = r.await(ctx, r.patience()+r.Outage, func(ctx context.Context) (bool, error) {
		var err error
		id, err = r.ask(ctx, key, from, to)
		if answer, ok := errors.AsType[*refused](err); ok && answer.status < 500 {
			refusal = err // for good
			return true, nil
		}
		return err == nil, err
	})
	return id, errors.Join(refusal, err)
}

// sendMany asks for n transfers from a few clients at once and returns their ids.
func (r *run) sendMany(ctx context.Context, n int, from, to customer) ([]string, error) {
	ids := make([]string, n)
	clients, ctx := errgroup.WithContext(ctx)
	clients.SetLimit(8)
	for i := range ids {
		clients.Go(func() (err error) {
			ids[i], err = r.send(ctx, from, to)
			return err
		})
	}
	err := clients.Wait()
	return ids, err
}

func (r *run) show(ctx context.Context, id string) (t transfer, err error) {
	err = r.transfer.call(ctx, http.MethodGet, "/transfers/"+id, nil, &t)
	return t, err
}

// end waits until the transfer has ended.
func (r *run) end(ctx context.Context, id string) (t transfer, err error) {
	err = r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) {
		var err error
		t, err = r.show(ctx, id)
		return t.ended(), err
	})
	if err != nil && ctx.Err() == nil {
		return t, fmt.Errorf("%w: transfer %s is %q: %w", ErrNotRecovered, id, t.Status, err)
	}
	return t, err
}

// completed counts which of the transfers have completed.
func (r *run) completed(ctx context.Context, ids []string) (n int, err error) {
	for _, id := range ids {
		t, err := r.show(ctx, id)
		if err != nil {
			return n, err
		}
		if t.Status == "COMPLETED" {
			n++
		}
	}
	return n, nil
}

// leg is what account has decided about a transfer.
type leg struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
}

func (r *run) leg(ctx context.Context, transferID string) (l leg, err error) {
	err = r.account.call(ctx, http.MethodGet, "/legs/"+transferID, nil, &l)
	return l, err
}

// lifeEvent is one line of a transfer's life in one of the services.
type lifeEvent struct {
	At          time.Time `json:"at"`
	Kind        string    `json:"kind"`
	MessageID   string    `json:"messageId"`
	Type        string    `json:"type"`
	AmountMinor int64     `json:"amountMinor"`
}

// life is what account knows of a transfer's life, oldest first.
func (r *run) life(ctx context.Context, transferID string) ([]lifeEvent, error) {
	var life struct {
		Events []lifeEvent `json:"events"`
	}
	err := r.account.call(ctx, http.MethodGet, "/legs/"+transferID+"/life", nil, &life)
	return life.Events, err
}

// postings are the movements of money that a life tells.
func postings(events []lifeEvent) (amounts []int64) {
	for _, e := range events {
		if e.Kind == "POSTED" {
			amounts = append(amounts, e.AmountMinor)
		}
	}
	return amounts
}

// parse reads an id that a service has given.
func parse(id string) uuid.UUID {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return uuid.Nil // which names no transfer
	}
	return parsed
}
