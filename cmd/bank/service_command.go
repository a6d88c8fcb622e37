package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/banking/internal/control"
)

// serviceCommand is thin over the keeper of a bank that 'up' has started: the services and the two servers.
type serviceCommand struct {
	List    serviceList    `cmd:"" help:"What there is, and what it does."`
	Stop    serviceStop    `cmd:"" help:"Stop it in good order; it stays stopped until it is started."`
	Kill    serviceKill    `cmd:"" help:"Kill it (SIGKILL); the bank starts it again, as after any crash."`
	Pause   servicePause   `cmd:"" help:"Give a service no processor time (SIGSTOP): messages pile up."`
	Resume  serviceResume  `cmd:"" help:"Let a paused service go on."`
	Start   serviceStart   `cmd:"" help:"Start what is stopped, or waits to be started again."`
	Restart serviceRestart `cmd:"" help:"Stop and start it; with --set under other settings."`
}

// processName is one of the bank's programs.
type processName struct {
	Name string `arg:"" help:"account, transfer, console, rabbitmq or postgres."`
}

type (
	serviceStop   struct{ processName }
	serviceKill   struct{ processName }
	servicePause  struct{ processName }
	serviceResume struct{ processName }
	serviceStart  struct {
		processName
		Set map[string]string `mapsep:"none" help:"A setting for this start only, NAME=value; may be repeated."`
	}
	serviceRestart struct {
		processName
		Set map[string]string `mapsep:"none" help:"A setting for this start only, NAME=value; may be repeated. Without it the usual ones hold again."`
	}
)

func (c *serviceStop) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Stop, nil)
}

func (c *serviceKill) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Kill, nil)
}

func (c *servicePause) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Pause, nil)
}

func (c *serviceResume) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Resume, nil)
}

func (c *serviceStart) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Start, c.Set)
}

func (c *serviceRestart) Run(ctx context.Context, to *endpoints, out *output) error {
	return order(ctx, to, out, c.Name, control.Restart, c.Set)
}

func order(ctx context.Context, to *endpoints, out *output, name string, verb control.Verb, settings map[string]string) error {
	process, err := control.NewClient(to.ControlURL, to.AdminToken).Act(ctx, name, verb, settings)
	if err != nil {
		return err
	}
	if out.json {
		return out.document(process)
	}
	if verb == control.Kill { // what is known of it is a moment old
		fmt.Fprintf(out, "%s was killed, the bank starts it again\n", process.Name)
		return nil
	}
	fmt.Fprintf(out, "%s is %s\n", process.Name, process.State)
	return nil
}

type serviceList struct{}

func (*serviceList) Run(ctx context.Context, to *endpoints, out *output) error {
	processes, err := control.NewClient(to.ControlURL, to.AdminToken).Processes(ctx)
	if err != nil {
		return err
	}
	if out.json {
		return out.document(processes)
	}
	rows := make([][]string, 0, len(processes))
	for _, p := range processes {
		var settings []string
		for name, value := range p.Changed {
			settings = append(settings, name+"="+value)
		}
		slices.Sort(settings)
		rows = append(rows, []string{p.Name, p.Kind, string(p.State), fmt.Sprint(p.PID), fmt.Sprint(p.Starts), p.LastEnd, strings.Join(settings, " ")})
	}
	return out.table([]string{"NAME", "KIND", "STATE", "PID", "STARTS", "LAST END", "SETTINGS"}, rows)
}
