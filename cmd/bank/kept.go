package main

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"syscall"

	"example.com/banking/internal/control"
	"example.com/banking/internal/supervise"
)

// kept is a process that a running bank keeps alive, with what can be done to it. The functions belong to the goroutine that keeps it.
type kept struct {
	name, title string
	start       func(ctx context.Context, changed map[string]string) error
	stop, kill  func() error
	child       func() *supervise.Child
	service     *service // nil for a server
	orders      chan keptOrder

	mu   sync.Mutex
	now  control.Process
	open int // orders that were given and are not carried out yet
}

// keptOrder is something to be done, and where to say how it went.
type keptOrder struct {
	ctx     context.Context
	verb    control.Verb
	changed map[string]string
	done    chan error
}

func keptService(s *service) *kept {
	return &kept{
		name: s.name, title: s.name, service: s, orders: make(chan keptOrder),
		start: func(_ context.Context, changed map[string]string) error { return s.restart(changed) },
		stop:  func() error { return s.child.Stop() },
		kill:  func() error { return s.child.Kill() },
		child: func() *supervise.Child { return s.child },
	}
}

func (b *bank) keptServers() []*kept {
	plain := func(start func(context.Context) error) func(context.Context, map[string]string) error {
		return func(ctx context.Context, _ map[string]string) error { return start(ctx) }
	}
	return []*kept{{
		name: "rabbitmq", title: "RabbitMQ", orders: make(chan keptOrder), child: b.servers.Broker,
		start: plain(b.servers.StartBroker), stop: b.servers.StopBroker, kill: b.servers.KillBroker,
	}, {
		name: "postgres", title: "PostgreSQL", orders: make(chan keptOrder), child: b.servers.Postgres,
		start: plain(b.servers.StartPostgres), stop: b.servers.StopPostgres, kill: b.servers.KillPostgres,
	}}
}

// refusal says why an order does not fit the state that the process is in: a control.ErrState that needs not say so.
type refusal string

func (r refusal) Error() string { return string(r) }

// Is makes errors.Is find what it is.
func (r refusal) Is(target error) bool { return target == control.ErrState }

// obey carries an order out.
func (k *kept) obey(o keptOrder) error {
	state := k.state()
	exists := state == control.Running || state == control.Paused
	refuse := func(wanted string) error {
		return refusal(fmt.Sprintf("%s is %s, %s", k.name, state, wanted))
	}
	switch o.verb {
	case control.Stop, control.Restart:
		if exists {
			k.wake()
			if err := k.stop(); err != nil {
				return err
			}
		}
		k.note(control.Stopped, nil)
		if o.verb == control.Restart {
			return k.startAs(o)
		}
		return nil
	case control.Kill:
		if !exists {
			return refuse("there is nothing to kill")
		}
		if err := k.kill(); err != nil {
			return err
		}
		k.note(control.Running, k.changed()) // its end is seen next, like any other
		return nil
	case control.Pause, control.Resume:
		return k.halt(o.verb, refuse)
	default:
		if exists {
			return refuse("there is nothing to start")
		}
		return k.startAs(o)
	}
}

func (k *kept) halt(verb control.Verb, refuse func(string) error) error {
	signal, from, to := syscall.SIGSTOP, control.Running, control.Paused
	if verb == control.Resume {
		signal, from, to = syscall.SIGCONT, to, from
	}
	if k.service == nil {
		return fmt.Errorf("%s %w: only a service can be paused and resumed", k.name, control.ErrServer)
	}
	if k.state() != from {
		return refuse(fmt.Sprintf("and only what is %s can be told to %s", from, verb))
	}
	if err := k.child().Signal(signal); err != nil {
		return err
	}
	k.note(to, k.changed())
	return nil
}

func (k *kept) startAs(o keptOrder) error {
	if k.service == nil && len(o.changed) > 0 {
		return fmt.Errorf("settings of a server %w: only a service takes them", control.ErrSetting)
	}
	ctx, cancel := context.WithTimeout(o.ctx, startTimeout)
	defer cancel()
	if err := k.start(ctx, o.changed); err != nil {
		k.note(control.Restarting, o.changed)
		return err
	}
	k.note(control.Running, o.changed)
	return nil
}

// wake lets a paused process go on: otherwise it could not obey the signal that asks it to end.
func (k *kept) wake() {
	if k.state() == control.Paused {
		_ = k.child().Signal(syscall.SIGCONT) // or it has ended
	}
}

func (k *kept) runs() bool {
	state := k.state()
	return state == control.Running || state == control.Paused
}

func (k *kept) state() control.State       { return k.shown().State }
func (k *kept) changed() map[string]string { return k.shown().Changed }
func (k *kept) shown() control.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.now
	p.Changed = maps.Clone(p.Changed)
	p.Ordered = k.open > 0
	return p
}

// count keeps the number of open orders.
func (k *kept) count(n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open += n
}

// note writes down what others may see. A nil map leaves nothing changed, but for a restart, which keeps the settings of the start before.
func (k *kept) note(state control.State, changed map[string]string) {
	child := k.child()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now.Name, k.now.Kind = k.name, "server"
	if k.service != nil {
		k.now.Kind = "service"
	}
	if state != control.Restarting || changed != nil {
		k.now.Changed = changed
	}
	k.now.State = state
	switch state {
	case control.Running, control.Paused:
		if k.now.PID != child.PID() {
			k.now.PID = child.PID()
			k.now.Starts++
		}
	default:
		k.now.PID = 0
		k.now.LastEnd = "" // of a server that could not be started there is none
		if over(child) {
			k.now.LastEnd = child.Exit()
		}
	}
}

func over(child *supervise.Child) bool {
	select {
	case <-child.Done():
		return true
	default:
		return false
	}
}
