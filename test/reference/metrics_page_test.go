package reference

import (
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/banking/pkg/messaging"
	"github.com/prometheus/client_golang/prometheus"
)

const metricsIntroduction = `<!-- Written by "go generate ./test/reference". Change the metrics in the code, not this page. -->

# Metrics

What ` + "`/metrics`" + ` of account and transfer has of their own, beside the usual ones of the Go runtime and the process. What to alert on is in
` + "`deploy/prometheus/rules.yml`" + `, and what to do then in [the runbooks](runbooks.md); a test asks the running services for each metric that a rule uses.
The dashboard that draws them is in ` + "`deploy/grafana`" + `.

| metric | labels | meaning |
| --- | --- | --- |
`

// measured is one metric.
type measured struct{ name, labels, help string }

// TestMetricsPage keeps docs/reference/metrics.md equal to the code. Not parallel: with -update it writes.
func TestMetricsPage(t *testing.T) {
	path := filepath.Join(root, "docs", "reference", "metrics.md")
	found := append(described(t, messaging.NewMetrics()), declaredMetrics(t)...)
	slices.SortFunc(found, func(a, b measured) int { return strings.Compare(a.name, b.name) })
	found = slices.Compact(found)
	if len(found) < 25 {
		t.Fatalf("only %d metrics are found", len(found))
	}
	var b strings.Builder
	b.WriteString(metricsIntroduction)
	for _, m := range found {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", m.name, m.labels, strings.ReplaceAll(m.help, "|", "\\|"))
	}
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what is measured; run go generate ./test/reference", path)
	}
}

var description = regexp.MustCompile(`fqName: "([^"]+)", help: "([^"]*)", .*variableLabels: \{([^}]*)\}`)

// described asks a collector.
func described(t *testing.T, c prometheus.Collector) (found []measured) {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 100)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		match := description.FindStringSubmatch(d.String())
		if match == nil {
			t.Fatalf("%s cannot be read", d)
		}
		found = append(found, measured{match[1], strings.ReplaceAll(match[3], ",", ", "), match[2]})
	}
	return found
}

// declaredMetrics reads prometheus.…Opts{Name: …, Help: …}, with the labels behind it, and prometheus.NewDesc.
func declaredMetrics(t *testing.T) (found []measured) {
	t.Helper()
	for _, pattern := range []string{"pkg/*/*.go", "services/account/*.go", "services/transfer/*.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			relative, _ := filepath.Rel(root, file)
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			ast.Inspect(parse(t, relative), func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) == 0 || !strings.HasPrefix(called(call), "prometheus.New") {
					return true
				}
				m := measured{labels: labelsOf(call.Args[1:])}
				if called(call) == "prometheus.NewDesc" {
					m.name, m.help = literal(call.Args[0]), literal(call.Args[1])
				} else if options, ok := call.Args[0].(*ast.CompositeLit); ok {
					m.name, m.help = fieldOf(options, "Name"), fieldOf(options, "Help")
				}
				if m.name != "" && !strings.Contains(m.name, "…") { // what is put together is asked for, above
					found = append(found, m)
				}
				return true
			})
		}
	}
	return found
}

func fieldOf(options *ast.CompositeLit, name string) string {
	for _, element := range options.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return literal(pair.Value)
			}
		}
	}
	return ""
}

func labelsOf(args []ast.Expr) string {
	var labels []string
	for _, arg := range args {
		if texts, ok := arg.(*ast.CompositeLit); ok {
			for _, text := range texts.Elts {
				labels = append(labels, literal(text))
			}
		}
	}
	return strings.Join(labels, ", ")
}
