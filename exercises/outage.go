package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/internal/control"
	"example.com/banking/pkg/contract"
)

// outage takes the database away for a minute while requests wait.
var outage = Exercise{
	Number: 8, Name: "database-down", Title: "The database is away for a minute",
	Question: "A hundred requests wait, and PostgreSQL stops. Each message has four attempts, and the outage lasts longer than all of them. How many end in quarantine?",
	Needs:    []Need{Control},
	Assumes: []Assumption{
		{Service: "account", Settings: map[string]string{"BREAKER": "on", "RETRY_CLASSIFY": "on"}},
		{Service: "transfer", Settings: map[string]string{"BREAKER": "on", "RETRY_CLASSIFY": "on"}},
	},
	Takes: 75 * time.Second,
	play: func(ctx context.Context, r *run) error {
		const requests = 100
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		quarantined, err := r.both(ctx, "messaging_quarantined_total")
		if err != nil {
			return err
		}
		for _, name := range []string{"postgres", r.account.name} {
			r.usualLater(name)
		}
		r.do("account is paused, and %d transfers are asked for: their requests wait at the broker.", requests)
		if _, err := r.order(ctx, r.account.name, control.Pause, nil); err != nil {
			return err
		}
		ids, err := r.sendMany(ctx, requests, payer, payee)
		if err != nil {
			return err
		}
		ofTransfer, err := r.transfer.metric(ctx, "messaging_failures_total")
		if err != nil {
			return err
		}
		if err := r.inject("PostgreSQL is stopped.", func() error {
			_, err := r.order(ctx, "postgres", control.Stop, nil)
			return err
		}); err != nil {
			return err
		}
		away := time.Now()
		if _, err := r.order(ctx, r.account.name, control.Resume, nil); err != nil {
			return err
		}
		ofAccount, err := r.account.metric(ctx, "messaging_failures_total")
		if err != nil {
			return err
		}
		spent := ofAccount + ofTransfer

		if err := r.awaitFault(ctx, "account finds the database down and opens its breaker.", func(ctx context.Context) (bool, error) {
			state, err := r.account.metric(ctx, "messaging_breaker_state", fmt.Sprintf("queue=%q", contract.TransferRequestedQueue))
			return state == 2, err
		}); err != nil {
			return err
		}
		if err := r.awaitFault(ctx, "It takes nothing any more: the broker counts no consumer, and the requests wait there.", func(ctx context.Context) (bool, error) {
			waiting, consumers, err := r.broker.depth(contract.TransferRequestedQueue)
			return consumers == 0 && waiting > 0, err
		}); err != nil {
			return err
		}
		waiting, _, err := r.broker.depth(contract.TransferRequestedQueue)
		if err != nil {
			return err
		}
		r.saw("console: Overview · bank queues · curl $ACCOUNT_URL/readyz", "So it stays until the database is back.",
			figure("waiting", waiting), figure("away for", r.Outage))
		if err := r.stayAway(ctx, away, spent); err != nil {
			return err
		}

		if _, err := r.order(ctx, "postgres", control.Start, nil); err != nil {
			return fmt.Errorf("starting PostgreSQL again: %w", err)
		}
		back := time.Now()
		r.do("PostgreSQL is back. Nobody tells the services.")
		var done int
		if err := r.awaitRecovery(ctx, fmt.Sprintf("All %d transfers complete.", requests), func(ctx context.Context) (bool, error) {
			var err error
			done, err = r.completed(ctx, ids)
			return done == requests, err
		}); err != nil {
			return err
		}
		r.saw("bank transfer list", "From its return to the last transfer:", figure("took", time.Since(back)))
		after, err := r.both(ctx, "messaging_failures_total")
		if err != nil {
			return err
		}
		if err := r.recovered(after == spent, "No attempt was spent: a message is not to blame for an outage.", figure("attempts spent", after-spent)); err != nil {
			return err
		}
		now, err := r.both(ctx, "messaging_quarantined_total")
		if err != nil {
			return err
		}
		return r.recovered(now == quarantined, "Nothing was given up.", figure("quarantined", now-quarantined))
	},
}

// stayAway lets the outage last as long as it has to, with a sign of life now and then.
func (r *run) stayAway(ctx context.Context, since time.Time, before float64) error {
	over := time.NewTimer(time.Until(since.Add(r.Outage)))
	defer over.Stop()
	sign := time.NewTicker(15 * time.Second)
	defer sign.Stop()
	for {
		select {
		case <-over.C:
			return nil
		case <-sign.C:
			spent, err := r.both(ctx, "messaging_failures_total")
			if err != nil {
				return err
			}
			r.saw("curl $ACCOUNT_URL/metrics", fmt.Sprintf("away for %.0f s", time.Since(since).Seconds()), figure("attempts spent", spent-before))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
