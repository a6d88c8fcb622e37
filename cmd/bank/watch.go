package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/banking/internal/supervise"
)

const (
	firstRestart = time.Second
	lastRestart  = 30 * time.Second
	// steady is how long something has to run before its next end counts as the first again.
	steady = time.Minute
)

var errSupervisorGone = errors.New("the supervisor has ended, and with it the servers and services: start the bank again")

// watch starts again whatever ends by itself, later and later while that does not help, until ctx ends. It fails when
// nothing can be started any more.
func (b *bank) watch(ctx context.Context) error {
	watchers, ctx := errgroup.WithContext(ctx)
	for _, s := range b.services {
		watchers.Go(func() error {
			return b.keep(ctx, s.name, func() <-chan struct{} { return s.child.Done() }, func(context.Context) error { return s.restart() })
		})
	}
	watchers.Go(func() error { return b.keep(ctx, "RabbitMQ", b.servers.BrokerDone, b.servers.StartBroker) })
	watchers.Go(func() error { return b.keep(ctx, "PostgreSQL", b.servers.PostgresDone, b.servers.StartPostgres) })
	return watchers.Wait()
}

func (b *bank) keep(ctx context.Context, name string, done func() <-chan struct{}, start func(context.Context) error) error {
	wait, began := firstRestart, time.Now()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.servers.Gone():
			return errSupervisorGone
		case <-done():
		}
		select {
		case <-b.servers.Gone(): // which ended everything: not this one by itself
			return errSupervisorGone
		default:
		}
		if time.Since(began) > steady {
			wait = firstRestart
		}
		b.term.printf("%s has ended by itself; starting it again in %s\n", name, wait)
		select {
		case <-ctx.Done():
			return nil
		case <-b.servers.Gone():
			return errSupervisorGone
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRestart)
		began = time.Now()
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		err := start(starting)
		cancel()
		switch {
		case errors.Is(err, supervise.ErrGone):
			return errSupervisorGone
		case ctx.Err() != nil:
			return nil
		case err != nil:
			b.term.printf("%s did not start: %v\n", name, err)
		default:
			b.term.printf("%s runs again\n", name)
		}
	}
}
