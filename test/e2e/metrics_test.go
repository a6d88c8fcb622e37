package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"

	"example.com/banking/internal/testenv"
)

// selection is what an alert asks for: a metric, labels with certain values, labels to group by.
type selection struct {
	alert    string
	metric   string
	matchers []*labels.Matcher
	grouping []string
}

// addedByPrometheus are not the services' to give.
var addedByPrometheus = []string{"up", "job", "instance"}

func selections(t *testing.T) (all []selection) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Load(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			expr, err := parser.ParseExpr(rule.Expr)
			if err != nil {
				t.Fatalf("%s: %v", rule.Alert, err)
			}
			parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
				selector, ok := node.(*parser.VectorSelector)
				if !ok || slices.Contains(addedByPrometheus, selector.Name) {
					return nil
				}
				asked := selection{alert: rule.Alert, metric: selector.Name}
				for _, m := range selector.LabelMatchers {
					if m.Name != model.MetricNameLabel && !slices.Contains(addedByPrometheus, m.Name) {
						asked.matchers = append(asked.matchers, m)
					}
				}
				for _, above := range path {
					if by, ok := above.(*parser.AggregateExpr); ok {
						asked.grouping = append(asked.grouping, by.Grouping...)
					}
				}
				all = append(all, asked)
				return nil
			})
		}
	}
	if len(all) < 8 {
		t.Fatalf("the alerts ask for %d things", len(all))
	}
	return all
}

// found says whether a service has a series that the alert can see.
func (s selection) found(families map[string]*dto.MetricFamily) bool {
	return slices.ContainsFunc(families[s.metric].GetMetric(), func(m *dto.Metric) bool {
		has := map[string]string{}
		for _, pair := range m.GetLabel() {
			has[pair.GetName()] = pair.GetValue()
		}
		for _, matcher := range s.matchers {
			if !matcher.Matches(has[matcher.Name]) {
				return false
			}
		}
		for _, name := range s.grouping {
			if _, there := has[name]; !there && !slices.Contains(addedByPrometheus, name) {
				return false
			}
		}
		return true
	})
}

// An alert over a metric that nobody has never rings, and nobody notices.
func TestServicesHaveTheMetricsOfEveryAlert(t *testing.T) {
	t.Parallel()
	b := newBank(t, testenv.New(t), 1, nil)
	b.open(1, 100)
	account := b.accounts[0]
	account.kill() // it looks at the ledger when it starts, and there is a currency now
	if err := account.start(); err != nil {
		t.Fatal(err)
	}
	account.awaitReady()
	asked := selections(t)
	var missing []string
	eventually(t, time.Minute, func() bool {
		missing = nil
		var all []map[string]*dto.MetricFamily
		for _, r := range b.replicas() {
			status, text := call(http.MethodGet, r.url+"/metrics", nil)
			reader := expfmt.NewTextParser(model.UTF8Validation)
			families, err := reader.TextToMetricFamilies(strings.NewReader(string(text)))
			if status != http.StatusOK || err != nil {
				t.Fatalf("%s: %d, %v", r.name, status, err)
			}
			all = append(all, families)
		}
		for _, s := range asked {
			if !slices.ContainsFunc(all, s.found) {
				missing = append(missing, fmt.Sprintf("%s: no series %s %v by %v", s.alert, s.metric, s.matchers, s.grouping))
			}
		}
		return len(missing) == 0
	}, func() string { return strings.Join(missing, "\n") })
}
