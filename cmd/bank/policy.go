package main

import (
	"fmt"
	"os"
	"strings"

	"example.com/banking/internal/policy"
)

// policyCommand shows what the retry policy does. It needs no bank to run: everything is computed here.
type policyCommand struct {
	List          policyListCommand          `cmd:"" help:"List the plots and their settings."`
	Decisions     policyDecisionsCommand     `cmd:"" help:"Print the decision table."`
	Delays        policyDelaysCommand        `cmd:"" help:"How long a failing message waits, by profile."`
	Jitter        policyJitterCommand        `cmd:"" help:"Full, equal and decorrelated jitter over the same backoff."`
	Storm         policyStormCommand         `cmd:"" help:"Messages that failed together, and when they come back."`
	Amplification policyAmplificationCommand `cmd:"" help:"Calls on a dependency when several layers retry."`
	Dampers       policyDampersCommand       `cmd:"" help:"An outage, simulated under each damper."`
	Platforms     policyPlatformsCommand     `cmd:"" help:"The same failure on RabbitMQ, SQS and Kafka."`
}

// Each plot's settings are its flags. They are texts here: what they may be, and what they are when not given, says the plot itself, to
// this command as to the console.
type (
	policyDelaysCommand struct {
		Retries string `placeholder:"N" help:"Retries to show."`
		drawingFlag
	}
	policyJitterCommand struct {
		Retries string `placeholder:"N" help:"Retries to show."`
		Base    string `placeholder:"SECONDS" help:"The first delay."`
		Cap     string `placeholder:"SECONDS" help:"The longest delay."`
		Seed    string `placeholder:"N" help:"Seed of the random numbers."`
		drawingFlag
	}
	policyStormCommand struct {
		Messages string `placeholder:"N" help:"How many fail together."`
		Jitter   string `placeholder:"KIND" help:"full, equal, decorrelated, consumer or tiers."`
		Delay    string `placeholder:"SECONDS" help:"The first delay."`
		Retries  string `placeholder:"N" help:"Retries of each."`
		Seed     string `placeholder:"N" help:"Seed of the random numbers."`
		drawingFlag
	}
	policyAmplificationCommand struct {
		Layers   string `placeholder:"N" help:"Layers that retry."`
		Attempts string `placeholder:"N" help:"Attempts in each."`
		Requests string `placeholder:"N" help:"Requests while the dependency is down."`
		drawingFlag
	}
	policyDampersCommand struct {
		Failure  string `placeholder:"KIND" help:"down, or busy: it bears a tenth."`
		Outage   string `placeholder:"SECONDS" help:"How long it lasts."`
		Rate     string `placeholder:"N" help:"Messages a second."`
		Capacity string `placeholder:"N" help:"Calls a second that the dependency bears."`
		Attempts string `placeholder:"N" help:"Attempts of a message."`
		Seed     string `placeholder:"N" help:"Seed of the random numbers."`
		drawingFlag
	}
	policyPlatformsCommand struct {
		Class    string `placeholder:"CLASS" help:"Class of the failure, such as TIMEOUT."`
		Heals    string `placeholder:"SECONDS" help:"When the trouble is over; 0 for never."`
		Attempts string `placeholder:"N" help:"Attempts in all."`
		Seed     string `placeholder:"N" help:"Seed of the random numbers."`
		drawingFlag
	}
)

type drawingFlag struct {
	SVG string `name:"svg" placeholder:"FILE" type:"path" help:"Draw it into a file."`
}

func (c *policyDelaysCommand) Run(out *output) error {
	return showPlot(out, "delays", c.SVG, map[string]string{"retries": c.Retries})
}

func (c *policyJitterCommand) Run(out *output) error {
	return showPlot(out, "jitter", c.SVG, map[string]string{"retries": c.Retries, "base": c.Base, "cap": c.Cap, "seed": c.Seed})
}

func (c *policyStormCommand) Run(out *output) error {
	return showPlot(out, "storm", c.SVG, map[string]string{"messages": c.Messages, "jitter": c.Jitter, "delay": c.Delay, "retries": c.Retries, "seed": c.Seed})
}

func (c *policyAmplificationCommand) Run(out *output) error {
	return showPlot(out, "amplification", c.SVG, map[string]string{"layers": c.Layers, "attempts": c.Attempts, "requests": c.Requests})
}

func (c *policyDampersCommand) Run(out *output) error {
	return showPlot(out, "dampers", c.SVG, map[string]string{
		"failure": c.Failure, "outage": c.Outage, "rate": c.Rate, "capacity": c.Capacity, "attempts": c.Attempts, "seed": c.Seed})
}

func (c *policyPlatformsCommand) Run(out *output) error {
	return showPlot(out, "platforms", c.SVG, map[string]string{"class": c.Class, "heals": c.Heals, "attempts": c.Attempts, "seed": c.Seed})
}

// showPlot computes a plot and prints it; what is empty has not been given.
func showPlot(out *output, name, file string, given map[string]string) error {
	p, known := policy.Find(name)
	if !known {
		return fmt.Errorf("there is no plot %q", name)
	}
	for setting, text := range given {
		if text == "" {
			delete(given, setting)
		}
	}
	report, err := p.Compute(given)
	if err != nil {
		return fmt.Errorf("policy %s: %w", name, err)
	}
	if file != "" {
		if err := os.WriteFile(file, []byte(report.Drawing.SVG()), 0o644); err != nil {
			return fmt.Errorf("the drawing was not written: %w", err)
		}
	}
	if out.json {
		return out.document(report)
	}
	return printPlot(out, report)
}

type policyListCommand struct{}

func (c *policyListCommand) Run(out *output) error {
	if out.json {
		return out.document(policy.Plots())
	}
	var rows [][]string
	for _, p := range policy.Plots() {
		var settings []string
		for _, s := range p.Settings {
			settings = append(settings, fmt.Sprintf("--%s=%s", s.Name, s.Default))
		}
		rows = append(rows, []string{p.Name, p.Title, strings.Join(settings, " ")})
	}
	return out.table([]string{"PLOT", "SHOWS", "SETTINGS"}, rows)
}

type policyDecisionsCommand struct{}

func (c *policyDecisionsCommand) Run(out *output) error {
	table := policy.Decisions()
	if out.json {
		return out.document(table)
	}
	return printFigures(out, table)
}
