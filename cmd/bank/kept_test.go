package main

import (
	"context"
	"strings"
	"testing"

	"example.com/banking/internal/control"
	"example.com/banking/internal/supervise"
)

// Who looks at a process sees that an order is open until it is done, also when who gave it has gone: nobody else knows of it.
func TestAnOpenOrderIsShown(t *testing.T) {
	t.Parallel()
	k := &kept{name: "rabbitmq", orders: make(chan keptOrder), now: control.Process{Name: "rabbitmq", State: control.Running}}
	if p := k.shown(); !p.Usual() {
		t.Fatalf("before: %+v", p)
	}
	ctx, leave := context.WithCancel(t.Context())
	given := make(chan error)
	go func() {
		_, err := (&keeper{ctx: t.Context(), all: []*kept{k}}).Act(ctx, "rabbitmq", control.Stop, nil)
		given <- err
	}()
	o := <-k.orders
	leave()
	if p := k.shown(); !p.Ordered || p.Usual() {
		t.Errorf("while it is carried out: %+v", p)
	}
	o.done <- nil
	if err := <-given; err != nil {
		t.Error(err)
	}
	if p := k.shown(); p.Ordered || !p.Usual() {
		t.Errorf("when it is done: %+v", p)
	}
}

// A service may end, of a setting it refuses, before anybody has seen its process.
func TestAServiceThatEndsAtOnceIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	k := &kept{name: "account", service: &service{name: "account", url: "http://127.0.0.1:1", process: supervise.Process{Log: "account.log"}},
		now: control.Process{Name: "account", State: control.Restarting, LastEnd: "exit status 2"}}
	if err := k.awaitReady(t.Context()); err == nil || !strings.Contains(err.Error(), "ended before it was ready (exit status 2)") {
		t.Error(err)
	}
}
