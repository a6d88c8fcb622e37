// Command bank is the operator's tool: it starts and stops a whole bank on this machine, and looks into and acts on a running one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line. Each verb group has a file of its own.
type commands struct {
	Dir  string `help:"Folder with the bank's addresses and data." default:".bank" env:"BANK_DIR" type:"path"`
	JSON bool   `help:"Print JSON instead of tables." name:"json"`

	Up   upCommand   `cmd:"" help:"Start servers and services on this machine, until Ctrl-C."`
	Down downCommand `cmd:"" help:"Stop what 'up' started."`
	Demo demoCommand `cmd:"" help:"Start the bank, take a guided tour that checks itself, and stop it."`
	Seed seedCommand `cmd:"" help:"Open the demo accounts; those that exist stay as they are."`

	Account  accountCommand  `cmd:"" help:"Open, list, show, freeze and close accounts."`
	Transfer transferCommand `cmd:"" help:"Ask for transfers, show, list and watch them."`
	Publish  publishCommand  `cmd:"" help:"Publish a raw message, garbage welcome."`
	Queues   queuesCommand   `cmd:"" help:"Show how many messages wait in which queue."`
	Parked   parkedCommand   `cmd:"" help:"Look into the quarantine, replay and discard what is in it."`
	Outbox   outboxCommand   `cmd:"" help:"Show and send again the outgoing messages that the broker refused."`
	Policy   policyCommand   `cmd:"" help:"Show what the retry policy does: delays, jitter, layers, dampers, platforms."`
	Load     loadCommand     `cmd:"" help:"Make traffic at a fixed rate, and measure latencies."`
	Verify   verifyCommand   `cmd:"" help:"Check every invariant; exit code 1 when one is broken. What cannot be judged now is said, and is no failure."`
	Service  serviceCommand  `cmd:"" help:"List, stop, kill, pause and start what 'up' keeps running."`
	Exercise exerciseCommand `cmd:"" help:"The break-it exercises: list, read and run them."`

	Interview  interviewCommand  `cmd:"" help:"Ask the questions of this field, and show good answers."`
	NewService newServiceCommand `cmd:"" help:"Make a new service from the template: compiling, tested, part of 'up'."`
}

// terminal is what a command talks to people and programs with.
type terminal struct {
	out io.Writer // results
	err io.Writer // progress and complaints
	// dir and json are the global flags.
	dir  string
	json bool
}

func (t *terminal) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.out, format, args...) // a closed terminal is no reason to stop
}

// exitError ends the program with its code; whatever had to be said has been said.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cli commands
	parser, err := kong.New(&cli,
		kong.Name("bank"),
		kong.Description("The operator's tool of the banking demonstration."),
		kong.Writers(stdout, stderr),
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "bank:", err)
		return 1
	}
	if len(args) == 0 || len(args) == 1 && args[0] == "help" {
		args = []string{"--help"}
	}
	command, err := parser.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "bank: %v\nrun 'bank help' for the commands\n", err)
		return 2
	}
	command.Bind(newOutput(stdout, cli.JSON))
	to := &endpoints{}
	err = command.BindToProvider(func() (*endpoints, error) {
		to, err = loadEndpoints(cli.Dir)
		return to, err
	})
	if err == nil {
		err = command.Run(&terminal{out: stdout, err: stderr, dir: cli.Dir, json: cli.JSON})
	}
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	default:
		_, _ = fmt.Fprintln(stderr, "bank:", foreignLines(err.Error())) // which may quote somebody's text
		if gone := to.gone(err); gone != nil {
			_, _ = fmt.Fprintln(stderr, "bank:", gone)
		}
		return 1
	}
}
