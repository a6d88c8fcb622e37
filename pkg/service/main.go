package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// The exit codes of a service, beside those that an error brings along by an ExitCode() int method.
const (
	exitOK            = 0
	exitFailure       = 1
	exitConfiguration = 2
	exitSignal        = 128 // plus the signal's number, as shells have it: a second signal ended it
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
	os.Exit(launch(name, defaults, run, process{os.Args[1:], os.Environ(), os.Stdout, os.Stderr}))
}

// process is what a program gets from its operating system.
type process struct {
	args           []string
	environ        []string
	stdout, stderr io.Writer
}

func launch[C Configuration](name string, defaults Defaults, run func(context.Context, C, *slog.Logger) error, p process) int {
	if len(p.args) > 1 {
		fmt.Fprintf(p.stderr, "%s: too many arguments; see %s --help\n", name, name)
		return exitConfiguration
	}
	if len(p.args) == 1 {
		switch p.args[0] {
		case "--help", "-h":
			writeHelp[C](p.stdout, name, defaults)
			return exitOK
		case "--health":
			return health(p, defaults)
		}
		fmt.Fprintf(p.stderr, "%s: unknown argument %q; see %s --help\n", name, p.args[0], name)
		return exitConfiguration
	}
	cfg, err := Load[C](p.environ, defaults)
	if err != nil {
		fmt.Fprintf(p.stderr, "%s: %v\n", name, err)
		return exitCode(err)
	}
	common := cfg.Common()
	log := NewLogger(p.stderr, name, common.LogLevel, common.LogFormat)
	ctx, release := untilSignal(log)
	defer release()
	tuneMemory(ctx)

	stopTracing, err := StartTracing(ctx, name, log)
	if err != nil {
		log.Error("tracing could not start", "error", err)
		return exitFailure
	}
	err = guarded(ctx, run, cfg, log)
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if lost := stopTracing(flush); lost != nil {
		log.Warn("the last spans were not exported", "error", lost)
	}
	if err != nil && !(ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		log.Error("service failed", "error", err)
		return exitCode(err)
	}
	log.Info("service stopped")
	return exitOK
}

// guarded turns a panic into an error: Go's own exit code for it is 2, which means a wrong configuration here.
func guarded[C any](ctx context.Context, run func(context.Context, C, *slog.Logger) error, cfg C, log *slog.Logger) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			log.Error("panic", "reason", reason, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", reason)
		}
	}()
	return run(ctx, cfg, log)
}

// oneSignal is for how long the same signal again is the same one: timeout(1) and some supervisors send it to the process and to its
// group, within a millisecond.
const oneSignal = 500 * time.Millisecond

// untilSignal gives a context that ends on the first SIGTERM or SIGINT. The second one exits at once, for those who
// cannot wait for the grace.
func untilSignal(log *slog.Logger) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	released := make(chan struct{})
	go func() {
		var first os.Signal
		var at time.Time
		for {
			select {
			case <-released:
				return
			case s := <-signals:
				if s == first && time.Since(at) < oneSignal {
					continue
				}
				if ctx.Err() != nil {
					log.Warn("second signal, exiting at once", "signal", s.String())
					os.Exit(exitSignal + int(s.(syscall.Signal)))
				}
				first, at = s, time.Now()
				log.Info("stopping", "signal", s.String())
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		cancel()
	}
}

func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return exitFailure
}

// health asks the service that runs with the same environment whether it is ready. Containers without a shell or curl have
// no other way.
func health(p process, defaults Defaults) int {
	address := defaults["HTTP_ADDR"]
	for _, line := range p.environ {
		if value, ok := strings.CutPrefix(line, "HTTP_ADDR="); ok && value != "" {
			address = value
		}
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || port == "0" {
		fmt.Fprintf(p.stderr, "HTTP_ADDR=%q: wanted host:port with a fixed port\n", address)
		return exitConfiguration
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	client := http.Client{Timeout: 4 * time.Second}
	defer client.CloseIdleConnections()
	answer, err := client.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		fmt.Fprintln(p.stderr, err)
		return exitFailure
	}
	defer answer.Body.Close()
	_, _ = io.Copy(p.stdout, io.LimitReader(answer.Body, 64<<10)) // the reasons, for who looks at the check's output
	if answer.StatusCode != http.StatusOK {
		return exitFailure
	}
	return exitOK
}
