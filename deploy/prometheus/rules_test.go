package prometheus_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type ruleTests struct {
	RuleFiles []string `yaml:"rule_files"`
	Interval  string   `yaml:"evaluation_interval"`
	Tests     []struct {
		Name     string `yaml:"name"`
		Interval string `yaml:"interval"`
		Input    []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		Alerts []struct {
			Time     string `yaml:"eval_time"`
			Alert    string `yaml:"alertname"`
			Expected []struct {
				Labels      map[string]string `yaml:"exp_labels"`
				Annotations map[string]string `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// load reads a file strictly: a misspelled field would be one that Prometheus refuses, and then no alert rings.
func load(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.Load(read(t, path), into, yaml.WithKnownFields()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func loadRules(t *testing.T) []rule {
	t.Helper()
	var file rules
	load(t, "rules.yml", &file)
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 8 {
		t.Fatalf("only %d alerts", len(all))
	}
	return all
}

var (
	heading  = regexp.MustCompile(`(?m)^## (.+)$`)
	notInURL = regexp.MustCompile(`[^a-z0-9 -]`)
)

// sections are the anchors of a page's headings, as the usual renderers make them, with the text below each.
func sections(t *testing.T, path string) map[string]string {
	t.Helper()
	page := string(read(t, path))
	found := map[string]string{}
	at := heading.FindAllStringSubmatchIndex(page, -1)
	for i, m := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		anchor := strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(page[m[2]:m[3]]), ""), " ", "-")
		found[anchor] = page[m[1]:end]
	}
	return found
}

func TestEveryAlertHasARunbook(t *testing.T) {
	t.Parallel()
	const page = "docs/reference/runbooks.md"
	runbooks := sections(t, filepath.Join("..", "..", page))
	overview := string(read(t, filepath.Join("..", "..", page)))
	linked := map[string]bool{}
	for _, r := range loadRules(t) {
		anchor, here := strings.CutPrefix(r.Annotations["runbook"], page+"#")
		text, there := runbooks[anchor]
		if !here || !there {
			t.Errorf("%s: no section for its runbook %q", r.Alert, r.Annotations["runbook"])
			continue
		}
		linked[anchor] = true
		for _, part := range []string{"**Symptom.**", "**Look.**", "**Likely causes", "**Do.**", "**Verify.**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s: its runbook has no %s", r.Alert, part)
			}
		}
		if row := "| [" + r.Alert + "](#" + anchor + ") | " + r.Labels["severity"] + " |"; !strings.Contains(overview, row) {
			t.Errorf("%s: the overview has no row %s", r.Alert, row)
		}
	}
	for anchor := range runbooks {
		if !linked[anchor] {
			t.Errorf("no alert leads to the section #%s", anchor)
		}
	}
}

func TestEveryAlertIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range loadRules(t) {
		if seen[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		seen[r.Alert] = true
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Expr == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s: expression, summary and description are needed", r.Alert)
		}
	}
}

func TestEveryAlertIsTested(t *testing.T) {
	t.Parallel()
	var tests ruleTests
	load(t, "rules_test.yml", &tests)
	if len(tests.RuleFiles) != 1 || tests.RuleFiles[0] != "rules.yml" {
		t.Errorf("tests %v", tests.RuleFiles)
	}
	rings, silent := map[string]bool{}, map[string]bool{}
	given := map[string]bool{}
	for _, test := range tests.Tests {
		for _, input := range test.Input {
			name, _, _ := strings.Cut(input.Series, "{")
			given[name] = true
		}
		for _, a := range test.Alerts {
			if len(a.Expected) == 0 {
				silent[a.Alert] = true
			} else {
				rings[a.Alert] = true
			}
		}
	}
	for _, r := range loadRules(t) {
		if !rings[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: shown to ring %v, shown to be silent %v", r.Alert, rings[r.Alert], silent[r.Alert])
		}
		delete(rings, r.Alert)
		delete(silent, r.Alert)
	}
	for alert := range rings {
		t.Errorf("%s is tested and is no alert", alert)
	}
}

// The composition mounts what is here, and Prometheus finds the rules beside its configuration.
func TestPrometheusReadsTheRules(t *testing.T) {
	t.Parallel()
	var config struct {
		Global    map[string]string `yaml:"global"`
		RuleFiles []string          `yaml:"rule_files"`
		Others    []string          `yaml:"scrape_config_files"`
		Scrape    []struct {
			Job     string `yaml:"job_name"`
			Targets []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	load(t, "prometheus.yml", &config)
	var compose struct {
		Services map[string]struct {
			Profiles []string `yaml:"profiles"`
			Volumes  []string `yaml:"volumes"`
			Ports    []string `yaml:"ports"`
		} `yaml:"services"`
	}
	if err := yaml.Load(read(t, filepath.Join("..", "..", "docker-compose.yml")), &compose); err != nil {
		t.Fatal(err)
	}
	// The folder services is where 'bank new-service' puts the two files of a service.
	if !slices.Equal(config.RuleFiles, []string{"rules.yml", "services/*.rules.yml"}) || !slices.Equal(config.Others, []string{"services/*.scrape.yml"}) {
		t.Errorf("rule files %v, further files of what is scraped %v", config.RuleFiles, config.Others)
	}
	for _, job := range config.Scrape {
		if _, there := compose.Services[job.Job]; !there || len(job.Targets) != 1 || len(job.Targets[0].Targets) != 1 ||
			!strings.HasPrefix(job.Targets[0].Targets[0], job.Job+":") {
			t.Errorf("job %s scrapes %v", job.Job, job.Targets)
		}
	}
	prometheus := compose.Services["prometheus"]
	if len(prometheus.Profiles) != 1 || prometheus.Profiles[0] != "observability" {
		t.Errorf("profiles %v", prometheus.Profiles)
	}
	if len(prometheus.Volumes) == 0 || prometheus.Volumes[0] != "./deploy/prometheus:/etc/prometheus:ro" {
		t.Errorf("volumes %v", prometheus.Volumes)
	}
	for _, port := range prometheus.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("port %s is open to others", port)
		}
	}
}
