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
	var starting *gettingReady // after it was started again
	defer func() { starting.forget() }()
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
			if !k.runs() || !starting.is(k.child()) { // who gave the order is told how that goes
				starting = starting.forget()
			}
			o.done <- err
			continue
		case <-starting.done():
			b.term.printf("%s runs again\n", k.title)
			starting = starting.forget()
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
			if starting == nil {
				b.term.printf("%s has ended by itself; starting it again in %s\n", k.title, wait)
			} else {
				b.term.printf("%v\nstarting %s again in %s\n", k.service.endedEarly(k.child()), k.title, wait)
				starting = starting.forget()
			}
			k.note(control.Restarting, nil)
		case <-again:
			began = time.Now()
			limited, cancel := context.WithTimeout(ctx, startTimeout)
			err := k.start(limited, k.changed())
			cancel()
			switch {
			case errors.Is(err, supervise.ErrGone):
				return errSupervisorGone
			case ctx.Err() != nil:
				return nil
			case err != nil:
				b.term.printf("%s did not start, trying again in %s: %v\n", k.title, wait, err)
			default:
				if k.service == nil { // a server is ready by now
					b.term.printf("%s runs again\n", k.title)
				} else {
					starting = b.getReady(ctx, k.service)
				}
				k.note(control.Running, k.changed())
				again = nil
				continue
			}
		}
		again = time.After(wait)
		wait = min(2*wait, lastRestart)
	}
}

// gettingReady is a service that was started again and is waited for, until it is ready, ends, or is forgotten. That goes on beside the
// loop that keeps it, which serves orders meanwhile. nil is none.
type gettingReady struct {
	child *supervise.Child
	ready chan struct{} // closed when it is
	leave context.CancelFunc
}

func (b *bank) getReady(ctx context.Context, s *service) *gettingReady {
	ctx, leave := context.WithCancel(ctx)
	g := &gettingReady{child: s.child, ready: make(chan struct{}), leave: leave}
	go func() {
		if s.awaitReady(ctx, g.child, b.term) == nil { // why it has ended is told by who sees it end
			close(g.ready)
		}
	}()
	return g
}

// done is closed when the service is ready.
func (g *gettingReady) done() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.ready
}

func (g *gettingReady) is(child *supervise.Child) bool { return g != nil && g.child == child }

// forget ends the wait, and returns none.
func (g *gettingReady) forget() *gettingReady {
	if g != nil {
		g.leave()
	}
	return nil
}
