package main

import (
	"context"
	"sync"
	"time"
)

const (
	firstRestart = time.Second
	lastRestart  = 30 * time.Second
	// steady is how long something has to run before its next end counts as the first again.
	steady = time.Minute
)

// watch starts again whatever ends by itself, later and later while that does not help, until ctx ends.
func (b *bank) watch(ctx context.Context) {
	var watchers sync.WaitGroup
	for _, s := range b.services {
		watchers.Go(func() {
			b.keep(ctx, s.name, func() <-chan struct{} { return s.child.Done() }, func(context.Context) error {
				child, err := b.servers.Run(s.process)
				if err == nil {
					s.child = child
				}
				return err
			})
		})
	}
	watchers.Go(func() { b.keep(ctx, "RabbitMQ", b.servers.BrokerDone, b.servers.StartBroker) })
	watchers.Go(func() { b.keep(ctx, "PostgreSQL", b.servers.PostgresDone, b.servers.StartPostgres) })
	watchers.Wait()
}

func (b *bank) keep(ctx context.Context, name string, done func() <-chan struct{}, start func(context.Context) error) {
	wait, began := firstRestart, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-done():
		}
		if time.Since(began) > steady {
			wait = firstRestart
		}
		b.term.printf("%s has ended by itself; starting it again in %s\n", name, wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRestart)
		began = time.Now()
		starting, cancel := context.WithTimeout(ctx, startTimeout)
		err := start(starting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			b.term.printf("%s did not start: %v\n", name, err)
		default:
			b.term.printf("%s runs again\n", name)
		}
	}
}
