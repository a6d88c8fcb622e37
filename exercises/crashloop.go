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
	Takes:    25 * time.Second,
	play: func(ctx context.Context, r *run) error {
		const starts, neighbours = 3, 19
		ada, ben, err := r.pair(ctx)
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
		ids, err := r.sendMany(ctx, neighbours/2, ada, ben)
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
			rest, err = r.sendMany(ctx, neighbours-len(ids), ada, ben)
			return err
		})
		defer func() { _ = sending.Wait() }() // also when this ends early
		for n := 1; n <= starts; n++ {
			if err := r.awaitFault(ctx, fmt.Sprintf("transfer dies of it: start %d.", n), func(ctx context.Context) (bool, error) {
				now, err := r.transfer.began(ctx)
				return err != nil || now != began, nil
			}); err != nil {
				return err
			}
			if began, err = r.reborn(ctx, began); err != nil {
				return err
			}
		}
		if err := sending.Wait(); err != nil {
			return err
		}
		ids = append(ids, rest...)
		p, err := r.awaitParked(ctx, r.transfer, killer, "The fourth process does not begin it: it is in the parking lot.")
		if err != nil {
			return err
		}
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

// reborn waits for the next process of transfer and returns when that began. It may die before it is ready.
func (r *run) reborn(ctx context.Context, before float64) (began float64, err error) {
	err = r.await(ctx, max(r.Patience, time.Minute), func(ctx context.Context) (bool, error) {
		r.hurry(ctx, r.transfer.name)
		var err error
		began, err = r.transfer.began(ctx)
		return err == nil && began != 0 && began != before, err
	})
	if err != nil {
		return 0, fmt.Errorf("%w: transfer does not come back: %w", ErrNotRecovered, err)
	}
	return began, nil
}
