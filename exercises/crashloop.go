package exercises

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/banking/pkg/contract"
)

// crashLoop sends a message that ends every process that handles it.
var crashLoop = Exercise{
	Number: 11, Name: "crash-loop", Title: "The message that kills its consumer",
	Question: "A message makes its consumer crash. Nobody rejects it, so nobody counts: the broker hands it out again, with everything that was prefetched. Who stops that, and what becomes of its neighbours?",
	Needs:    []Need{Faults},
	Takes:    10 * time.Second,
	play: func(ctx context.Context, r *run) error {
		const starts, neighbours = 3, 19
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		began, err := r.transfer.began(ctx)
		if err != nil {
			return err
		}
		killer := fresh("killer")
		r.discardLater(r.transfer, killer)
		if err := r.inject("transfer will end at once whenever it handles the message "+killer+".", func() error {
			return r.arm(ctx, r.transfer, fault{Point: "handler", Action: "exit", MessageID: killer})
		}); err != nil {
			return err
		}
		ids, err := r.sendMany(ctx, neighbours/2, payer, payee)
		if err != nil {
			return err
		}
		if err := r.inject("The message is published, amid transfers.", func() error {
			return r.broker.publish(ctx, contract.RoutingKey(contract.AccountDebited),
				fmt.Appendf(nil, `{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`, killer))
		}); err != nil {
			return err
		}
		var rest []string
		var sending errgroup.Group
		sending.Go(func() (err error) { // clients ask again while transfer is dead
			rest, err = r.sendMany(ctx, neighbours-len(ids), payer, payee)
			return err
		})
		defer func() { _ = sending.Wait() }() // also when this ends early
		var p parked
		if err := r.awaitFault(ctx, "It is in the parking lot: a fourth process has not begun it.", func(ctx context.Context) (ok bool, err error) {
			r.hurry(ctx, r.transfer.name)
			now, err := r.transfer.began(ctx) // a process may die of it before it could be asked
			if err != nil {
				return false, err
			}
			if now != began {
				began = now
				r.saw("bank service list", "transfer has died, and another process runs.")
			}
			p, ok, err = r.transfer.parkedWith(ctx, killer)
			return ok, err
		}); err != nil {
			return err
		}
		if err := sending.Wait(); err != nil {
			return err
		}
		ids = append(ids, rest...)
		r.saw("bank parked show "+killer+" · console: Parked", p.Error, p.figures()...)
		fired, err := r.transfer.fired(ctx)
		if err != nil {
			return err
		}
		if err := r.happened(fired == starts && p.Reason == "CRASH_LOOP" && p.Attempts == starts, "It has killed its consumer three times, and no more.",
			figure("deaths", fired), figure("reason", p.Reason), figure("attempts", p.Attempts)); err != nil {
			return err
		}
		return r.awaitRecovery(ctx, fmt.Sprintf("All %d transfers around it complete.", neighbours), func(ctx context.Context) (bool, error) {
			done, err := r.completed(ctx, ids)
			return done == neighbours, err
		})
	},
}
