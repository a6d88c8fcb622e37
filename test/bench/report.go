package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/banking/internal/plot"
)

// figure is one measured number.
type figure struct {
	name  string
	value float64
	unit  string
}

// result is what one run of a scenario found.
type result struct {
	figures []figure
	notes   []string              // what a reader of the figures has to know, and only this run can tell
	charts  map[string]plot.Chart // by the name of their file, without its ending
}

func (r *result) add(name string, value float64, unit string) {
	r.figures = append(r.figures, figure{name, value, unit})
}

// report collects the results of all runs.
type report struct {
	at       time.Time
	machine  string
	versions string
	sizes    string
	sections []*section
}

type section struct {
	scenario scenario
	results  []result
	notes    []string
}

func newReport(at time.Time, o options) *report {
	return &report{
		at:      at,
		machine: fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version()),
		sizes: fmt.Sprintf("A sustained load is %d transfers among %d accounts, over HTTP with %d connections, after %d to warm up.",
			o.Transfers, customers, connections, o.WarmUp),
	}
}

// section is that of a scenario, nil when it has nothing to say.
func (r *report) section(name string) *section {
	i := slices.IndexFunc(r.sections, func(known *section) bool { return known.scenario.name == name })
	if i < 0 {
		return nil
	}
	return r.sections[i]
}

func (r *report) of(s scenario) *section {
	if r.section(s.name) == nil {
		r.sections = append(r.sections, &section{scenario: s})
	}
	return r.section(s.name)
}

func (r *report) add(s scenario, found result) {
	of := r.of(s)
	of.results = append(of.results, found)
	for _, text := range found.notes {
		r.note(s, text)
	}
}

// note adds a remark to a scenario; the same one of several runs is there once.
func (r *report) note(s scenario, text string) {
	of := r.of(s)
	if !slices.Contains(of.notes, text) {
		of.notes = append(of.notes, text)
	}
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s", r.at.UTC().Format("2006-01-02"), r.machine)
	if r.versions != "" {
		fmt.Fprintf(&b, ", %s", r.versions)
	}
	fmt.Fprintf(&b, ". %s\n", r.sizes)
	if rows := r.judge(); len(rows) > 0 {
		b.WriteString("\n## Targets\n\n" + judgementTable(rows))
	}
	for _, s := range r.sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.scenario.name, s.scenario.about)
		if names := s.figures(); len(names) > 0 {
			b.WriteString("\n| figure | median | range |\n| --- | --- | --- |\n")
			for _, name := range names {
				values := s.values(name)
				fmt.Fprintf(&b, "| %s | %s | %s |\n", name, quantity(median(values), s.unit(name)), rangeOf(values, s.unit(name)))
			}
		}
		for _, text := range s.notes {
			fmt.Fprintf(&b, "\n%s%s.\n", strings.ToUpper(text[:1]), strings.TrimSuffix(text[1:], "."))
		}
		for _, name := range s.charts() {
			fmt.Fprintf(&b, "\n![%s](%s.svg)\n", s.results[0].charts[name].Title, name)
		}
	}
	return b.String()
}

// figures are the names of all that some run has found, in the order in which they were found first.
func (s *section) figures() (names []string) {
	for _, r := range s.results {
		for _, f := range r.figures {
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	return names
}

// values are what the runs found for a figure, in the order of the runs.
func (s *section) values(name string) (values []float64) {
	for _, r := range s.results {
		for _, f := range r.figures {
			if f.name == name {
				values = append(values, f.value)
			}
		}
	}
	return values
}

func (s *section) unit(name string) string {
	for _, r := range s.results {
		for _, f := range r.figures {
			if f.name == name {
				return f.unit
			}
		}
	}
	return ""
}

func (s *section) charts() (names []string) {
	if len(s.results) == 0 {
		return nil
	}
	for name := range s.results[0].charts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func rangeOf(values []float64, unit string) string {
	if len(values) < 2 {
		return "one run"
	}
	return quantity(slices.Min(values), unit) + " – " + quantity(slices.Max(values), unit)
}

// quantity writes a number with as many digits as it deserves.
func quantity(v float64, unit string) string {
	digits := 0
	switch size := max(v, -v); {
	case v == float64(int64(v)):
	case size < 1:
		digits = 3
	case size < 10:
		digits = 2
	case size < 100:
		digits = 1
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'f', digits, 64) + " " + unit)
}

// save writes the report and its drawings into a folder.
func (r *report) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, s := range r.sections {
		for _, name := range s.charts() {
			if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(s.results[0].charts[name].SVG()), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte("# Measured\n\n"+preface+r.markdown()), 0o644)
}

// preface tells readers of the saved report where it comes from, and how far to trust it.
const preface = "Made by `make bench`, which is `go run ./test/bench`, with `--out docs/reference`; at the targets' full sizes by\n" +
	"`make bench RUNS=3 BENCH='--grown 1000000 --grown-inbox 5000000 --out docs/reference' PEERS=folder`.\n\n" +
	"Compare figures within one run only: machines differ, and so do moments (the scenario ceilings has a yardstick for that). Where a target is a\n" +
	"ratio, both sides were measured in one run, most of them in turns on one system. Every scenario has private servers with default durability\n" +
	"and quorum queues, on the same cores as services and client, and ends with `bank verify`: one that does not hold has no figures.\n\n"
