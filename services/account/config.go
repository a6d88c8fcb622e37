package main

import (
	"fmt"
	"time"

	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
)

var defaults = service.Defaults{"HTTP_ADDR": "127.0.0.1:8081"}

// config is the environment of account.
type config struct {
	service.Config
	service.MessagingConfig

	RetryIntervals []time.Duration `env:"RETRY_INTERVALS" envDefault:"1s,5s,25s" desc:"waits between the attempts of a failing message; then it goes to the queue's error queue"`
}

// longestWait keeps a waiting message below the broker's consumer_timeout (30 minutes by default): a delivery held for longer
// costs the consumer its channel, and every other delivery on it. The consumer sees to what else it may be held for.
const longestWait = 20 * time.Minute

// shortestWait keeps a retry from being none: what fails is gone at once, with all its attempts, while the fault lasts.
const shortestWait = time.Millisecond

// mostIntervals makes 100 attempts, no more than transfer's MAX_ATTEMPTS may be.
const mostIntervals = 99

// Validate reports intervals that cannot work.
func (c config) Validate() []service.Invalid {
	if len(c.RetryIntervals) > mostIntervals {
		return []service.Invalid{{Name: "RETRY_INTERVALS", Wanted: fmt.Sprintf("at most %d durations", mostIntervals)}}
	}
	var sum time.Duration
	for _, interval := range c.RetryIntervals {
		if interval < shortestWait || interval > longestWait {
			return []service.Invalid{{Name: "RETRY_INTERVALS", Wanted: fmt.Sprintf("durations from %s to %s", shortestWait, longestWait)}}
		}
		sum += interval
	}
	if sum > longestWait {
		return []service.Invalid{{Name: "RETRY_INTERVALS", Wanted: fmt.Sprintf("at most %s in all, the broker does not wait longer", longestWait)}}
	}
	return nil
}

// policy has no jitter: the intervals are what an operator has set. Messages that failed in one batch come back together. That is the
// load of one batch again, which is bounded by BATCH_SIZE and the prefetch; it is not that of a crowd of clients that retry in step.
func (c config) policy() retry.Policy {
	return retry.Policy{
		MaxAttempts:    1 + len(c.RetryIntervals),
		Delays:         c.RetryIntervals,
		MaxAge:         c.MaxAge,
		NotFoundMaxAge: c.NotFoundMaxAge,
		Classify:       bool(c.RetryClassify),
	}
}
