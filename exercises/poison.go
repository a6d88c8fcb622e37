package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
)

// poison is the message that this whole project began with.
var poison = Exercise{
	Number: 1, Name: "poison", Title: "The poison event",
	Question: "An event names a transfer that nobody knows. How often is it tried, how far apart, where does it end, and what happens to the events behind it?",
	Assumes:  []Assumption{onTheLap},
	Takes:    15 * time.Second,
	play: func(ctx context.Context, r *run) error {
		const attempts = 3
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		lap, err := r.broker.lapTime(ctx)
		if err != nil {
			return err
		}
		failed, err := r.transfer.metric(ctx, "messaging_failures_total", `class="NOT_FOUND"`)
		if err != nil {
			return err
		}
		id := fresh("poison")
		r.discardLater(r.transfer, id)
		body := fmt.Appendf(nil, `{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`, id)
		if err := r.inject(fmt.Sprintf("Publish %s under accounts.account.debited.", body), func() error {
			return r.broker.publish(ctx, contract.RoutingKey(contract.AccountDebited), body)
		}); err != nil {
			return err
		}

		// Each execution is an attempt that fails; the lap between two of them is spent in the retry queue.
		for n := 1; n <= attempts; n++ {
			if err := r.awaitFault(ctx, fmt.Sprintf("It is executed and fails: attempt %d of %d.", n, attempts), func(ctx context.Context) (bool, error) {
				now, err := r.transfer.metric(ctx, "messaging_failures_total", `class="NOT_FOUND"`)
				return now >= failed+float64(n), err
			}); err != nil {
				return err
			}
			if n == 1 {
				if err := r.passes(ctx, payer, payee); err != nil {
					return err
				}
			}
		}
		p, err := r.awaitParked(ctx, r.transfer, id, "Then it is in the parking lot.")
		if err != nil {
			return err
		}
		r.saw("bank parked show "+id+" · console: Parked", p.Error, p.figures()...)
		if err := r.laps(id, lap, attempts); err != nil {
			return err
		}
		if err := r.happened(p.took() >= (attempts-1)*lap-time.Second, fmt.Sprintf("From the first failure to the end there are two laps of %s.", lap),
			figure("took", p.took())); err != nil {
			return err
		}
		return r.recovered(p.Queue == contract.ParkingLot && p.Reason == "MAX_ATTEMPTS" && p.Class == "NOT_FOUND" && p.Attempts == attempts,
			"It is parked once, and its headers say why.", p.figures()...)
	},
}

// passes sends a transfer and demands that it completes: what waits stands in nobody's way.
func (r *run) passes(ctx context.Context, from, to customer) error {
	began := time.Now()
	id, err := r.send(ctx, from, to)
	if err != nil {
		return err
	}
	t, err := r.end(ctx, id)
	if err != nil {
		return err
	}
	return r.recovered(t.Status == "COMPLETED", "Meanwhile a transfer goes through as if nothing were wrong.", figure("status", t.Status), figure("took", time.Since(began)), figure("transfer", id))
}
