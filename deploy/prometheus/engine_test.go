package prometheus_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// The tests in rules_test.yml are in promtool's format. Not everybody has it, and building it takes many minutes, so here they are
// run by Prometheus' own engine, which takes seconds.
func TestAlertsRing(t *testing.T) {
	t.Parallel()
	var file ruleTests
	load(t, "rules_test.yml", &file)
	alerts := map[string]rule{}
	for _, r := range loadRules(t) {
		alerts[r.Alert] = r
	}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			t.Parallel()
			evaluation := newEvaluation(t, test.Interval, file.Interval)
			for _, input := range test.Input {
				evaluation.add(input.Series + " " + input.Values)
			}
			for _, c := range test.Alerts {
				r, known := alerts[c.Alert]
				if !known {
					t.Fatalf("there is no alert %s", c.Alert)
				}
				var want []string
				for _, expected := range c.Expected {
					want = append(want, describe(expected.Labels, expected.Annotations))
				}
				got := evaluation.ringing(r, duration(t, c.Time))
				slices.Sort(want)
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s at %s:\n%s\nwant:\n%s", c.Alert, c.Time, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := model.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(d)
}

// describe is an alert as text: its labels, then what it says.
func describe(all, says map[string]string) string {
	text := labels.FromMap(all).String()
	for _, name := range []string{"summary", "description", "runbook"} {
		text += "\n  " + name + ": " + says[name]
	}
	return text
}

// evaluation evaluates rules over series that begin at the Unix epoch, as promtool does.
type evaluation struct {
	*testing.T
	engine      *promql.Engine
	step, every time.Duration // between samples, and between evaluations
	series      []storage.Series
}

func newEvaluation(t *testing.T, step, every string) *evaluation {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute})
	t.Cleanup(func() { _ = engine.Close() })
	return &evaluation{T: t, engine: engine, step: duration(t, step), every: duration(t, every)}
}

// sample is one value of a series.
type sample struct {
	at    int64 // in ms
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) F() float64                    { return s.value }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }

// add adds a series, written as in the tests: name{labels} values.
func (e *evaluation) add(text string) {
	e.Helper()
	name, values, err := parser.ParseSeriesDesc(text)
	if err != nil {
		e.Fatalf("%s: %v", text, err)
	}
	var samples []chunks.Sample
	for i, v := range values {
		if !v.Omitted {
			samples = append(samples, sample{(time.Duration(i) * e.step).Milliseconds(), v.Value})
		}
	}
	e.series = append(e.series, storage.NewListSeries(name, samples))
}

// ringing are the alerts of a rule that ring at a time, after all evaluations up to it.
func (e *evaluation) ringing(r rule, at time.Duration) []string {
	e.Helper()
	hold := time.Duration(0)
	if r.For != "" {
		hold = duration(e.T, r.For)
	}
	since := map[string]time.Duration{} // when each became pending
	var ringing []string
	for now := time.Duration(0); now <= at; now += e.every {
		pending := map[string]time.Duration{}
		ringing = nil
		for _, found := range e.query(r.Expr, now) {
			id := found.Metric.String()
			began, was := since[id]
			if !was {
				began = now
			}
			pending[id] = began
			if now-began >= hold {
				ringing = append(ringing, e.alert(r, found, now))
			}
		}
		since = pending
	}
	return ringing
}

func (e *evaluation) query(expr string, now time.Duration) promql.Vector {
	e.Helper()
	query, err := e.engine.NewInstantQuery(e.Context(), e, nil, expr, time.UnixMilli(now.Milliseconds()))
	if err != nil {
		e.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	vector, err := query.Exec(e.Context()).Vector()
	if err != nil {
		e.Fatalf("%s: %v", expr, err)
	}
	return slices.Clone(vector)
}

// alert is what Prometheus would send about one element of the result.
func (e *evaluation) alert(r rule, found promql.Sample, now time.Duration) string {
	e.Helper()
	data := template.AlertTemplateData(found.Metric.Map(), nil, "", found)
	expand := func(text string) string {
		defined := "{{$labels := .Labels}}{{$value := .Value}}" + text
		expanded, err := template.NewTemplateExpander(e.Context(), defined, r.Alert, data, model.Time(now.Milliseconds()), nil, &url.URL{}, nil).Expand()
		if err != nil {
			e.Fatalf("%s: %v", r.Alert, err)
		}
		return expanded
	}
	all, says := found.Metric.Map(), map[string]string{}
	delete(all, model.MetricNameLabel)
	for name, text := range r.Labels {
		all[name] = expand(text)
	}
	for name, text := range r.Annotations {
		says[name] = expand(text)
	}
	return describe(all, says)
}

// Querier is part of storage.Queryable.
func (e *evaluation) Querier(int64, int64) (storage.Querier, error) { return querier{e.series}, nil }

type querier struct{ series []storage.Series }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	matching := &seriesSet{at: -1}
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
			matching.series = append(matching.series, s)
		}
	}
	return matching
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool {
	s.at++
	return s.at < len(s.series)
}

func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
