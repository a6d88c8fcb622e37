package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"example.com/banking/internal/control"
)

// listenForOrders opens the door at which the keeper takes orders; they are taken once the bank is open.
func (b *bank) listenForOrders() error {
	var err error
	if b.orders, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return fmt.Errorf("listen for orders: %w", err)
	}
	return nil
}

// takeOrders serves the keeper until ctx ends.
func (b *bank) takeOrders(ctx context.Context, all []*kept) error {
	mux := http.NewServeMux()
	control.Register(mux, &keeper{ctx: ctx, all: all})
	(&exerciseDoor{bank: breakable(&b.where, b.term.dir)}).register(mux)
	server := &http.Server{Handler: control.Guard(b.where.AdminToken, mux), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(b.orders); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("take orders: %w", err)
	}
	return nil
}

// keeper is what control asks.
type keeper struct {
	ctx context.Context // of the bank
	all []*kept
}

func (k *keeper) Processes() []control.Process {
	var list []control.Process
	for _, p := range k.all {
		list = append(list, p.shown())
	}
	return list
}

// Act hands the order to who keeps the process. A start is over when the service is ready.
func (k *keeper) Act(ctx context.Context, name string, verb control.Verb, environment map[string]string) (control.Process, error) {
	for _, p := range k.all {
		if p.name != name {
			continue
		}
		if p.service != nil {
			if err := p.service.knows(ctx, environment); err != nil {
				return p.shown(), err
			}
		}
		err := p.give(ctx, k.ctx, verb, environment)
		if err == nil && (verb == control.Start || verb == control.Restart) && p.service != nil {
			err = p.awaitReady(ctx)
		}
		return p.shown(), err
	}
	return control.Process{}, fmt.Errorf("%s: %w", name, control.ErrUnknown)
}

// give lets the order be carried out. It is open for all to see from the moment it is given until it is done, also when who gave it
// has gone: what that one changes, somebody else may be about to put back.
func (k *kept) give(ctx, bank context.Context, verb control.Verb, environment map[string]string) error {
	k.count(+1)
	defer k.count(-1)
	// A server is started to the end, also for somebody who has gone.
	o := keptOrder{ctx: bank, verb: verb, changed: environment, done: make(chan error, 1)}
	select {
	case k.orders <- o:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-o.done:
		return err
	case <-bank.Done():
		return errors.New("the bank is closing")
	}
}

// awaitReady waits until the service that was started is ready, or has ended.
func (k *kept) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	started := k.shown()
	for {
		ready, why := k.service.probe(ctx, client)
		if ready {
			return nil
		}
		// It may have ended before anybody looked: then it has no process, and perhaps another one soon, which ends as quickly.
		if now := k.shown(); now.PID == 0 || now.PID != started.PID {
			return fmt.Errorf("%s ended before it was ready (%s):\n%s", k.name, now.LastEnd, k.service.lastLines())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %s", k.name, ctx.Err(), why)
		case <-tick.C:
		}
	}
}
