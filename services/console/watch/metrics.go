package watch

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"sort"
	"strings"

	"example.com/banking/services/console/upstream"
	"github.com/go-json-experiment/json"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Sample is one series of a metric.
type Sample struct {
	Labels map[string]string `json:"labels,omitzero"`
	Value  float64           `json:"value"`
}

// families are the beginnings of the names of what the pages show.
var families = []string{"messaging_", "inbox_", "outbox_", "quarantine_", "transfers_", "ledger_"}

// metricsOf polls what a service counts, each metric a part. Histograms are left to the monitoring.
func metricsOf(of *upstream.Upstream) func(context.Context, bool) ([]Part, error) {
	return func(ctx context.Context, _ bool) ([]Part, error) {
		content, err := of.Read(ctx, "/metrics", nil)
		if err != nil {
			return nil, err
		}
		parts, err := parseMetrics(content)
		if err != nil {
			return nil, &upstream.Refusal{Name: of.Name, Status: http.StatusOK, Detail: "but not with metrics"}
		}
		return parts, nil
	}
}

// parseMetrics reads the text format.
func parseMetrics(text []byte) ([]Part, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	var parts []Part
	for name, family := range parsed {
		if !shown(name) {
			continue
		}
		var samples []Sample
		for _, metric := range family.GetMetric() {
			s := Sample{Value: metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetUntyped().GetValue()}
			if metric.GetHistogram() != nil || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) { // JSON has no such numbers
				continue
			}
			for _, label := range metric.GetLabel() {
				if s.Labels == nil {
					s.Labels = map[string]string{}
				}
				s.Labels[label.GetName()] = label.GetValue()
			}
			samples = append(samples, s)
		}
		if samples == nil {
			continue
		}
		value, err := json.Marshal(samples, json.Deterministic(true))
		if err != nil {
			return nil, fmt.Errorf("metric %s: %w", name, err)
		}
		parts = append(parts, Part{name, value})
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].Key < parts[j].Key })
	return parts, nil
}

func shown(name string) bool {
	for _, start := range families {
		if strings.HasPrefix(name, start) {
			return true
		}
	}
	return false
}
