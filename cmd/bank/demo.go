package main

import (
	"context"
	"path/filepath"
)

// demoCommand starts a bank, takes the tour and stops the bank.
type demoCommand struct{}

func (*demoCommand) Run(ctx context.Context, term *terminal, out *output) error {
	b, err := openBank(ctx, term)
	if err != nil {
		return err
	}
	defer b.close()
	b.environment = asDocumented(b.environment)
	if err := b.start(ctx); err != nil {
		return err
	}
	err = guide(ctx, &b.where, filepath.Join(term.dir, "logs"), out)
	term.printf("\nstopping: services first, then the servers; the data stays in %s\n", term.dir)
	return err
}

// asDocumented is the environment without what changes the behaviour that the tour checks and without another form of the
// logs that it reads: whoever tunes services in his shell still sees what the documentation says.
func asDocumented(environ []string) []string {
	return append(without(environ, "LOG_FORMAT", "LOG_LEVEL", "RETRY_CLASSIFY", "RETRY_INTERVALS", "RETRY_PROFILE", "RETRY_DELAY",
		"RETRY_TIERS", "RETRY_JITTER", "MAX_ATTEMPTS", "MAX_AGE", "NOT_FOUND_MAX_AGE", "SAGA_TIMEOUT", "INBOX_RETENTION", "QUEUE_TYPE",
		"BREAKER", "RETRY_BUDGET", "CONSUMER_RATE_LIMIT", "FAULTS"),
		"LOG_FORMAT=json", "LOG_LEVEL=info")
}

// seedCommand opens the demo accounts of a bank that runs elsewhere, as in a compose file.
type seedCommand struct{}

func (*seedCommand) Run(ctx context.Context, to *endpoints, term *terminal) error {
	if err := to.need("ACCOUNT_URL"); err != nil {
		return err
	}
	return seed(ctx, to.AccountURL, term)
}
