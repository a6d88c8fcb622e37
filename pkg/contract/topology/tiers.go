package topology

import (
	"math"
	"slices"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
)

// TransferTiered is what the transfer service declares in the tiered profile: all of Transfer, and a queue for each wait.
//
// The lap's retry queue stays declared. What was under way when the profile was changed comes back from it, and what somebody else rejects
// still finds its lap. Tier queues of other delays are left alone for the same reason: they empty themselves into the main queue.
func TransferTiered(kind messaging.QueueType, retryDelay time.Duration, delays []time.Duration, jitter float64) messaging.Topology {
	t := Transfer(kind, retryDelay)
	declared := make(map[time.Duration]bool)
	for _, delay := range delays {
		for _, ttl := range Spread(delay, jitter) {
			if declared[ttl] {
				continue // two tiers meet in it
			}
			declared[ttl] = true
			t.Queues = append(t.Queues,
				messaging.NewQueue(contract.RetryTierQueue(ttl), kind).ExpireAfter(ttl).DeadLetterTo("", contract.AccountEventsQueue))
		}
	}
	return t
}

// RetryTiers are the tiers of the queues that TransferTiered declares for the same delays and jitter, for messaging.Tiered.
func RetryTiers(delays []time.Duration, jitter float64) []messaging.Tier {
	tiers := make([]messaging.Tier, len(delays))
	for i, delay := range delays {
		tiers[i].Delay = delay
		for _, ttl := range Spread(delay, jitter) {
			tiers[i].Queues = append(tiers[i].Queues, contract.RetryTierQueue(ttl))
		}
	}
	return tiers
}

// Spread is a delay and what lies a share of it below and above, in whole milliseconds, as a queue's time to live must be: the queues
// of one tier.
func Spread(delay time.Duration, share float64) []time.Duration {
	var ttls []time.Duration
	for _, by := range []float64{1 - share, 1, 1 + share} {
		ttl := time.Duration(math.Round(delay.Seconds()*by*1000)) * time.Millisecond
		ttls = append(ttls, max(ttl, time.Millisecond))
	}
	return slices.Compact(ttls)
}
