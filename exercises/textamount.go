package exercises

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"example.com/banking/pkg/contract"
)

// textAmount compares a consumer that knows what kind of failure it has met with one that catches them all.
var textAmount = Exercise{
	Number: 2, Name: "text-amount", Title: "An amount that is a text",
	Question: "A request says \"amountMinor\": \"2500\". It will never become valid. What does it cost to find that out, with classes of failure and with a catch-all?",
	Needs:    []Need{Control},
	Assumes:  []Assumption{{Service: "account", Settings: map[string]string{"RETRY_CLASSIFY": "on"}, Waits: true}},
	Takes:    40 * time.Second,
	play: func(ctx context.Context, r *run) error {
		ids := []string{fresh("text-amount"), fresh("text-amount-catch-all")}
		r.discardLater(r.account, ids...)

		classified, err := r.giveUp(ctx, ids[0])
		if err != nil {
			return err
		}
		if err := r.happened(classified.Attempts == 1 && classified.Reason == "VALIDATION", "It is given up at once: no retry can help.", classified.figures()...); err != nil {
			return err
		}

		r.do("account is started anew with RETRY_CLASSIFY=off: every failure is retried alike, which is what a catch-all does.")
		if err := r.restart(ctx, r.account.name, map[string]string{"RETRY_CLASSIFY": "off"}); err != nil {
			return err
		}
		alike, err := r.giveUp(ctx, ids[1])
		if err != nil {
			return err
		}
		if err := r.happened(alike.Attempts > 1 && alike.Reason == "MAX_ATTEMPTS" && alike.took() > classified.took(),
			"The same message makes all of its attempts, and ends where it would have ended at once.", alike.figures()...); err != nil {
			return err
		}
		r.saw("bank parked show "+ids[1], "Side by side, for the same message that was wrong from the beginning:",
			figure("with classes", fmt.Sprintf("%d attempt, %s", classified.Attempts, classified.took().Round(time.Millisecond))),
			figure("catch-all", fmt.Sprintf("%d attempts, %s", alike.Attempts, alike.took().Round(time.Millisecond))))
		return r.recovered(classified.Queue == alike.Queue && alike.Class == "VALIDATION", "Both are in account's error queue, with the class in their headers.",
			figure("queue", alike.Queue))
	},
}

// giveUp publishes a request whose amount is a text, watches the attempts at it and returns what is left of it.
func (r *run) giveUp(ctx context.Context, id string) (p parked, err error) {
	transferID := uuid.NewString()
	body := fmt.Appendf(nil, `{"messageId":%q,"type":"Transfers.Transfer.Requested","data":{"transferId":%q,"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":"2500","currency":"EUR"}}`,
		id, transferID, uuid.NewString(), uuid.NewString())
	if err := r.inject(`Publish a transfers.transfer.requested with "amountMinor": "2500".`, func() error {
		return r.broker.publish(ctx, contract.RoutingKey(contract.TransferRequested), body)
	}); err != nil {
		return p, err
	}
	told := 0
	err = r.awaitFault(ctx, "It is in account's error queue.", func(ctx context.Context) (ok bool, err error) {
		all, err := r.attempts(r.account, id)
		for ; told < len(all); told++ {
			r.saw("grep "+id+" .bank/logs/account.log", "attempt "+all[told].Attempt+" has failed",
				figure("since the first", all[told].At.Sub(all[0].At)), figure("class", all[told].Class))
		}
		if err != nil {
			return false, err
		}
		p, ok, err = r.account.parkedWith(ctx, id)
		return ok, err
	})
	return p, err
}
