package main

import (
	"fmt"
	"slices"
	"strings"
)

// target is what a figure is to reach.
type target struct {
	scenario, figure string
	atMost           bool    // the figure must not be above; otherwise not below
	value            float64 // 0: there is only the next one
	beyond           float64 // better than what is demanded; 0: nothing is
}

// targets in the order of the report. Where one is a ratio, both sides come from one run of one scenario.
var targets = slices.Concat(
	[]target{
		{scenario: "sustained", figure: "transfers per second", beyond: 3000},
		{scenario: "peers", figure: "rate against watermill", value: 5},
		{scenario: "peers", figure: "rate against nestjs-batch", value: 2},
		{scenario: "sustained", figure: "CPU of all per transfer", atMost: true, value: 0.75, beyond: 0.5},
		{scenario: "ceilings", figure: "CPU of the bank against that ceiling", atMost: true, value: 3, beyond: 2}, // 0.75 and 0.5 of 0.25 ms
		{scenario: "ceilings", figure: "share of the database-only ceiling", value: 0.3, beyond: 0.5},
	},
	latencyTargets(100), latencyTargets(500),
	[]target{
		{scenario: "hot", figure: "ratio", value: 0.7, beyond: 0.9},
		{scenario: "failing", figure: "ratio", value: 0.9, beyond: 0.97},
		{scenario: "growth", figure: "ratio", value: 0.9, beyond: 1},
		{scenario: "slowdisk", figure: "ratio", value: 0.6, beyond: 0.8},
	},
	memoryTargets("account"), memoryTargets("transfer"),
	[]target{
		{scenario: "startup", figure: "account: start to ready", atMost: true, value: 0.5},
		{scenario: "startup", figure: "transfer: start to ready", atMost: true, value: 0.5},
		{scenario: "drain", figure: "ratio", value: 0.9},
		{scenario: "drain", figure: "memory, second half against first", atMost: true, value: flat},
		{scenario: "console", figure: onList + "max", atMost: true, value: 500},
		{scenario: "console", figure: onOne + "max", atMost: true, value: 500},
		{scenario: "console", figure: "first page: max", atMost: true, value: 1000},
		{scenario: "console", figure: "page again: max", atMost: true, value: 1000},
	},
)

// flat is what a sequence of readings may rise from its first half to its second, and still be called flat: the collector's rhythm alone moves
// the memory of a Go program by some percent.
const flat = 1.15

func latencyTargets(rate float64) []target {
	at := latencyLabel(rate)
	return []target{
		{scenario: "latency", figure: at + "p50", atMost: true, value: 10},
		{scenario: "latency", figure: at + "p99", atMost: true, value: 30, beyond: 15},
	}
}

func memoryTargets(service string) []target {
	return []target{
		{scenario: "memory", figure: service + ": most under full load", atMost: true, value: 60},
		{scenario: "memory", figure: service + ": after the rest", atMost: true, value: 40},
	}
}

// The verdicts on a figure.
const (
	reached     = "reached"
	beyond      = "beyond"
	missed      = "missed"
	open        = "not yet" // what is beyond is not reached, and nothing less was demanded
	notMeasured = "not measured"
)

// judge says what a measured value is worth.
func (t target) judge(v float64) string {
	holds := func(limit float64) bool {
		if t.atMost {
			return v <= limit
		}
		return v >= limit
	}
	switch {
	case t.beyond != 0 && holds(t.beyond):
		return beyond
	case t.value == 0:
		return open
	case holds(t.value):
		return reached
	}
	return missed
}

// limit writes one of the target's two values as a condition.
func (t target) limit(v float64, unit string) string {
	switch {
	case v == 0:
		return ""
	case t.atMost:
		return "≤ " + quantity(v, unit)
	}
	return "≥ " + quantity(v, unit)
}

// judgement is a row of the table of targets.
type judgement struct {
	Figure  string `json:"figure"`
	Target  string `json:"target,omitzero"`
	Beyond  string `json:"beyond,omitzero"`
	Median  string `json:"median,omitzero"`
	Range   string `json:"range,omitzero"`
	Verdict string `json:"verdict"`
}

// judge compares what was measured with the targets of the scenarios that were chosen, by the medians of the runs.
func (r *report) judge() (rows []judgement) {
	for _, t := range targets {
		s := r.section(t.scenario)
		if s == nil {
			continue
		}
		row := judgement{Figure: t.scenario + ": " + t.figure, Verdict: notMeasured}
		unit := ""
		if values := s.values(t.figure); len(values) > 0 {
			unit = s.unit(t.figure)
			row.Median, row.Range = quantity(median(values), unit), rangeOf(values, unit)
			row.Verdict = t.judge(median(values))
		}
		row.Target, row.Beyond = t.limit(t.value, unit), t.limit(t.beyond, unit)
		rows = append(rows, row)
	}
	return rows
}

func judgementTable(rows []judgement) string {
	var b strings.Builder
	b.WriteString("| figure | target | beyond | median | range | verdict |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Figure, r.Target, r.Beyond, r.Median, r.Range, r.Verdict)
	}
	return b.String()
}
