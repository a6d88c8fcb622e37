package policy

import (
	"time"

	"example.com/banking/pkg/retry"
)

// profile is a way of retrying that a service of the bank has, as it is when nobody configures anything.
type profile struct {
	name  string
	waits string // where
	retry.Policy
}

const (
	maxAge         = 24 * time.Hour
	notFoundMaxAge = 5 * time.Minute
)

var (
	inProcess = profile{"account, in process", "in the consumer, unacknowledged", retry.Policy{
		MaxAttempts: 4, Delays: []time.Duration{time.Second, 5 * time.Second, 25 * time.Second},
		MaxAge: maxAge, NotFoundMaxAge: notFoundMaxAge, Classify: true,
	}}
	lap = profile{"transfer, lap", "in one queue with a time to live", retry.Policy{
		MaxAttempts: 3, Delays: []time.Duration{5 * time.Second},
		MaxAge: maxAge, NotFoundMaxAge: notFoundMaxAge, Classify: true,
	}}
	tiered = profile{"transfer, tiered", "in a queue for each delay, three to a tier", retry.Policy{
		MaxAttempts: 5, Delays: []time.Duration{5 * time.Second, 30 * time.Second, 5 * time.Minute}, Jitter: 0.2,
		MaxAge: maxAge, NotFoundMaxAge: notFoundMaxAge, Classify: true,
	}}
	profiles = []profile{inProcess, lap, tiered}
)

// always is a random number that is always the same, to ask for the least, the middle and the most of a jitter.
func always(u float64) func() float64 { return func() float64 { return u } }

// nearlyOne is the largest random number.
const nearlyOne = 1 - 1.0/(1<<53)
