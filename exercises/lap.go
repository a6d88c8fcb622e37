package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
)

// lap shows the retry of exercise 1 from the broker's side: where messages are while they wait.
var lap = Exercise{
	Number: 3, Name: "lap", Title: "A lap live",
	Question: "Five events fail together. Where are they between two attempts, and who holds them? Can the service be restarted meanwhile?",
	Assumes:  []Assumption{onTheLap},
	Takes:    15 * time.Second,
	play: func(ctx context.Context, r *run) error {
		const events, attempts = 5, 3
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		failed, err := r.transfer.metric(ctx, "messaging_failures_total", `class="NOT_FOUND"`)
		if err != nil {
			return err
		}
		before, _, err := r.broker.depth(contract.ParkingLot)
		if err != nil {
			return err
		}
		var ids []string
		var bodies [][]byte
		for range events {
			id := fresh("lap")
			ids = append(ids, id)
			bodies = append(bodies, fmt.Appendf(nil, `{"messageId":%q,"type":"Accounts.Account.Debited","data":{"transferId":%q}}`, id, "unknown-"+id))
		}
		r.discardLater(r.transfer, ids...)
		if err := r.inject(fmt.Sprintf("Publish %d events about transfers that nobody knows.", events), func() error {
			return r.broker.publish(ctx, contract.RoutingKey(contract.AccountDebited), bodies...)
		}); err != nil {
			return err
		}

		// How many waited in the retry queue after the first attempt, and how many after the second.
		var waited [attempts + 1]int
		var shown [3]int
		began := time.Now()
		err = r.awaitFault(ctx, "All of them have made their laps and are in the parking lot.", func(ctx context.Context) (bool, error) {
			tried, err := r.transfer.metric(ctx, "messaging_failures_total", `class="NOT_FOUND"`)
			if err != nil {
				return false, err
			}
			var depths [3]int
			for i, name := range []string{contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot} {
				if depths[i], _, err = r.broker.depth(name); err != nil {
					return false, err
				}
			}
			if depths != shown {
				shown = depths
				r.saw("bank queues --watch", fmt.Sprintf("after %.1f s", time.Since(began).Seconds()), figure("executions", tried-failed),
					figure(contract.AccountEventsQueue, depths[0]), figure(contract.AccountEventsRetry, depths[1]), figure(contract.ParkingLot, depths[2]))
			}
			if round := (int(tried-failed) + events - 1) / events; round >= 1 && round <= attempts {
				waited[round] = max(waited[round], depths[1])
			}
			return int(tried-failed) >= events*attempts && depths[2] >= before+events, nil
		})
		if err != nil {
			return err
		}
		if err := r.happened(waited[1] > 0 && waited[2] > 0, "Between the attempts they were in the retry queue, twice: no process held them.",
			figure("after attempt 1", waited[1]), figure("after attempt 2", waited[2])); err != nil {
			return err
		}
		if err := r.passes(ctx, payer, payee); err != nil {
			return err
		}
		left, _, err := r.broker.depth(contract.AccountEventsRetry)
		if err != nil {
			return err
		}
		return r.recovered(left == 0, "Nothing is left on the lap.", figure(contract.AccountEventsRetry, left))
	},
}
