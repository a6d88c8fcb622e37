package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/invariants"
	"example.com/banking/pkg/contract"
)

// person is one of those who act in the tour, with the balance they must have by now.
type person struct {
	name    string
	id      string
	balance int64
}

// cast is who and what the chapters of a tour share.
type cast struct {
	ada, ben, eve person
	completed     transfer
}

func (t *tour) openAccounts(ctx context.Context, c *cast) error {
	t.title("Two accounts")
	t.say("account owns the balances and a ledger of double entries; an opening balance comes from a funding account.")
	c.ada = person{name: "Ada", id: uuid.NewString(), balance: 100_000}
	c.ben = person{name: "Ben", id: uuid.NewString(), balance: 20_000}
	c.eve = person{name: "Eve", id: uuid.NewString(), balance: 0}
	for _, p := range []*person{&c.ada, &c.ben, &c.eve} {
		if _, err := t.to.account().do(ctx, http.MethodPost, "/accounts", map[string]any{
			"id": p.id, "owner": p.name + " (tour)", "currency": "EUR", "openingBalanceMinor": p.balance}, nil); err != nil {
			return err
		}
	}
	return t.checkBalances(ctx, &c.ada, &c.ben)
}

func (t *tour) completeTransfer(ctx context.Context, c *cast) error {
	t.title("Money moves")
	t.say("transfer writes the transfer and its first message in one transaction. account debits Ada into transit and says so;\n" +
		"transfer asks for the credit; account moves it on to Ben. Each step is a local transaction and a message.")
	ended, err := t.transfer(ctx, transferCreate{From: c.ada.id, To: c.ben.id, Amount: 2_500, Currency: "EUR", Reference: "lunch", Key: uuid.NewString()})
	if err != nil {
		return err
	}
	c.completed = ended
	c.ada.balance -= 2_500
	c.ben.balance += 2_500
	t.check(ended.Status == "COMPLETED", "the transfer is COMPLETED")
	return t.checkBalances(ctx, &c.ada, &c.ben)
}

func (t *tour) refuseForFunds(ctx context.Context, c *cast) error {
	t.title("Not enough money")
	t.say("A rule that says no is an answer, not an error: nothing is retried, nothing is parked.")
	ended, err := t.transfer(ctx, transferCreate{From: c.ben.id, To: c.ada.id, Amount: 99_999_999, Currency: "EUR", Key: uuid.NewString()})
	if err != nil {
		return err
	}
	t.check(ended.Status == "REJECTED" && ended.Reason == contract.InsufficientFunds, "the transfer is REJECTED for INSUFFICIENT_FUNDS")
	return t.checkBalances(ctx, &c.ada, &c.ben)
}

func (t *tour) refundFromFrozen(ctx context.Context, c *cast) error {
	t.title("The destination is frozen: a refund")
	t.say("Ada has been debited by the time account learns that Eve's account is frozen. The saga cannot roll back a committed\n" +
		"transaction; it compensates with a third one.")
	if _, err := t.to.account().do(ctx, http.MethodPost, "/accounts/"+c.eve.id+"/freeze", nil, nil); err != nil {
		return err
	}
	ended, err := t.transfer(ctx, transferCreate{From: c.ada.id, To: c.eve.id, Amount: 10_000, Currency: "EUR", Key: uuid.NewString()})
	if err != nil {
		return err
	}
	t.check(ended.Status == "REFUNDED" && ended.Reason == contract.AccountFrozen, "the transfer is REFUNDED, because of ACCOUNT_FROZEN")
	return t.checkBalances(ctx, &c.ada, &c.eve)
}

func (t *tour) repeatWithKey(ctx context.Context, c *cast) error {
	t.title("The same request twice")
	t.say("A client that got no answer asks again, with the same Idempotency-Key.")
	request := transferCreate{From: c.ada.id, To: c.ben.id, Amount: 1_000, Currency: "EUR", Key: uuid.NewString()}
	first, err := t.transfer(ctx, request)
	if err != nil {
		return err
	}
	c.ada.balance -= 1_000
	c.ben.balance += 1_000
	second, replayed, err := createTransfer(ctx, t.to.transfer(), request)
	if err != nil {
		return err
	}
	t.check(second.ID == first.ID && replayed, "the second answer is the first transfer again, marked Idempotency-Replayed")
	request.Amount = 9_999
	_, _, err = createTransfer(ctx, t.to.transfer(), request)
	t.check(refusedWith(err, http.StatusUnprocessableEntity), "the same key with another amount is refused with 422")
	return t.checkBalances(ctx, &c.ada, &c.ben)
}

func (t *tour) repeatEvents(ctx context.Context, c *cast) error {
	t.title("A duplicate and a reordered event, by hand")
	t.say("A broker may deliver twice and in any order. First the Debited event of Ada's lunch once more, to the letter: transfer's\n" +
		"inbox knows its id. Then Credited and Debited under new ids, the later one first: the set of facts has them already.")
	var debited string
	for _, f := range c.completed.Timeline {
		if f.Fact == "DEBITED" {
			debited = f.MessageID
		}
	}
	late := []string{uuid.NewString(), uuid.NewString()}
	for _, event := range []struct{ id, kind, account string }{
		{debited, contract.AccountDebited, c.ada.id},
		{late[0], contract.AccountCredited, c.ben.id},
		{late[1], contract.AccountDebited, c.ada.id},
	} {
		body, err := json.Marshal(map[string]any{"messageId": event.id, "type": event.kind, "occurredAt": time.Now().UTC(),
			"correlationId": c.completed.ID, "data": map[string]any{"transferId": c.completed.ID, "accountId": event.account,
				"amountMinor": c.completed.AmountMinor, "currency": c.completed.Currency}})
		if err != nil {
			return err
		}
		if err := t.publish(ctx, contract.RoutingKey(event.kind), body); err != nil {
			return err
		}
	}
	seen, err := t.awaitInbox(ctx, append(late, debited))
	if err != nil {
		return err
	}
	t.check(seen == 3, "transfer's inbox holds each of the three ids once")
	now, err := getTransfer(ctx, t.to.transfer(), c.completed.ID)
	if err != nil {
		return err
	}
	t.check(now.Status == "COMPLETED" && slices.Equal(now.Timeline, c.completed.Timeline), "the transfer and its timeline are what they were")
	return t.checkBalances(ctx, &c.ada, &c.ben)
}

// awaitInbox waits until transfer has processed the messages with the given ids, and counts their rows.
func (t *tour) awaitInbox(ctx context.Context, ids []string) (rows int, err error) {
	conn, err := pgx.Connect(ctx, t.to.TransferDatabaseURL)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	err = await(ctx, 30*time.Second, "transfer to process the events", func(ctx context.Context) (bool, error) {
		err := conn.QueryRow(ctx, `select count(*) from inbox where message_id = any($1)`, ids).Scan(&rows)
		return rows >= len(ids), err
	})
	return rows, err
}

// poison is the message of the first exercise, an event about a transfer that never was, under an id of its own: who publishes poison-1 by hand
// after the tour shall find only what became of that.
const poison = `{"messageId":"tour-poison","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`

func (t *tour) parkPoison(ctx context.Context, _ *cast) error {
	t.title("A message that cannot be handled")
	t.say("%s\n"+
		"It may be early rather than wrong, so transfer tries three times: rejected, it waits five seconds in the retry queue, and\n"+
		"comes back with one more death in its x-death header. Then it is parked, with the reason.", poison)
	before, err := t.parked(ctx)
	if err != nil {
		return err
	}
	attempts, err := followAttempts(t.logs, "transfer", "tour-poison")
	if err != nil {
		return err
	}
	defer attempts.close()
	if err := t.publish(ctx, contract.RoutingKey(contract.AccountDebited), []byte(poison)); err != nil {
		return err
	}
	var seen []attempt
	err = await(ctx, time.Minute, "the message to be given up", func(context.Context) (bool, error) {
		fresh, err := attempts.read()
		for _, a := range fresh {
			t.say("%s  attempt %s  %s  %s", a.Time.Format("15:04:05.000"), a.Attempt, a.Class, a.outcome())
		}
		seen = append(seen, fresh...)
		return len(seen) > 0 && seen[len(seen)-1].Reason != "", err
	})
	if err != nil {
		return err
	}
	after, err := t.parked(ctx)
	if err != nil {
		return err
	}
	t.check(len(after) == len(before)+1, "it is parked once")
	t.check(len(seen) == 3, "after exactly 3 attempts")
	for i := 1; i < len(seen); i++ {
		lap := seen[i].Time.Sub(seen[i-1].Time)
		t.check(lap > 4500*time.Millisecond && lap < 8*time.Second, "lap %d took %.1f s", i, lap.Seconds())
	}
	if len(after) == 0 {
		return nil
	}
	last := after[len(after)-1]
	t.check(fmt.Sprint(last.Headers["x-attempts"]) == "3" && last.Headers["x-last-error"] != nil && string(last.Body) == poison,
		"with its attempts and the error beside it, and its body untouched")
	for _, name := range []string{"x-attempts", "x-error-class", "x-park-reason", "x-last-error", "x-origin-queue", "x-first-failed-at", "x-parked-at"} {
		t.say("%-18s %v", name, last.Headers[name])
	}
	return nil
}

// parked are the poison messages in the parking lot, the oldest first.
func (t *tour) parked(ctx context.Context) ([]amqp.Delivery, error) {
	var found []amqp.Delivery
	err := t.broker.peek(ctx, contract.ParkingLot, func(message amqp.Delivery) {
		if string(message.Body) == poison {
			found = append(found, message)
		}
	})
	return found, err
}

func (t *tour) publish(ctx context.Context, key string, body []byte) error {
	return t.broker.publish(ctx, contract.EventsExchange, key, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body})
}

func (t *tour) verifyAll(ctx context.Context, _ *cast) error {
	t.title("Is every cent and every message accounted for?")
	report, err := verify(ctx, t.to, 30*time.Second)
	if err != nil {
		return err
	}
	printReport(t.out, report)
	t.check(report.Quiet, "the system has come to rest")
	for _, check := range report.Checks {
		t.check(check.Verdict == invariants.Held, "%s", check.Promise)
	}
	return nil
}
