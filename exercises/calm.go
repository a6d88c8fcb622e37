package exercises

import (
	"context"
	"time"

	"example.com/banking/pkg/contract"
)

// calm says whether nothing is on its way to anybody: no queue holds anything, nobody waits between two attempts, and for a moment no
// message comes to its end. The management API would know what is being handled, but what it knows may be seconds old.
func (r *run) calm(ctx context.Context) (bool, error) {
	const looks, pause = 5, 50 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	before := -1.0
	for range looks {
		for _, name := range []string{contract.TransferRequestedQueue, contract.CreditRequestedQueue, contract.RefundRequestedQueue,
			contract.AccountEventsQueue, contract.AccountEventsRetry} {
			if waiting, _, err := r.broker.depth(name); err != nil || waiting > 0 {
				return false, err
			}
		}
		if held, err := r.both(ctx, "messaging_waiting"); err != nil || held > 0 {
			return false, err
		}
		ended, err := r.both(ctx, "messaging_deliveries_total")
		if err != nil || before >= 0 && ended != before {
			return false, err
		}
		before = ended
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	return true, nil
}

// both is the sum of a metric over both services.
func (r *run) both(ctx context.Context, metric string, labels ...string) (float64, error) {
	account, err := r.account.metric(ctx, metric, labels...)
	if err != nil {
		return 0, err
	}
	transfer, err := r.transfer.metric(ctx, metric, labels...)
	return account + transfer, err
}
