// Command hold runs a command, such as go test, while it holds a lease on the tests' shared servers. Without it the servers would
// stop and start again wherever the compiler needs longer for the next test binary than they linger.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"example.com/banking/internal/testenv"
)

func main() { os.Exit(run()) }

func run() int {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: hold command [argument ...]")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if os.Getenv("AMQP_URL") == "" || os.Getenv("DATABASE_URL") == "" {
		lease, err := testenv.Hold(ctx)
		if err != nil {
			fmt.Fprintln(os.Stderr, "hold:", err)
			return 1
		}
		defer func() { _ = lease.Release() }() // ends with the process at the latest
	}
	cmd := exec.CommandContext(ctx, os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "hold:", err)
		return 1
	}
}
