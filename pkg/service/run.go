package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
)

// Component is a part of a service that runs until it is told to stop.
type Component struct {
	Name string
	// Run works until ctx ends, then cleans up and returns nil. An error, a panic, or a return before ctx ended
	// stops the whole service.
	Run func(ctx context.Context) error
	// After holds the start back until it is closed, e.g. until the schema is there. Nil starts at once.
	After <-chan struct{}
}

// Run starts the components in order and stops them in reverse order, each ended completely before the next is told to:
// so what takes in work stops first, and what carries its results away stops last. It stops when ctx ends (nil is returned)
// or when a component ends by itself (its error is returned, with the component's name).
//
// Run returns within grace of the stop. Once nine tenths of it are used up, all that is left is told to stop at the
// same time, and what still has not ended after the last tenth is named in an error and abandoned.
func Run(ctx context.Context, grace time.Duration, log *slog.Logger, components ...Component) error {
	for i, c := range components {
		if c.Run == nil {
			return fmt.Errorf("component %d (%s) has nothing to run", i, c.Name)
		}
	}
	early := make(chan error, len(components))
	running := make([]*part, 0, len(components))
	for _, c := range components {
		if ctx.Err() != nil {
			break
		}
		running = append(running, start(ctx, c, log, early))
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-early:
		log.Error("component ended, stopping the others", "error", failed)
	}
	return errors.Join(failed, stop(running, grace, log))
}

// part is a component that was started.
type part struct {
	name   string
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // how stopping went; read after ended
}

func start(ctx context.Context, c Component, log *slog.Logger, early chan<- error) *part {
	// Its own context: the service's ends for all at once, but they must stop one after another.
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &part{name: c.Name, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		defer cancel()
		if c.After != nil {
			select {
			case <-c.After:
			case <-own.Done():
				return
			}
		}
		log.Debug("component started", "component", c.Name)
		err := recovered(own, c, log)
		switch {
		case own.Err() == nil && err == nil:
			early <- fmt.Errorf("%s: ended without being told to", c.Name)
		case own.Err() == nil:
			early <- fmt.Errorf("%s: %w", c.Name, err)
		case err != nil && !errors.Is(err, context.Canceled):
			p.err = fmt.Errorf("stop %s: %w", c.Name, err)
		}
	}()
	return p
}

func recovered(ctx context.Context, c Component, log *slog.Logger) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Error("panic", "component", c.Name, "reason", reason, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return c.Run(ctx)
}

func stop(running []*part, grace time.Duration, log *slog.Logger) error {
	last := grace / 10
	orderly, hurried := time.NewTimer(grace-last), time.NewTimer(grace)
	defer orderly.Stop()
	defer hurried.Stop()
	inOrder := orderly.C

	var errs []error
	for i := len(running) - 1; i >= 0; i-- {
		p := running[i]
		p.cancel()
		select {
		case <-p.ended:
		case <-inOrder:
			log.Warn("stopping takes long, all the rest is told to stop", "component", p.name, "grace", grace)
			for _, rest := range running[:i] {
				rest.cancel()
			}
			inOrder = nil
			i++ // this one again, now without the order
			continue
		case <-hurried.C:
			if left := names(running[:i+1]); len(left) > 0 {
				errs = append(errs, fmt.Errorf("did not stop within %s: %s", grace, strings.Join(left, ", ")))
			}
			return errors.Join(errs...)
		}
		log.Debug("component stopped", "component", p.name)
		errs = append(errs, p.err)
	}
	return errors.Join(errs...)
}

// names lists what has not ended yet.
func names(running []*part) (left []string) {
	for _, p := range running {
		select {
		case <-p.ended:
		default:
			left = append(left, p.name)
		}
	}
	return left
}
