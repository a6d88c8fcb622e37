package exercises

import (
	"context"
	"slices"
	"time"

	"example.com/banking/internal/control"
	"example.com/banking/pkg/contract"
)

// earlyRefund makes the request for a refund arrive before the request for the debit that it undoes.
var earlyRefund = Exercise{
	Number: 7, Name: "refund-before-debit", Title: "The refund before the debit",
	Question: "A transfer times out while its first message is stuck somewhere. account is asked to refund what it has never debited, and then the stuck message arrives. What must not happen?",
	Needs:    []Need{Control},
	Takes:    5 * time.Second,
	play: func(ctx context.Context, r *run) error {
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		before, err := r.balances(ctx, payer, payee)
		if err != nil {
			return err
		}
		const timeout = "1s"
		r.do("transfer is started anew with SAGA_TIMEOUT=%s: what is open for longer is turned back.", timeout)
		if err := r.restart(ctx, r.transfer.name, map[string]string{"SAGA_TIMEOUT": timeout}); err != nil {
			return err
		}
		r.usualLater(r.account.name)
		if err := r.inject("account is stopped, so that its requests wait at the broker.", func() error {
			_, err := r.order(ctx, r.account.name, control.Stop, nil)
			return err
		}); err != nil {
			return err
		}
		id, err := r.send(ctx, payer, payee)
		if err != nil {
			return err
		}
		stuck := &hand{}
		defer stuck.release() // whatever happens, nobody else can have it meanwhile
		if err := r.inject("The request to debit is held: it is on the wire, and does not arrive.", func() error {
			if _, err := stuck.take(ctx, r, contract.TransferRequestedQueue, func(h heard) bool { return h.transferID == id }); err != nil {
				return err
			}
			_, err := r.order(ctx, r.account.name, control.Start, nil)
			return err
		}); err != nil {
			return err
		}

		if err := r.awaitFault(ctx, "The transfer has timed out, and account was asked to refund what it knows nothing of.", func(ctx context.Context) (bool, error) {
			t, err := r.show(ctx, id)
			return t.has("TIMED_OUT") && !t.has("DEBITED"), err
		}); err != nil {
			return err
		}
		if err := r.awaitFault(ctx, "account keeps a tombstone: this transfer must never be debited.", func(ctx context.Context) (bool, error) {
			l, err := r.leg(ctx, id)
			return l.State == "DEBIT_REJECTED" && l.Reason == contract.Cancelled, err
		}); err != nil {
			return err
		}
		t, err := r.end(ctx, id)
		if err != nil {
			return err
		}
		r.saw("bank transfer show "+id+" --life", "The transfer is rejected: no money had moved.", figure("status", t.Status), figure("facts", t.facts()))

		r.do("Now the request to debit arrives.")
		stuck.release()
		request := messageID(id, contract.TransferRequested)
		var life []lifeEvent
		if err := r.awaitRecovery(ctx, "account has handled it.", func(ctx context.Context) (bool, error) {
			var err error
			life, err = r.life(ctx, id)
			return slices.ContainsFunc(life, func(e lifeEvent) bool { return e.Kind == "HANDLED" && e.MessageID == request }), err
		}); err != nil {
			return err
		}
		l, err := r.leg(ctx, id)
		if err != nil {
			return err
		}
		after, err := r.balances(ctx, payer, payee)
		if err != nil {
			return err
		}
		return r.recovered(l.State == "DEBIT_REJECTED" && len(postings(life)) == 0 && slices.Equal(before, after),
			"It finds the tombstone and is refused. Not a cent has moved.", figure("leg", l.State+" "+l.Reason), figure("postings", len(postings(life))))
	},
}
