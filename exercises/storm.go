package exercises

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/banking/internal/control"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
)

const (
	stormSize   = 200
	stormTier   = time.Second
	stormJitter = 0.5
	stormWindow = 5 * time.Second // from the first failure: how long the dependency is sick
)

// storm lets many messages fail together, and looks what their retries do to who made them fail.
var storm = Exercise{
	Number: 10, Name: "retry-storm", Title: "The retry storm",
	Question: "Two hundred events fail at the same moment because a dependency is sick. When do they come back, how often, and does that help it to recover?",
	Needs:    []Need{Control, Faults},
	Takes:    40 * time.Second,
	play: func(ctx context.Context, r *run) error {
		r.onReset(discarding, "The queues of the tiers are deleted.", func(ctx context.Context) error { return r.removeTiers(ctx) })
		var storms []stormSeen
		for _, s := range []struct {
			name     string
			settings map[string]string
			jitter   float64
		}{
			{"synchronized, no budget", map[string]string{"RETRY_JITTER": "0", "RETRY_BUDGET": "off"}, 0},
			{"jittered, no budget", map[string]string{"RETRY_JITTER": fmt.Sprint(stormJitter), "RETRY_BUDGET": "off"}, stormJitter},
			{"jittered, with budget", map[string]string{"RETRY_JITTER": fmt.Sprint(stormJitter), "RETRY_BUDGET": "on"}, stormJitter},
		} {
			for name, value := range map[string]string{"FAULTS": "on", "RETRY_PROFILE": "tiered", "RETRY_TIERS": stormTier.String(), "MAX_ATTEMPTS": "100", "BREAKER": "off",
				"RETRY_CLASSIFY": "on", "CONSUMER_RATE_LIMIT": "0"} {
				s.settings[name] = value
			}
			seen, err := r.storm(ctx, s.name, s.settings, s.jitter)
			if err != nil {
				return err
			}
			storms = append(storms, seen)
		}
		synchronized, jittered, budgeted := storms[0], storms[1], storms[2]
		if err := r.happened(synchronized.together > 0.9 && jittered.together < 0.6, "Without jitter all of them come back in one wave; with it the largest wave is a part of them.",
			figure("largest wave, synchronized", percent(synchronized.together)), figure("largest wave, jittered", percent(jittered.together))); err != nil {
			return err
		}
		return r.recovered(budgeted.attempts < jittered.attempts, fmt.Sprintf("The budget spares the dependency: fewer calls within the same %s.", stormWindow),
			figure("without budget", jittered.attempts), figure("with budget", budgeted.attempts))
	},
}

// stormSeen is what was measured of one storm.
type stormSeen struct {
	together float64 // share of the first retries that had the same wait
	widest   int     // most of them that came back within 100 ms
	attempts float64 // failed calls within the window
}

// storm lets all events of as many transfers fail, from the same moment on, until the window is over.
func (r *run) storm(ctx context.Context, name string, settings map[string]string, jitter float64) (seen stormSeen, err error) {
	payer, payee, err := r.pair(ctx)
	if err != nil {
		return seen, err
	}
	r.do("transfer is started anew: %s.", name)
	if err := r.restart(ctx, r.transfer.name, settings); err != nil {
		return seen, err
	}
	if err := r.inject("What transfer's handler needs is sick: every call fails with TIMEOUT.", func() error {
		return r.arm(ctx, r.transfer, fault{Point: "handler", Action: "error", Class: "TIMEOUT"})
	}); err != nil {
		return seen, err
	}
	ids, err := r.gather(ctx, stormSize, settings, payer, payee)
	if err != nil {
		return seen, err
	}
	seen, err = r.watchStorm(ctx, jitter)
	if err != nil {
		return seen, err
	}
	r.saw("console: Overview · bank queues --watch", name, figure("largest wave", percent(seen.together)), figure("most retries in 100 ms", seen.widest), figure("failed calls", seen.attempts),
		figure("within", stormWindow))

	r.do("The dependency is well again.")
	if err := r.disarm(ctx, r.transfer); err != nil {
		return seen, err
	}
	if settings["RETRY_BUDGET"] == "on" {
		// What is left of the budget lets one message start each ten seconds. A fresh process has a full one.
		if err := r.restart(ctx, r.transfer.name, settings); err != nil {
			return seen, err
		}
	}
	err = r.awaitRecovery(ctx, fmt.Sprintf("All %d transfers complete.", stormSize), func(ctx context.Context) (bool, error) {
		done, err := r.completed(ctx, ids)
		return done == stormSize, err
	})
	return seen, err
}

// gather sees to it that the events of n transfers lie in transfer's queue before the first of them is handled: then both are stopped and
// started again one after the other, transfer last and under its settings.
func (r *run) gather(ctx context.Context, n int, settings map[string]string, from, to customer) ([]string, error) {
	r.usualLater(r.account.name)
	r.do("While first account and then transfer are stopped, the events of %d transfers gather in transfer's queue.", n)
	if _, err := r.order(ctx, r.account.name, control.Stop, nil); err != nil {
		return nil, err
	}
	ids, err := r.sendMany(ctx, n, from, to)
	if err != nil {
		return nil, err
	}
	if err := r.awaitDepth(ctx, contract.TransferRequestedQueue, n); err != nil {
		return nil, err
	}
	if _, err := r.order(ctx, r.transfer.name, control.Stop, nil); err != nil {
		return nil, err
	}
	if _, err := r.order(ctx, r.account.name, control.Start, nil); err != nil {
		return nil, err
	}
	if err := r.awaitDepth(ctx, contract.AccountEventsQueue, n); err != nil {
		return nil, err
	}
	_, err = r.order(ctx, r.transfer.name, control.Start, settings)
	return ids, err
}

// awaitDepth waits until so many messages wait in a queue that nobody takes from.
func (r *run) awaitDepth(ctx context.Context, name string, n int) error {
	if err := r.await(ctx, time.Minute, func(context.Context) (bool, error) {
		waiting, _, err := r.broker.depth(name)
		return waiting >= n, err
	}); err != nil {
		return fmt.Errorf("%d messages in %s: %w", n, name, err)
	}
	return nil
}

// watchStorm counts failed calls and what leaves the waiting queues, from the first failure until the window is over.
func (r *run) watchStorm(ctx context.Context, jitter float64) (seen stormSeen, err error) {
	failed := func(ctx context.Context) (float64, error) {
		return r.transfer.metric(ctx, "messaging_failures_total", `class="TIMEOUT"`)
	}
	if err := r.awaitFault(ctx, "They fail, all together.", func(ctx context.Context) (bool, error) {
		n, err := failed(ctx)
		return n > 0, err
	}); err != nil {
		return seen, err
	}
	began := time.Now()
	queues := topology.RetryTiers([]time.Duration{stormTier}, jitter)[0].Queues
	left := make(map[int]int) // by tenth of a second
	waves := make([]int, len(queues))
	before := make([]int, len(queues))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Since(began) < stormWindow {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return seen, ctx.Err()
		}
		firstWave := time.Since(began) < stormTier+time.Duration(jitter*float64(stormTier))+500*time.Millisecond
		for i, name := range queues {
			depth, _, err := r.broker.depth(name)
			if err != nil {
				return seen, err
			}
			if gone := before[i] - depth; gone > 0 && firstWave {
				left[int(time.Since(began)/(100*time.Millisecond))] += gone
				waves[i] += gone
			}
			before[i] = depth
		}
	}
	for _, n := range left {
		seen.widest = max(seen.widest, n)
	}
	total := 0
	for _, n := range waves {
		total += n
	}
	seen.together = float64(slices.Max(waves)) / float64(max(total, 1))
	seen.attempts, err = failed(ctx)
	return seen, err
}

// removeTiers deletes the queues that transfer declared for the storms, to which nobody publishes any more. That none of them counts a message
// does not mean that it holds none: what has expired is counted no more, and is there until the main queue has confirmed it. Where no
// transfer is open there is nothing of the kind, and as long as one is they are not deleted.
func (r *run) removeTiers(ctx context.Context) error {
	names := slices.Concat(topology.RetryTiers([]time.Duration{stormTier}, 0)[0].Queues, topology.RetryTiers([]time.Duration{stormTier}, stormJitter)[0].Queues)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		_, _, err := r.broker.depth(name)
		return err != nil // it was never declared
	})
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		if err := r.await(ctx, time.Minute, func(context.Context) (bool, error) {
			depth, _, err := r.broker.depth(name)
			return depth == 0, err
		}); err != nil {
			return fmt.Errorf("%s does not run empty: %w", name, err)
		}
	}
	var open int
	err := r.await(ctx, r.Patience, func(ctx context.Context) (_ bool, err error) {
		open, err = r.openTransfers(ctx)
		return open == 0, err
	})
	if errors.Is(err, errWaited) && open > 0 {
		r.say(Event{Kind: Reset, Text: "The queues of the tiers stay: a transfer is open, and a message of it may be on its way out of them.", Figures: []Figure{figure("open", open)}})
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for open transfers: %w", err)
	}
	for _, name := range names {
		if err := r.broker.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }
