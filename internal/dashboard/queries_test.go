package dashboard

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// addedByPrometheus are the labels that no service gives.
var addedByPrometheus = []string{"job", "instance"}

var (
	metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([a-z, ]*) \\|")
	fqName    = regexp.MustCompile(`fqName: "([^"]+)"`)
	histogram = regexp.MustCompile(`_(bucket|sum|count)$`)
	used      = regexp.MustCompile(`\$\{?([a-zA-Z_]+)`)
	valuesOf  = regexp.MustCompile(`^label_values\((.+), ([a-z]+)\)$`)
)

// known are the metrics that services have, with their labels: those of the reference, of the Go runtime and the process, and
// Prometheus' own.
func known(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{"up": nil, "ALERTS": {"alertname", "alertstate", "severity", "queue"}}
	for _, m := range metricRow.FindAllStringSubmatch(read(t, "docs", "reference", "metrics.md"), -1) {
		metrics[m[1]] = strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' })
	}
	if len(metrics) < 25 {
		t.Fatalf("the reference has only %d metrics", len(metrics))
	}
	for _, c := range []client.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})} {
		descriptions := make(chan *client.Desc, 1000)
		c.Describe(descriptions)
		close(descriptions)
		for d := range descriptions {
			metrics[fqName.FindStringSubmatch(d.String())[1]] = nil
		}
	}
	return metrics
}

// labelsOf are the labels that the series of a name have.
func labelsOf(metrics map[string][]string, series string) ([]string, bool) {
	if given, there := metrics[series]; there {
		return slices.Concat(given, addedByPrometheus), true
	}
	base := histogram.ReplaceAllString(series, "")
	given, there := metrics[base]
	if strings.HasSuffix(series, "_bucket") {
		given = slices.Concat(given, []string{"le"})
	}
	return slices.Concat(given, addedByPrometheus), there && base != series
}

// parsed is an expression as Prometheus gets it: Grafana has put in the range and the chosen values.
func parsed(t *testing.T, expr string) parser.Expr {
	t.Helper()
	e, err := parser.ParseExpr(strings.NewReplacer("$__rate_interval", "1m", "$service", "account|fees", "$queue", ".*").Replace(expr))
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return e
}

// selectors are the series that an expression reads, each with the labels that the aggregations around it keep.
func selectors(e parser.Expr) (found []*parser.VectorSelector, kept [][]string) {
	parser.Inspect(e, func(node parser.Node, path []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			var grouping []string
			for _, above := range path {
				if by, ok := above.(*parser.AggregateExpr); ok {
					grouping = append(grouping, by.Grouping...)
				}
			}
			found, kept = append(found, selector), append(kept, grouping)
		}
		return nil
	})
	return found, kept
}

// A query for a metric or label that nobody has draws nothing, which looks like a quiet day.
func TestQueriesAskForWhatServicesHave(t *testing.T) {
	t.Parallel()
	metrics := known(t)
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				found, kept := selectors(parsed(t, target.Expr))
				if len(found) == 0 {
					t.Errorf("%s: %q reads nothing: %s", name, p.Title, target.Expr)
				}
				for i, selector := range found {
					have, there := labelsOf(metrics, selector.Name)
					if !there {
						t.Errorf("%s: %q: nobody has %s", name, p.Title, selector.Name)
					}
					asked := kept[i]
					for _, m := range selector.LabelMatchers {
						if m.Name != model.MetricNameLabel {
							asked = append(asked, m.Name)
						}
					}
					for _, label := range asked {
						if !slices.Contains(have, label) {
							t.Errorf("%s: %q: %s has no label %s", name, p.Title, selector.Name, label)
						}
					}
				}
			}
		}
	}
}

// What is chosen above holds for every panel: by service, by queue where the metric has one, and with any data source.
func TestQueriesFollowTheVariables(t *testing.T) {
	t.Parallel()
	metrics := known(t)
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				if target.Datasource != prometheus || p.Datasource != prometheus {
					t.Errorf("%s: %q asks %+v", name, p.Title, target.Datasource)
				}
				found, _ := selectors(parsed(t, target.Expr))
				for _, selector := range found {
					if selector.Name == "ALERTS" { // many go by no service
						continue
					}
					byQueue := slices.Contains(metrics[histogram.ReplaceAllString(selector.Name, "")], "queue") || slices.Contains(metrics[selector.Name], "queue")
					if matched(selector, "job") != 1 || byQueue != (matched(selector, "queue") == 1) {
						t.Errorf("%s: %q: %s has to go by the chosen service, and if it has a queue by that", name, p.Title, selector)
					}
				}
				if legend := target.LegendFormat; p.Type != string(table) && legend == "" {
					t.Errorf("%s: %q: its series have no name", name, p.Title)
				}
			}
		}
	}
}

func matched(s *parser.VectorSelector, label string) (n int) {
	for _, m := range s.LabelMatchers {
		if m.Name == label && (m.Type == labels.MatchRegexp || m.Type == labels.MatchEqual) {
			n++
		}
	}
	return n
}

// A legend names labels that the query keeps; of others Grafana shows the braces.
func TestLegendsNameWhatIsKept(t *testing.T) {
	t.Parallel()
	inBraces := regexp.MustCompile(`\{\{(\w+)\}\}`)
	for name, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				_, kept := selectors(parsed(t, target.Expr))
				for _, grouping := range kept {
					for _, m := range inBraces.FindAllStringSubmatch(target.LegendFormat, -1) {
						if label := m[1]; !slices.Contains(grouping, label) && !(len(grouping) == 0 && slices.Contains(addedByPrometheus, label)) {
							t.Errorf("%s: %q: the legend names %s, the query keeps %v", name, p.Title, label, grouping)
						}
					}
				}
			}
		}
	}
}

// Each variable that is used is there, and has its values from a metric that services have.
func TestVariables(t *testing.T) {
	t.Parallel()
	metrics := known(t)
	for name, d := range dashboards(t) {
		there := map[string]bool{"__rate_interval": true}
		var uses []string
		for _, v := range d.Templating.List {
			there[v.Name] = true
			if v.Type == "datasource" {
				continue
			}
			uses = append(uses, v.Query)
			m := valuesOf.FindStringSubmatch(v.Query)
			if m == nil {
				t.Errorf("%s: variable %s: %s", name, v.Name, v.Query)
				continue
			}
			found, _ := selectors(parsed(t, m[1]))
			for metric := range metrics {
				have, _ := labelsOf(metrics, metric)
				if nameMatches(found[0], metric) {
					if !slices.Contains(have, m[2]) {
						t.Errorf("%s: variable %s: %s has no label %s", name, v.Name, metric, m[2])
					}
					there[v.Name+" has values"] = true
				}
			}
			if !there[v.Name+" has values"] {
				t.Errorf("%s: variable %s: nobody has %s", name, v.Name, m[1])
			}
		}
		for _, a := range d.Annotations.List {
			parsed(t, a.Expr)
			uses = append(uses, a.Expr)
		}
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				uses = append(uses, target.Expr, target.Datasource.UID)
			}
		}
		for _, text := range uses {
			for _, m := range used.FindAllStringSubmatch(text, -1) {
				if !there[m[1]] {
					t.Errorf("%s: there is no variable %s: %s", name, m[1], text)
				}
			}
		}
	}
}

func nameMatches(s *parser.VectorSelector, metric string) bool {
	return !slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && !m.Matches(metric) })
}
