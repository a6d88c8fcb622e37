// Command bench measures the bank as its programs run in production: on private servers with their default durability, over HTTP, with
// the real broker between the services. Every scenario starts from nothing, and ends with `bank verify`: a scenario whose
// money does not add up has no figures.
//
// Figures are true for the machine and the moment: compare those of one run only.
package main

import (
	"context"
	"errors"
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
	Scenario   []string      `arg:"" optional:"" help:"Which to run; all when none is named. --list shows them."`
	List       bool          `help:"List the scenarios."`
	Runs       int           `default:"1" help:"How often to run each, taking turns. The report has the median and the range."`
	Out        string        `help:"Folder for the report and its drawings; without it the report is only printed." type:"path"`
	JSON       bool          `name:"json" help:"Print the report as JSON."`
	Transfers  int           `default:"20000" help:"Measured transfers of a sustained load."`
	WarmUp     int           `default:"5000" help:"Transfers before them."`
	Grown      int           `default:"200000" help:"Transfers in the tables in the scenario growth. The target is for 1,000,000."`
	GrownInbox int           `default:"1000000" help:"Rows in each inbox there. The target is for 5,000,000."`
	Drain      int           `default:"100000" help:"Waiting messages in the scenario drain."`
	Rest       time.Duration `default:"60s" help:"How long the bank stands idle in the scenario memory."`
	Outage     time.Duration `default:"60s" help:"How long the database is away in the scenario outage."`
	Peers      string        `help:"Folder with other systems' run.sh; the bank is measured beside them." type:"path"`
	PeersArgs  []string      `help:"Arguments for that run.sh, separated by commas." default:"-q,60"`
}

// check says what is wrong with the command line.
func (o options) check() error {
	for _, wrong := range []struct {
		is   bool
		what string
	}{
		{o.Runs < 1, "--runs must be at least 1"},
		{o.Transfers < 100, "--transfers must be at least 100"},
		{o.WarmUp < 1, "--warm-up must be at least 1"},
		{o.Grown < 1 || o.GrownInbox < 1, "--grown and --grown-inbox must be at least 1"},
		{o.Drain < 1, "--drain must be at least 1"},
		{o.Rest <= 0 || o.Outage <= 0, "--rest and --outage must be above 0"},
	} {
		if wrong.is {
			return errors.New(wrong.what)
		}
	}
	return nil
}

// scenario is one thing that is measured.
type scenario struct {
	name  string
	about string
	once  bool // it takes minutes and shows a behaviour, not a speed: one run of it is enough, whatever --runs says
	run   func(ctx context.Context, b *bench) (result, error)
}

// scenarios in the order of the report.
var scenarios = []scenario{
	sustained, ceilings, latency, rates, hot, failing, growth, slowDisk, memory, startUp, drain, outage, spread, console, peers,
}

// missing is the error of a scenario for which this machine lacks something. It is reported, and spoils nothing else.
type missing string

func (m missing) Error() string { return string(m) }

// bench is what a scenario works with.
type bench struct {
	options
	root     string    // folder of the module
	programs string    // folder of the built programs
	progress io.Writer // for people
	versions string    // of the servers, once one has been started
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
	if err := b.check(); err != nil {
		return err
	}
	chosen, err := choose(b.Scenario)
	if err != nil {
		return err
	}
	if b.programs, err = os.MkdirTemp("", "banking-bench-bin-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.programs) }()
	if err := b.build(ctx); err != nil {
		return err
	}
	report := newReport(time.Now(), b.options)
	failed := b.measure(ctx, chosen, report)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := report.markdown()
	if b.JSON {
		if text, err = report.json(); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(stdout, text); err != nil {
		return err
	}
	return failed
}

// measure runs the scenarios, all of them once before any of them again, so that a busy minute of the machine does not hit one alone. After
// each it saves what there is, for all of them take an hour and more.
func (b *bench) measure(ctx context.Context, chosen []scenario, report *report) (failed error) {
	for n := range b.Runs {
		for _, s := range chosen {
			if s.once && n > 0 {
				continue
			}
			_, _ = fmt.Fprintf(b.progress, "%s, run %d of %d\n", s.name, n+1, b.Runs)
			found, err := s.run(ctx, b)
			if ctx.Err() != nil {
				return failed
			}
			var lacks missing
			switch {
			case errors.As(err, &lacks):
				b.say("not measured: %s", lacks)
				report.note(s, "not measured: "+string(lacks))
			case err != nil:
				err = fmt.Errorf("%s, run %d: %w", s.name, n+1, err)
				b.say("%s", err)
				report.note(s, fmt.Sprintf("run %d failed and has no figures: %s", n+1, firstLine(err)))
				failed = errors.Join(failed, err)
			default:
				report.add(s, found)
			}
			report.versions = b.versions
			if b.Out != "" {
				failed = errors.Join(failed, report.save(b.Out))
			}
		}
	}
	return failed
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
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
func (b *bench) build(ctx context.Context) error {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	b.root = strings.TrimSpace(string(root))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-o", b.programs+string(filepath.Separator),
		"./services/account", "./services/console", "./services/transfer", "./cmd/bank")
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return nil
}
