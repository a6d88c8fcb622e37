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
	charts  map[string]plot.Chart // by the name of their file, without its ending
}

func (r *result) add(name string, value float64, unit string) {
	r.figures = append(r.figures, figure{name, value, unit})
}

// report collects the results of all runs.
type report struct {
	at       time.Time
	machine  string
	sections []*section
}

type section struct {
	scenario scenario
	results  []result
}

func newReport(at time.Time) *report {
	return &report{at: at, machine: fmt.Sprintf("%d cores, %s/%s, %s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())}
}

func (r *report) add(s scenario, found result) {
	i := slices.IndexFunc(r.sections, func(known *section) bool { return known.scenario.name == s.name })
	if i < 0 {
		i = len(r.sections)
		r.sections = append(r.sections, &section{scenario: s})
	}
	r.sections[i].results = append(r.sections[i].results, found)
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, %s.\n", r.at.UTC().Format("2006-01-02"), r.machine)
	for _, s := range r.sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| figure | median | range |\n| --- | --- | --- |\n", s.scenario.name, s.scenario.about)
		for _, f := range s.results[0].figures {
			values := s.values(f.name)
			fmt.Fprintf(&b, "| %s | %s | %s |\n", f.name, quantity(values[(len(values)-1)/2], f.unit), rangeOf(values, f.unit))
		}
		for _, name := range s.charts() {
			fmt.Fprintf(&b, "\n![%s](%s.svg)\n", s.results[0].charts[name].Title, name)
		}
	}
	return b.String()
}

// values are what the runs found for a figure, in ascending order.
func (s *section) values(name string) (values []float64) {
	for _, r := range s.results {
		for _, f := range r.figures {
			if f.name == name {
				values = append(values, f.value)
			}
		}
	}
	slices.Sort(values)
	return values
}

func (s *section) charts() (names []string) {
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
	return quantity(values[0], unit) + " – " + quantity(values[len(values)-1], unit)
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
		for name, chart := range s.results[0].charts {
			if err := os.WriteFile(filepath.Join(dir, name+".svg"), []byte(chart.SVG()), 0o644); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(dir, "benchmarks.md"), []byte(r.markdown()), 0o644)
}
