package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/banking/internal/control"
	"example.com/banking/internal/supervise"
)

const (
	firstRestart = time.Second
	lastRestart  = 30 * time.Second
	// steady is how long something has to run before its next end counts as the first again.
	steady = time.Minute
)

var errSupervisorGone = errors.New("the supervisor has ended, and with it the servers and services: start the bank again")

// watch starts again whatever ends by itself, later and later while that does not help, and carries out orders, until ctx ends. It fails
// when nothing can be started any more.
func (b *bank) watch(ctx context.Context) error {
	watchers, ctx := errgroup.WithContext(ctx)
	var all []*kept
	for _, s := range b.services {
		all = append(all, keptService(s))
	}
	all = append(all, b.keptServers()...)
	for _, k := range all {
		k.note(control.Running, nil)
		watchers.Go(func() error { return b.keep(ctx, k) })
	}
	if b.orders != nil {
		watchers.Go(func() error { return b.takeOrders(ctx, all) })
	}
	return watchers.Wait()
}

// keep is the only one who starts and stops a process once the bank is open, so that an order never meets a restart half-way.
func (b *bank) keep(ctx context.Context, k *kept) error {
	wait, began := firstRestart, time.Now()
	var again <-chan time.Time // when it is started again, after it has ended by itself
	for {
		var ended <-chan struct{}
		if k.runs() {
			ended = k.child().Done()
		}
		select {
		case <-ctx.Done():
			k.wake()
			return nil
		case <-b.servers.Gone():
			return errSupervisorGone
		case o := <-k.orders:
			again, wait, began = nil, firstRestart, time.Now()
			err := k.obey(o)
			if k.state() == control.Restarting { // an order did not get it to run
				again = time.After(wait)
			}
			o.done <- err
			continue
		case <-ended:
			select {
			case <-b.servers.Gone(): // which ended everything: not this one by itself
				return errSupervisorGone
			default:
			}
			if time.Since(began) > steady {
				wait = firstRestart
			}
			b.term.printf("%s has ended by itself; starting it again in %s\n", k.title, wait)
			k.note(control.Restarting, nil)
		case <-again:
			began = time.Now()
			starting, cancel := context.WithTimeout(ctx, startTimeout)
			err := k.start(starting, k.changed())
			cancel()
			switch {
			case errors.Is(err, supervise.ErrGone):
				return errSupervisorGone
			case ctx.Err() != nil:
				return nil
			case err != nil:
				b.term.printf("%s did not start: %v\n", k.title, err)
			default:
				b.term.printf("%s runs again\n", k.title)
				k.note(control.Running, k.changed())
				again = nil
				continue
			}
		}
		again = time.After(wait)
		wait = min(2*wait, lastRestart)
	}
}
