package main

import (
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
)

// config is what the environment says.
type config struct {
	service.Config
	service.MessagingConfig

	RetryProfile string          `env:"RETRY_PROFILE" envDefault:"lap" desc:"lap: a failed event waits RETRY_DELAY each time; tiered: longer from try to try"`
	RetryDelay   time.Duration   `env:"RETRY_DELAY" envDefault:"5s" desc:"wait before a failed event is tried again: the time to live in the retry queue, 1ms to 24h"`
	RetryTiers   []time.Duration `env:"RETRY_TIERS" envDefault:"5s,30s,5m" desc:"the waits of the tiered profile, up to 10, rising; the last one repeats"`
	RetryJitter  float64         `env:"RETRY_JITTER" envDefault:"0.2" desc:"share of each tier's wait by which it is spread both ways, 0 to 0.9"`
	MaxAttempts  *int            `env:"MAX_ATTEMPTS" desc:"how often an event is tried, the first time included, 1 to 100; unset: 3 in the lap profile, 5 in the tiered one"`
	SagaTimeout  time.Duration   `env:"SAGA_TIMEOUT" envDefault:"15m" desc:"open transfers older than this are refunded, up to 8760h; 0 is never"`
}

var defaults = service.Defaults{"HTTP_ADDR": "127.0.0.1:8082"}

// The retry profiles.
const (
	lap    = "lap"
	tiered = "tiered"
)

// longestSagaTimeout is a year of hours. Nobody waits that long for money, so more is a slip of the unit, and who wants no timeout says 0.
const longestSagaTimeout = 8760 * time.Hour

// mostTiers bounds the queues that are declared, three for each tier. The waits of ten tiers reach from a second to a day.
const mostTiers = 10

// Validate checks what the types of the fields do not.
func (c config) Validate() []service.Invalid {
	var wrong []service.Invalid
	demand := func(ok bool, name, wanted string) {
		if !ok {
			wrong = append(wrong, service.Invalid{Name: name, Wanted: wanted})
		}
	}
	demand(c.RetryProfile == lap || c.RetryProfile == tiered, "RETRY_PROFILE", "lap or tiered")
	demand(waitable(c.RetryDelay), "RETRY_DELAY", "1ms to 24h, in whole milliseconds")
	demand(rising(c.RetryTiers), "RETRY_TIERS", fmt.Sprintf("1 to %d durations from 1ms to 24h, in whole milliseconds, each longer than the one before", mostTiers))
	demand(c.RetryJitter >= 0 && c.RetryJitter <= 0.9, "RETRY_JITTER", "a number from 0 to 0.9")
	demand(c.MaxAttempts == nil || *c.MaxAttempts >= 1 && *c.MaxAttempts <= 100, "MAX_ATTEMPTS", "1 to 100")
	demand(c.SagaTimeout >= 0 && c.SagaTimeout <= longestSagaTimeout && c.SagaTimeout%time.Millisecond == 0, "SAGA_TIMEOUT", "0 to 8760h, in whole milliseconds")
	return wrong
}

// waitable says whether a queue can hold messages for that long: its time to live is in whole milliseconds.
func waitable(d time.Duration) bool {
	return d >= time.Millisecond && d <= 24*time.Hour && d%time.Millisecond == 0
}

func rising(tiers []time.Duration) bool {
	if len(tiers) < 1 || len(tiers) > mostTiers {
		return false
	}
	for i, tier := range tiers {
		if !waitable(tier) || i > 0 && tier <= tiers[i-1] {
			return false
		}
	}
	return true
}

// topology is what the service declares at the broker.
func (c config) topology() messaging.Topology {
	kind := messaging.QueueType(c.QueueType)
	if c.RetryProfile == tiered {
		return topology.TransferTiered(kind, c.RetryDelay, c.RetryTiers, c.RetryJitter)
	}
	return topology.Transfer(kind, c.RetryDelay)
}

// road is where failed events wait, and where they end.
func (c config) road() messaging.Road {
	if c.RetryProfile == tiered {
		return messaging.Tiered(topology.RetryTiers(c.RetryTiers, c.RetryJitter), contract.DeadLetterExchange)
	}
	return messaging.Lap(contract.AccountEventsRetry, contract.DeadLetterExchange)
}

// policy is how failed events are retried: always after the same delay on the lap, after the next tier's in the tiered profile.
// The delays have no jitter here, because the queues that keep them have it.
func (c config) policy() retry.Policy {
	p := retry.Policy{
		MaxAttempts:    3,
		Delays:         []time.Duration{c.RetryDelay},
		MaxAge:         c.MaxAge,
		NotFoundMaxAge: c.NotFoundMaxAge,
		Classify:       bool(c.RetryClassify),
	}
	if c.RetryProfile == tiered {
		p.MaxAttempts, p.Delays = 5, c.RetryTiers
	}
	if c.MaxAttempts != nil {
		p.MaxAttempts = *c.MaxAttempts
	}
	return p
}
