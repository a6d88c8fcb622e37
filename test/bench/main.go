// Command bench measures the bank as its programs run in production: on private servers with their default durability, over HTTP, with
// the real broker between the services. Every scenario starts from nothing, and ends with `bank verify`.
//
// Figures are true for the machine and the moment: compare those of one run only.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
)

// options is the command line.
type options struct {
	Scenario []string      `arg:"" optional:"" help:"Which to run; all when none is named. --list shows them."`
	List     bool          `help:"List the scenarios."`
	Runs     int           `default:"1" help:"How often to run each. The report has the median and the range."`
	Out      string        `help:"Folder for the report and its drawings; without it the report is only printed." type:"path"`
	Outage   time.Duration `default:"60s" help:"How long the database is away in the scenario outage."`
}

// scenario is one thing that is measured.
type scenario struct {
	name  string
	about string
	run   func(ctx context.Context, b *bench) (result, error)
}

// scenarios in the order of the report.
var scenarios = []scenario{sustained, latency, hot, outage, spread}

// bench is what a scenario works with.
type bench struct {
	options
	programs string    // folder of the built programs
	progress io.Writer // for people
}

func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "  "+format+"\n", args...)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{progress: stderr}
	parser, err := kong.New(&b.options, kong.Name("bench"), kong.Description("Measures the bank."))
	if err != nil {
		return err
	}
	if _, err := parser.Parse(args); err != nil {
		return err
	}
	if b.List {
		for _, s := range scenarios {
			_, _ = fmt.Fprintf(stdout, "%-12s %s\n", s.name, s.about)
		}
		return nil
	}
	chosen, err := choose(b.Scenario)
	if err != nil {
		return err
	}
	if b.programs, err = os.MkdirTemp("", "banking-bench-bin-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.programs) }()
	if err := build(ctx, b.programs); err != nil {
		return err
	}
	report := newReport(time.Now())
	for n := range max(b.Runs, 1) {
		for _, s := range chosen {
			_, _ = fmt.Fprintf(stderr, "%s, run %d of %d\n", s.name, n+1, b.Runs)
			r, err := s.run(ctx, b)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			report.add(s, r)
		}
	}
	if _, err := io.WriteString(stdout, report.markdown()); err != nil || b.Out == "" {
		return err
	}
	return report.save(b.Out)
}

func choose(names []string) ([]scenario, error) {
	if len(names) == 0 {
		return scenarios, nil
	}
	var chosen []scenario
	for _, name := range names {
		i := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no scenario %q; --list shows them", name)
		}
		chosen = append(chosen, scenarios[i])
	}
	return chosen, nil
}

// build builds the programs as `make build` does.
func build(ctx context.Context, dir string) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", dir+string(filepath.Separator),
		"./services/account", "./services/transfer", "./cmd/bank")
	cmd.Dir = strings.TrimSpace(string(root))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}
