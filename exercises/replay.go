package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
)

// replay repairs a transfer whose event was parked because of a bug, and shows that the repair can be repeated.
var replay = Exercise{
	Number: 4, Name: "replay", Title: "Repair and replay",
	Question: "A bug has parked an event, and a customer's money hangs in transit. The bug is fixed. How does the event come back, and what if somebody replays it twice?",
	Needs:    []Need{Faults},
	Assumes:  []Assumption{onTheLap},
	Takes:    20 * time.Second,
	play: func(ctx context.Context, r *run) error {
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		if err := r.inject("A bug in transfer: its handler fails, whatever it is given.", func() error {
			return r.arm(ctx, r.transfer, fault{Point: "handler", Action: "error", Class: "UNKNOWN"})
		}); err != nil {
			return err
		}
		id, err := r.send(ctx, payer, payee)
		if err != nil {
			return err
		}
		event := messageID(id, contract.AccountDebited)
		r.discardLater(r.transfer, event)
		p, err := r.awaitParked(ctx, r.transfer, event, "account has debited the payer; the event that says so is parked.")
		if err != nil {
			return err
		}
		stuck, err := r.show(ctx, id)
		if err != nil {
			return err
		}
		if err := r.happened(stuck.Status == "REQUESTED" && p.Reason == "MAX_ATTEMPTS" && p.Class == "UNKNOWN",
			"The transfer does not move, and its money is in transit.", append(p.figures(), figure("status", stuck.Status))...); err != nil {
			return err
		}
		second, err := r.copied(ctx, p.Queue, event)
		if err != nil {
			return err
		}

		r.do("The bug is fixed.")
		if err := r.disarm(ctx, r.transfer); err != nil {
			return err
		}
		if err := r.replayed(ctx, event, "RUN", "The preview says that it will run."); err != nil {
			return err
		}
		done, err := r.end(ctx, id)
		if err != nil {
			return err
		}
		if err := r.recovered(done.Status == "COMPLETED", "The replay completes the transfer.", figure("status", done.Status)); err != nil {
			return err
		}

		r.do("A second copy turns up in the quarantine, as a crash between confirm and ack of the replay would leave it.")
		if err := r.broker.publishTo(ctx, "", p.Queue, second); err != nil {
			return err
		}
		if err := r.replayed(ctx, event, "DUPLICATE", "The preview says that it will be absorbed."); err != nil {
			return err
		}
		if err := r.awaitRecovery(ctx, "It has left the quarantine, and nothing moves.", func(ctx context.Context) (bool, error) {
			if _, there, err := r.transfer.parkedWith(ctx, event); err != nil || there {
				return false, err
			}
			return r.calm(ctx)
		}); err != nil {
			return err
		}
		again, err := r.show(ctx, id)
		if err != nil {
			return err
		}
		events, err := r.life(ctx, id)
		if err != nil {
			return err
		}
		return r.recovered(again.Status == "COMPLETED" && len(again.Timeline) == len(done.Timeline) && len(postings(events)) == 2,
			"Twice is once: the same facts, one debit, one credit.", figure("facts", again.facts()), figure("postings", postings(events)))
	},
}

// messageID is the id under which the services say something about a transfer.
func messageID(transferID, kind string) string {
	return contract.Say(parse(transferID), kind, contract.Data{}).ID.String()
}

// replayed looks at what a replay would do, and does it.
func (r *run) replayed(ctx context.Context, event, forecast, text string) error {
	var preview outcome
	err := r.await(ctx, r.patience(), func(ctx context.Context) (there bool, err error) { // a copy may be on its way still
		if _, there, err = r.transfer.parkedWith(ctx, event); err != nil || !there {
			return false, err
		}
		preview, err = r.replay(ctx, r.transfer, event, false)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	if err := r.recovered(preview.Outcome == "WOULD_REPLAY" && preview.Forecast == forecast, text,
		figure("outcome", preview.Outcome), figure("forecast", preview.Forecast), figure("to", preview.Target), figure("detail", preview.Detail)); err != nil {
		return err
	}
	did, err := r.replay(ctx, r.transfer, event, true)
	if err != nil {
		return err
	}
	r.saw(fmt.Sprintf("bank parked replay --id %s --yes · bank parked audit", event), "It is replayed.", figure("outcome", did.Outcome))
	return nil
}
