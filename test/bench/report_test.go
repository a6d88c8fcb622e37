package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStatistics(t *testing.T) {
	t.Parallel()
	unsorted := []float64{9, 1, 5}
	if m := median(unsorted); m != 5 || unsorted[0] != 9 {
		t.Errorf("the median is %v and the values %v, want 5 and the values as they were", m, unsorted)
	}
	if m := median([]float64{4, 1, 2, 9}); m != 3 {
		t.Errorf("the median of four is %v, want 3", m)
	}
	// 100 pieces at 100/s and 100 at 50/s take 3 s.
	if r := overall(100, 50); math.Abs(r-200.0/3) > 1e-9 {
		t.Errorf("overall %v, want 66.67", r)
	}
	p := together(pace{rate: 100, cpu: 1, others: 0.2}, pace{rate: 50, cpu: 3, others: 0.4})
	if math.Abs(p.rate-200.0/3) > 1e-9 || p.cpu != 2 || math.Abs(p.others-0.3) > 1e-9 {
		t.Errorf("together %+v", p)
	}
	for want, readings := range map[float64][]float64{1: {10, 8, 10}, 2: {5, 4, 10, 7}, 0.5: {10, 5, 1}} {
		if r := rise(readings); r != want {
			t.Errorf("%v rise by %v, want %v", readings, r, want)
		}
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	rate := target{value: 0.7, beyond: 0.9}
	time := target{atMost: true, value: 30, beyond: 15}
	for _, c := range []struct {
		of   target
		v    float64
		want string
	}{
		{rate, 0.69, missed}, {rate, 0.7, reached}, {rate, 0.89, reached}, {rate, 0.9, beyond},
		{time, 30.1, missed}, {time, 30, reached}, {time, 15, beyond},
		{target{beyond: 3000}, 2999, open}, {target{beyond: 3000}, 3000, beyond},
		{target{atMost: true, value: 0.5}, 0.1, reached},
	} {
		if got := c.of.judge(c.v); got != c.want {
			t.Errorf("%+v judges %v as %q, want %q", c.of, c.v, got, c.want)
		}
	}
}

// A target of a scenario that is not there would never be in a report, and nobody would miss it.
func TestTargetsNameScenarios(t *testing.T) {
	t.Parallel()
	for _, of := range targets {
		if _, err := choose([]string{of.scenario}); err != nil {
			t.Errorf("target %q: %v", of.figure, err)
		}
		if of.value == 0 && of.beyond == 0 {
			t.Errorf("target %s: %s demands nothing", of.scenario, of.figure)
		}
	}
}

func measured(values ...float64) *report {
	r := newReport(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), options{Transfers: 20000, WarmUp: 5000})
	for _, v := range values {
		var found result
		found.add("ratio", v, "")
		found.notes = []string{"the weather was fine"}
		r.add(hot, found)
	}
	return r
}

func TestReportJudgesTheMedian(t *testing.T) {
	t.Parallel()
	r := measured(0.95, 0.5, 0.8)
	r.note(memory, "not measured: no /proc")
	text := r.markdown()
	for _, want := range []string{
		"Measured on 2026-01-02,",
		"| hot: ratio | ≥ 0.700 | ≥ 0.900 | 0.800 | 0.500 – 0.950 | reached |",
		"| memory: account: most under full load | ≤ 60 |  |  |  | not measured |",
		"## hot", "| ratio | 0.800 | 0.500 – 0.950 |", "\nThe weather was fine.\n", "\nNot measured: no /proc.\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "weather"); n != 1 {
		t.Errorf("a note of three runs is there %d times", n)
	}
	if strings.Contains(text, "slowdisk") {
		t.Errorf("the report speaks of a scenario that was not chosen:\n%s", text)
	}
}

func TestReportAsJSON(t *testing.T) {
	t.Parallel()
	text, err := measured(0.95, 0.5, 0.8).json()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Targets   []map[string]string
		Scenarios []struct {
			Name    string
			Figures []struct {
				Name   string
				Median float64
				Runs   []float64
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if len(doc.Scenarios) != 1 || doc.Scenarios[0].Name != "hot" || len(doc.Targets) != 1 || doc.Targets[0]["verdict"] != reached {
		t.Fatalf("the document is\n%s", text)
	}
	if f := doc.Scenarios[0].Figures[0]; f.Name != "ratio" || f.Median != 0.8 || len(f.Runs) != 3 || f.Runs[0] != 0.95 {
		t.Errorf("the figure is %+v", f)
	}
}

// A scenario that fails has no figures, is named in the report, makes the program fail, and does not keep the others from being measured.
func TestFailedScenarioHasNoFigures(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{Runs: 2}, progress: io.Discard}
	broken := scenario{name: "broken", run: func(context.Context, *bench) (found result, err error) {
		found.add("figure", 1, "")
		return found, errors.New("bank verify: not everything holds\nthe details")
	}}
	absent := scenario{name: "absent", run: func(context.Context, *bench) (result, error) { return result{}, missing("no cc") }}
	fine := scenario{name: "fine", run: func(context.Context, *bench) (found result, err error) {
		found.add("figure", 7, "")
		return found, nil
	}}
	r := newReport(time.Now(), b.options)
	err := b.measure(t.Context(), []scenario{broken, absent, fine}, r)
	if err == nil || !strings.Contains(err.Error(), "not everything holds") || strings.Contains(err.Error(), "no cc") {
		t.Errorf("the error is %v", err)
	}
	text := r.markdown()
	for _, want := range []string{"Run 1 failed and has no figures", "Run 2 failed", "Not measured: no cc.", "| figure | 7 | 7 – 7 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if r.section("broken").figures() != nil || strings.Contains(text, "the details") {
		t.Errorf("the report shows what did not hold:\n%s", text)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--runs", "0"}, {"--transfers", "1"}, {"--rest", "0s"}, {"nothing-of-the-kind"}, {"--grown", "0"}, {"--drain=-1"}} {
		if err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%q are accepted", args)
		}
	}
}

// All runs take an hour and more: what has been measured is there when a later scenario fails, or is stopped.
func TestReportIsSavedAfterEachScenario(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	b := &bench{options: options{Runs: 1, Out: t.TempDir()}, progress: io.Discard}
	saved := func() string {
		text, err := os.ReadFile(filepath.Join(b.Out, "benchmarks.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := scenario{name: "first", run: func(context.Context, *bench) (found result, err error) {
		found.add("speed", 42, "/s")
		return found, nil
	}}
	second := scenario{name: "second", run: func(context.Context, *bench) (result, error) {
		if text := saved(); !strings.Contains(text, "| speed | 42 /s |") {
			t.Errorf("before the second scenario the report is\n%s", text)
		}
		stop()
		return result{}, ctx.Err()
	}}
	if err := b.measure(ctx, []scenario{first, second, first}, newReport(time.Now(), b.options)); err != nil {
		t.Fatal(err)
	}
	if text := saved(); !strings.Contains(text, "| speed | 42 /s | one run |") || strings.Contains(text, "second") {
		t.Errorf("after the stop the report is\n%s", text)
	}
}

func TestOnlyWhatShowsASpeedIsRepeated(t *testing.T) {
	t.Parallel()
	b := &bench{options: options{Runs: 3}, progress: io.Discard}
	var order []string
	named := func(name string, once bool) scenario {
		return scenario{name: name, once: once, run: func(context.Context, *bench) (result, error) {
			order = append(order, name)
			return result{}, nil
		}}
	}
	if err := b.measure(t.Context(), []scenario{named("speed", false), named("behaviour", true)}, newReport(time.Now(), b.options)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "speed behaviour speed speed" {
		t.Errorf("run were %s, want each speed three times, in turns, and the behaviour once", got)
	}
}
