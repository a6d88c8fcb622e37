package main

import (
	"time"

	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
)

// config is what the environment says.
type config struct {
	service.Config
	service.MessagingConfig

	RetryDelay  time.Duration `env:"RETRY_DELAY" envDefault:"5s" desc:"wait before a failed event is tried again: the time to live in the retry queue, 1ms to 24h"`
	MaxAttempts int           `env:"MAX_ATTEMPTS" envDefault:"3" desc:"how often an event is tried, the first time included, 1 to 100"`
	SagaTimeout time.Duration `env:"SAGA_TIMEOUT" envDefault:"15m" desc:"open transfers older than this are refunded, up to 8760h; 0 is never"`
}

var defaults = service.Defaults{"HTTP_ADDR": "127.0.0.1:8082"}

// longestSagaTimeout is a year of hours. Nobody waits that long for money, so more is a slip of the unit, and who wants no timeout says 0.
const longestSagaTimeout = 8760 * time.Hour

// Validate checks what the types of the fields do not.
func (c config) Validate() []service.Invalid {
	var wrong []service.Invalid
	if c.RetryDelay < time.Millisecond || c.RetryDelay > 24*time.Hour || c.RetryDelay%time.Millisecond != 0 {
		wrong = append(wrong, service.Invalid{Name: "RETRY_DELAY", Wanted: "1ms to 24h, in whole milliseconds"})
	}
	if c.MaxAttempts < 1 || c.MaxAttempts > 100 {
		wrong = append(wrong, service.Invalid{Name: "MAX_ATTEMPTS", Wanted: "1 to 100"})
	}
	if c.SagaTimeout < 0 || c.SagaTimeout > longestSagaTimeout || c.SagaTimeout%time.Millisecond != 0 {
		wrong = append(wrong, service.Invalid{Name: "SAGA_TIMEOUT", Wanted: "0 to 8760h, in whole milliseconds"})
	}
	return wrong
}

// policy is how failed events are retried: always after the same delay, which the retry queue keeps.
func (c config) policy() retry.Policy {
	return retry.Policy{
		MaxAttempts:    c.MaxAttempts,
		Delays:         []time.Duration{c.RetryDelay},
		MaxAge:         c.MaxAge,
		NotFoundMaxAge: c.NotFoundMaxAge,
		Classify:       bool(c.RetryClassify),
	}
}
