package messaging

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Road says where failed messages go: how one waits for its next attempt, and where it goes when there is none. InProcess,
// Lap and Tiered make one.
type Road struct {
	// RetryQueue is set on the lap road: a failed message is rejected, dead-lettered by the broker into this queue and comes
	// back when its time to live is over.
	RetryQueue string

	// Tiers are set on the tiered road, the shortest delay first: a copy of a failed message is published to a queue of the
	// tier that fits the delay, and comes back when the queue's time to live is over. Without a RetryQueue and tiers it is the
	// road in process: the consumer holds the message while it waits.
	Tiers []Tier

	// QuarantineExchange and QuarantineKey are where a message is published to that is given up. With
	// an empty key the message keeps its original routing key.
	QuarantineExchange string
	QuarantineKey      string

	// MassTransit adds the MT-* headers, by which tools of that ecosystem read an error queue.
	MassTransit bool
}

// Tier is one length of wait at the broker.
type Tier struct {
	Delay time.Duration
	// Queues have fixed times to live at and around Delay. One of them is picked at random for each message, so that messages that
	// failed together do not come back together. The jitter cannot be in the messages: a queue expires them only at its head.
	Queues []string
}

// InProcess is the road of account: waits are held here, what is given up goes to errorQueue.
func InProcess(errorQueue string) Road {
	return Road{QuarantineKey: errorQueue, MassTransit: true}
}

// Lap is the road of transfer: waits are held by the broker in retryQueue, what is given up goes to the exchange of the
// parking lot under its original routing key.
func Lap(retryQueue, deadLetterExchange string) Road {
	return Road{RetryQueue: retryQueue, QuarantineExchange: deadLetterExchange}
}

// Tiered is the other road of transfer: waits of several lengths are held by the broker, each in queues of its own. A
// rejected message cannot choose where it is dead-lettered to, so the consumer publishes a copy to the queue it wants, waits
// for the confirm and acks the original. The attempts travel in a header of ours: RabbitMQ 4 does not count on in an x-death
// that a client sent. What is given up goes to the exchange of the parking lot, as on the lap.
func Tiered(tiers []Tier, deadLetterExchange string) Road {
	tiers = slices.Clone(tiers)
	slices.SortStableFunc(tiers, func(a, b Tier) int { return cmp.Compare(a.Delay, b.Delay) })
	return Road{Tiers: tiers, QuarantineExchange: deadLetterExchange}
}

// check finds what would leave a message without a place to go.
func (r Road) check() error {
	if r.QuarantineExchange == "" && r.QuarantineKey == "" {
		return errors.New("the road has no quarantine")
	}
	for _, tier := range r.Tiers {
		if len(tier.Queues) == 0 {
			return errors.New("the road has a tier without a queue")
		}
		for _, queue := range tier.Queues {
			if queue == "" || len(queue) > maxShort {
				return errors.New("the road has a tier with a queue whose name is empty or over 255 bytes")
			}
		}
	}
	return nil
}

// copyTo is the queue that a copy waits in for its next attempt: the retry queue of the lap, or one of the shortest tier
// that is long enough, picked by u in [0, 1). A delay beyond all tiers gets the last one.
func (r Road) copyTo(delay time.Duration, u float64) string {
	if len(r.Tiers) == 0 {
		return r.RetryQueue
	}
	tier := r.Tiers[len(r.Tiers)-1]
	for _, candidate := range r.Tiers {
		if candidate.Delay >= delay {
			tier = candidate
			break
		}
	}
	return tier.Queues[min(int(u*float64(len(tier.Queues))), len(tier.Queues)-1)]
}

// atBroker says that messages wait at the broker and not in the consumer.
func (r Road) atBroker() bool { return r.RetryQueue != "" || len(r.Tiers) > 0 }

// kind is what the road is called in the settings and the metrics.
func (r Road) kind() string {
	switch {
	case len(r.Tiers) > 0:
		return "tiered"
	case r.RetryQueue != "":
		return "lap"
	}
	return "in-process"
}
