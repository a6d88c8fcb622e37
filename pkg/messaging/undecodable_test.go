package messaging_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"example.com/banking/pkg/messaging"
	"github.com/prometheus/client_golang/prometheus"
)

// failureLines collects what is logged at WARN and above.
type failureLines struct {
	m     sync.Mutex
	lines []map[string]any
}

func (l *failureLines) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (l *failureLines) Write(p []byte) (int, error) {
	var line map[string]any
	if err := json.Unmarshal(p, &line); err != nil {
		return 0, err
	}
	l.m.Lock()
	defer l.m.Unlock()
	l.lines = append(l.lines, line)
	return len(p), nil
}

func (l *failureLines) take() []map[string]any {
	l.m.Lock()
	defer l.m.Unlock()
	lines := l.lines
	l.lines = nil
	return lines
}

// deliveries are the ended deliveries of a queue by how they ended.
func deliveries(t *testing.T, metrics *messaging.Metrics, queue string) map[string]int {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	ended := map[string]int{}
	for _, family := range families {
		if family.GetName() != "messaging_deliveries_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range m.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if n := int(m.GetCounter().GetValue()); labels["queue"] == queue && n > 0 {
				ended[labels["outcome"]] = n
			}
		}
	}
	return ended
}

// A body that cannot be decoded never reaches the handler, so it must not escape the policy either: requeued, it would come back
// a thousand times a second, and nobody would read of it. It is delivered once, quarantined once as it came, and logged once.
func TestUndecodableBodyIsDeliveredQuarantinedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	garbage := map[string]string{
		"cut off":           poisonBody[:len(poisonBody)-2],
		"an array":          `[` + poisonBody + `]`,
		"a bare number":     `42`,
		"a text":            `"poison-1"`,
		"null":              `null`,
		"invalid UTF-8":     strings.Replace(poisonBody, "not-a-real-id", "not\xff\xfe", 1),
		"nothing":           ``,
		"two bodies":        poisonBody + poisonBody,
		"a number as an id": strings.Replace(poisonBody, `"poison-1"`, `1`, 1),
	}
	for name, road := range roads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, consumer := road.service()
			var log failureLines
			s.Logger, s.Metrics = log.logger(), messaging.NewMetrics()
			f := start(t, s, consumer)
			for what, body := range garbage {
				f.publishBody(road.key, body)
				d := f.take(road.quarantine)
				if string(d.Body) != body || d.Headers["x-error-class"] != "VALIDATION" || d.Headers["x-park-reason"] != "VALIDATION" || d.Headers["x-attempts"] != int64(1) {
					t.Errorf("%s: quarantined %q with %v", what, d.Body, d.Headers)
				}
				if reason, _ := d.Headers["x-last-error"].(string); reason == "" {
					t.Errorf("%s: no reason", what)
				}
				if lines := log.take(); len(lines) != 1 || lines[0]["class"] != "VALIDATION" || lines[0]["level"] != "ERROR" || lines[0]["error"] == "" {
					t.Errorf("%s: logged %v", what, lines)
				}
			}
			f.empty(road.queue, road.quarantine)
			f.notHandled()
			f.stop()
			if ended := deliveries(t, s.Metrics, road.queue); len(ended) != 1 || ended["quarantined"] != len(garbage) {
				t.Errorf("deliveries ended as %v, want %d quarantined", ended, len(garbage))
			}
			if lines := log.take(); len(lines) != 0 {
				t.Errorf("logged afterwards: %v", lines)
			}
		})
	}
}
