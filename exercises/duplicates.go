package exercises

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"example.com/banking/pkg/contract"
)

// duplicates says everything about a transfer again, several times and backwards.
var duplicates = Exercise{
	Number: 5, Name: "duplicates", Title: "Duplicates and reordering",
	Question: "A broker delivers at least once and promises no order. What happens when every message of a finished transfer comes again: the same, and in new envelopes, the last one first?",
	Takes:    5 * time.Second,
	play: func(ctx context.Context, r *run) error {
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		ear, err := r.broker.listen()
		if err != nil {
			return err
		}
		defer ear.close()
		id, err := r.send(ctx, payer, payee)
		if err != nil {
			return err
		}
		first, err := r.end(ctx, id)
		if err != nil {
			return err
		}
		var events []heard // the requests to account and its answers, in the order in which they were said
		if err := r.await(ctx, r.patience(), func(context.Context) (bool, error) {
			events = slices.DeleteFunc(ear.about(id), func(h heard) bool { return h.kind == contract.TransferCompleted }) // which nobody waits for
			return len(events) == 4, nil
		}); err != nil {
			return fmt.Errorf("listening to the transfer: %w", err)
		}
		r.saw("bank transfer show "+id+" --life", "A transfer was said in four messages.", figure("messages", kinds(events)), figure("facts", first.facts()))
		balances, err := r.balances(ctx, payer, payee)
		if err != nil {
			return err
		}
		done, err := r.done(ctx)
		if err != nil {
			return err
		}

		const copies = 2
		if err := r.inject(fmt.Sprintf("Each of the four comes %d times more, letter for letter.", copies), func() error {
			for range copies {
				for _, h := range events {
					if err := r.broker.publish(ctx, h.key, h.body); err != nil {
						return err
					}
				}
			}
			return nil
		}); err != nil {
			return err
		}
		if err := r.inject("And all four once more under new message ids, the last one first, as from a sender that has forgotten what it said.", func() error {
			for _, h := range slices.Backward(events) {
				if err := r.broker.publish(ctx, h.key, renamed(h.body)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		want := float64(len(events) * (copies + 1))
		if err := r.awaitFault(ctx, fmt.Sprintf("The services have taken all %.0f of them.", want), func(ctx context.Context) (bool, error) {
			now, err := r.done(ctx)
			return now >= done+want, err
		}); err != nil {
			return err
		}
		if err := r.awaitFault(ctx, "account, asked in new words, has said the same again: its answers passed more often than we sent them.", func(context.Context) (bool, error) {
			return ear.copies(messageID(id, contract.AccountDebited)) > 1+copies && ear.copies(messageID(id, contract.AccountCredited)) > 1+copies, nil
		}); err != nil {
			return err
		}

		if err := r.awaitRecovery(ctx, "Nothing moves any more.", r.calm); err != nil {
			return err
		}
		again, err := r.show(ctx, id)
		if err != nil {
			return err
		}
		if err := r.recovered(again.Status == "COMPLETED" && slices.Equal(again.facts(), first.facts()), "The transfer is what it was.",
			figure("status", again.Status), figure("facts", again.facts())); err != nil {
			return err
		}
		life, err := r.life(ctx, id)
		if err != nil {
			return err
		}
		now, err := r.balances(ctx, payer, payee)
		if err != nil {
			return err
		}
		return r.recovered(len(postings(life)) == 2 && slices.Equal(now, balances), "The money has moved once.",
			figure("postings", postings(life)), figure("balances", now))
	},
}

// done counts the messages that both services have finished with, duplicates included.
func (r *run) done(ctx context.Context) (float64, error) {
	return r.both(ctx, "messaging_deliveries_total", `outcome="done"`)
}

// renamed is a body under another message id.
func renamed(body []byte) []byte {
	var members map[string]jsontext.Value // as they stand: no amount passes through a float
	if json.Unmarshal(body, &members) != nil {
		return body
	}
	members["messageId"] = jsontext.Value(strconv.Quote(uuid.NewString()))
	again, err := json.Marshal(members)
	if err != nil {
		return body
	}
	return again
}

func kinds(events []heard) (kinds []string) {
	for _, h := range events {
		kinds = append(kinds, h.kind)
	}
	return kinds
}
