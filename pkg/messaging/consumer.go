package messaging

import (
	"context"
	"time"

	"example.com/banking/pkg/retry"
)

// ConsumerConfig says what one consumer takes and what it does when that fails.
type ConsumerConfig struct {
	Queue   string
	Handler Handler
	Policy  retry.Policy
	Road    Road
	Service string // named in quarantined messages (x-service)

	Prefetch       int           // deliveries the broker hands out without an ack; default 200
	Concurrency    int           // batches handled at the same time; default 2
	BatchSize      int           // messages in one batch at most; default 50
	BatchWait      time.Duration // how long a batch that is not full waits for more; default 0, it takes what is there
	HandlerTimeout time.Duration // deadline of one call of the handler; default 30 s
	Grace          time.Duration // how long running handlers may go on after the stop; default 15 s

	Classifiers []retry.Classifier // recognise errors of libraries
}

// Consumer takes the messages of one queue through a handler.
type Consumer struct{}

// Run consumes until ctx ends, attaching anew to each session. When ctx ends it takes no more, lets running handlers finish
// on a live context for at most Grace, gives everything else back without spending an attempt, and returns nil.
func (c *Consumer) Run(ctx context.Context) error { return nil }
