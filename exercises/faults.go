package exercises

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/banking/internal/control"
)

// fault is an order to fail, as POST /admin/faults takes it.
type fault struct {
	Point     string `json:"point"`
	Action    string `json:"action"`
	Class     string `json:"class,omitzero"`
	MessageID string `json:"messageId,omitzero"`
	Count     int    `json:"count,omitzero"` // 0: until it is deleted
}

// provide sees to it that the bank has what the exercise needs and runs as it assumes, or says what is missing.
func (r *run) provide(ctx context.Context) error {
	if slices.Contains(r.exercise.Needs, Control) && r.control == nil {
		return fmt.Errorf(`%w: processes have to be stopped and started, which needs a bank from "make up"`, ErrNeeds)
	}
	if !r.exercise.apart {
		if err := r.alone(ctx); err != nil {
			return err
		}
	}
	if err := r.settle(ctx); err != nil || !slices.Contains(r.exercise.Needs, Faults) {
		return err
	}
	for _, s := range []*service{r.account, r.transfer} {
		r.onReset(disarming, fmt.Sprintf("Faults of %s are deleted.", s.name), func(ctx context.Context) error { return r.disarm(ctx, s) })
		if err := r.disarm(ctx, s); err != nil { // orders that somebody else has left would be carried out now
			return err
		}
	}
	return nil
}

func (r *run) faultsOpen(ctx context.Context, s *service) (bool, error) {
	err := s.call(ctx, http.MethodGet, "/admin/faults", nil, nil)
	if refusal, ok := errors.AsType[*refused](err); ok && refusal.status == http.StatusNotFound {
		return false, nil
	}
	return err == nil, err
}

func (r *run) arm(ctx context.Context, s *service, f fault) error {
	return s.call(ctx, http.MethodPost, "/admin/faults", f, nil)
}

func (r *run) disarm(ctx context.Context, s *service) error {
	return r.await(ctx, time.Minute, func(ctx context.Context) (bool, error) { // it may just be starting
		err := s.call(ctx, http.MethodDelete, "/admin/faults", nil, nil)
		if answer, ok := errors.AsType[*refused](err); ok && answer.status == http.StatusNotFound {
			return true, nil // it runs without fault points by now
		}
		return err == nil, err
	})
}

// fired is how often the faults of a service have fired.
func (s *service) fired(ctx context.Context) (fired int, err error) {
	var list struct {
		Items []struct {
			Fired int `json:"fired"`
		} `json:"items"`
	}
	err = s.call(ctx, http.MethodGet, "/admin/faults", nil, &list)
	for _, f := range list.Items {
		fired += f.Fired
	}
	return fired, err
}

// restart starts a service under other settings, and notes that the usual ones have to come back.
func (r *run) restart(ctx context.Context, name string, settings map[string]string) error {
	r.usualLater(name)
	_, err := r.order(ctx, name, control.Restart, settings)
	if err != nil {
		return fmt.Errorf("starting %s anew: %w", name, err)
	}
	return nil
}

// usualLater notes that a process has to be as the bank has started it when the run is over.
func (r *run) usualLater(name string) {
	what := fmt.Sprintf("%s runs as usual again.", name)
	if slices.ContainsFunc(r.resets, func(other reset) bool { return other.what == what }) {
		return
	}
	r.onReset(waking, "", func(ctx context.Context) error { return r.wake(ctx, name) })
	r.onReset(settling, what, func(ctx context.Context) error { return r.usual(ctx, name) })
}

// order has the keeper do something with a process. It waits for the end also when the run is interrupted: what is still being stopped
// cannot be put back.
func (r *run) order(ctx context.Context, name string, verb control.Verb, settings map[string]string) (control.Process, error) {
	if err := ctx.Err(); err != nil {
		return control.Process{}, err
	}
	p, err := r.control.Act(context.WithoutCancel(ctx), name, verb, settings)
	if err == nil {
		err = ctx.Err()
	}
	return p, err
}

// idle waits until no order is being carried out, such as one of a run that was killed meanwhile, and says how the process is then.
func (r *run) idle(ctx context.Context, name string) (p control.Process, err error) {
	err = r.await(ctx, resetTime, func(ctx context.Context) (bool, error) {
		var err error
		p, err = r.control.Process(ctx, name)
		return !p.Ordered, err
	})
	return p, err
}

// wake lets a process run, under whatever settings.
func (r *run) wake(ctx context.Context, name string) error {
	p, err := r.idle(ctx, name)
	if err != nil {
		return err
	}
	switch p.State {
	case control.Paused:
		_, err = r.order(ctx, name, control.Resume, nil)
	case control.Stopped:
		_, err = r.order(ctx, name, control.Start, nil)
	}
	return err
}

// usual sees to it that a process runs as the bank has started it, and looks whether it does.
func (r *run) usual(ctx context.Context, name string) error {
	var failed error
	for range 3 { // somebody else may be at it too
		p, err := r.idle(ctx, name)
		switch {
		case err != nil || p.Usual():
			return err
		case p.State == control.Paused && len(p.Changed) == 0:
			_, failed = r.order(ctx, name, control.Resume, nil)
		case p.State == control.Restarting && len(p.Changed) == 0, p.State == control.Stopped:
			_, failed = r.order(ctx, name, control.Start, nil)
		default:
			_, failed = r.order(ctx, name, control.Restart, nil)
		}
	}
	p, err := r.idle(ctx, name)
	if err != nil || p.Usual() {
		return err
	}
	return errors.Join(fmt.Errorf("%s is %s, and not as usual", name, p.State), failed)
}

// revive waits until another process of the service runs than the one that began then, and is ready.
func (r *run) revive(ctx context.Context, s *service, began float64) error {
	return r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) {
		r.hurry(ctx, s.name)
		now, err := s.began(ctx)
		if err != nil || now == began {
			return false, err
		}
		return s.ready(ctx)
	})
}

// hurry starts what has died at once, where the keeper can be asked: it would let it wait, the longer the oftener it has died.
func (r *run) hurry(ctx context.Context, name string) {
	if r.control == nil {
		return
	}
	if p, err := r.control.Process(ctx, name); err == nil && p.State == control.Restarting {
		_, _ = r.order(ctx, name, control.Start, p.Changed) // or somebody else was quicker, or it has died again
	}
}
