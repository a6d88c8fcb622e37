// Package grafana_test checks what Grafana is given by the composition. The dashboards themselves are made and checked by internal/dashboard.
package grafana_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// load reads a file; strictly where all of its fields are known.
func load(t *testing.T, into any, strict bool, path ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	var options []yaml.Option
	if strict {
		options = append(options, yaml.WithKnownFields())
	}
	if err := yaml.Load(text, into, options...); err != nil {
		t.Fatalf("%s: %v", filepath.Join(path...), err)
	}
}

type container struct {
	Image       string            `yaml:"image"`
	Profiles    []string          `yaml:"profiles"`
	Environment map[string]string `yaml:"environment"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	ReadOnly    bool              `yaml:"read_only"`
	Tmpfs       []string          `yaml:"tmpfs"`
}

func composed(t *testing.T, name string) container {
	t.Helper()
	var compose struct {
		Services map[string]yaml.Node `yaml:"services"`
	}
	load(t, &compose, false, "..", "..", "docker-compose.yml")
	node, there := compose.Services[name]
	if !there {
		t.Fatalf("the composition has no %s", name)
	}
	var c container
	if err := node.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// Who reaches Grafana may look. Nobody may sign in, because a password in a file that everybody has is none.
func TestGrafanaIsForLookingOnly(t *testing.T) {
	t.Parallel()
	grafana := composed(t, "grafana")
	for name, want := range map[string]string{
		"GF_AUTH_ANONYMOUS_ENABLED": "true", "GF_AUTH_ANONYMOUS_ORG_ROLE": "Viewer", "GF_AUTH_BASIC_ENABLED": "false", "GF_AUTH_DISABLE_LOGIN_FORM": "true",
		"GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION": "true",
	} {
		if got := grafana.Environment[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range grafana.Environment {
		if strings.Contains(name, "PASSWORD") {
			t.Errorf("%s gives a password to a user that shall not be there", name)
		}
	}
	pinned := regexp.MustCompile(`^grafana/grafana:[0-9]+\.[0-9]+\.[0-9]+$`)
	if !pinned.MatchString(grafana.Image) || !slices.Equal(grafana.Profiles, []string{"observability"}) {
		t.Errorf("image %s, profiles %v", grafana.Image, grafana.Profiles)
	}
	if len(grafana.Ports) != 1 || !strings.HasPrefix(grafana.Ports[0], "127.0.0.1:${GRAFANA_PORT:-") {
		t.Errorf("ports %v, want one that can be chosen and is closed to others", grafana.Ports)
	}
}

// What is mounted is what is here, where the files name it.
func TestGrafanaReadsWhatIsHere(t *testing.T) {
	t.Parallel()
	grafana, prometheus := composed(t, "grafana"), composed(t, "prometheus")
	want := []string{"./deploy/grafana/provisioning:/etc/grafana/provisioning:ro", "./deploy/grafana/dashboards:/etc/grafana/dashboards:ro"}
	if !slices.Equal(grafana.Volumes, want) {
		t.Errorf("volumes %v, want %v", grafana.Volumes, want)
	}
	home, mounted := strings.CutPrefix(grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"], "/etc/grafana/")
	if _, err := os.Stat(filepath.FromSlash(home)); err != nil || !mounted {
		t.Errorf("the page that opens first: %v", err)
	}

	var dashboards struct {
		Version   int `yaml:"apiVersion"`
		Providers []struct {
			Name, Folder, Type string
			AllowUIUpdates     bool `yaml:"allowUiUpdates"`
			DisableDeletion    bool `yaml:"disableDeletion"`
			Interval           int  `yaml:"updateIntervalSeconds"`
			Options            struct{ Path string }
		}
	}
	load(t, &dashboards, true, "provisioning", "dashboards", "banking.yml")
	if len(dashboards.Providers) != 1 || dashboards.Version != 1 {
		t.Fatalf("%+v", dashboards)
	}
	if p := dashboards.Providers[0]; p.Options.Path != "/etc/grafana/dashboards" || p.Type != "file" || p.AllowUIUpdates {
		t.Errorf("dashboards are read by %+v", p)
	}

	var sources struct {
		Version     int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool `yaml:"isDefault"`
			Editable                     bool
			JSONData                     struct {
				Method   string `yaml:"httpMethod"`
				Interval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}
	load(t, &sources, true, "provisioning", "datasources", "prometheus.yml")
	var scraping struct {
		Global struct {
			Interval string `yaml:"scrape_interval"`
		}
	}
	load(t, &scraping, false, "..", "prometheus", "prometheus.yml")
	if len(sources.Datasources) != 1 || sources.Version != 1 {
		t.Fatalf("%+v", sources)
	}
	s := sources.Datasources[0]
	if s.Type != "prometheus" || s.Access != "proxy" || !s.IsDefault || s.Editable || s.URL != "http://prometheus:9090" {
		t.Errorf("the data source is %+v", s)
	}
	if s.JSONData.Interval != scraping.Global.Interval || scraping.Global.Interval == "" {
		t.Errorf("Grafana takes it that Prometheus scrapes every %q, it does every %q", s.JSONData.Interval, scraping.Global.Interval)
	}
	if !slices.Equal(prometheus.Profiles, grafana.Profiles) {
		t.Errorf("Prometheus starts with %v, Grafana with %v: one without the other shows nothing", prometheus.Profiles, grafana.Profiles)
	}
}
