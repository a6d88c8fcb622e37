package dashboard

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the dashboard that Grafana reads")

var root = filepath.Join("..", "..")

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCommittedFile keeps the file that Grafana reads equal to the code. Not parallel: with -update it writes.
func TestCommittedFile(t *testing.T) {
	made, err := Bank()
	if err != nil {
		t.Fatal(err)
	}
	path := []string{"deploy", "grafana", "dashboards", "banking-saga.json"}
	if *update {
		if err := os.WriteFile(filepath.Join(append([]string{root}, path...)...), made, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, path...) != string(made) {
		t.Errorf("%s is not what the code makes; run go generate ./internal/dashboard", filepath.Join(path...))
	}
}

// shown is a dashboard as Grafana reads it from the file, rows among the panels.
type shown struct {
	UID, Title    string
	SchemaVersion int
	Panels        []panel
	Templating    templating
	Annotations   annotations
}

// dashboards are that of the bank and that of a service, as Grafana reads them.
func dashboards(t *testing.T) map[string]shown {
	t.Helper()
	files := map[string][]byte{}
	var err error
	if files["bank"], err = Bank(); err != nil {
		t.Fatal(err)
	}
	if files["fees"], err = Service("fees"); err != nil {
		t.Fatal(err)
	}
	all := map[string]shown{}
	for name, file := range files {
		var d shown
		if err := json.Unmarshal(file, &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Panels) < 20 {
			t.Fatalf("the dashboard of %s has only %d panels", name, len(d.Panels))
		}
		all[name] = d
	}
	return all
}

var (
	heading     = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInURL    = regexp.MustCompile(`[^a-z0-9 -]`)
	runbookLink = regexp.MustCompile(`docs/reference/runbooks\.md#([a-z0-9-]+)`)
)

// A panel that does not say what it tells, in which unit, and what to do then is a picture.
func TestPanelsAreComplete(t *testing.T) {
	t.Parallel()
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(read(t, "docs", "reference", "runbooks.md"), -1) {
		anchors[strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	opened := map[string]bool{}
	for name, d := range dashboards(t) {
		if d.UID == "" || len(d.UID) > 40 || d.SchemaVersion < 39 {
			t.Errorf("%s: uid %q, which Grafana takes up to 40 characters of, and schema %d", name, d.UID, d.SchemaVersion)
		}
		for _, p := range d.Panels {
			if p.Type == "row" {
				continue
			}
			links := runbookLink.FindAllStringSubmatch(p.Description, -1)
			if p.Title == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || len(links) == 0 || len(p.Description) < 80 {
				t.Errorf("%s: %q: unit %q, %d queries, description %q", name, p.Title, p.FieldConfig.Defaults.Unit, len(p.Targets), p.Description)
			}
			for _, link := range links {
				opened[link[1]] = true
				if !anchors[link[1]] {
					t.Errorf("%s: %q: the runbooks have no section #%s", name, p.Title, link[1])
				}
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^\| \[\w+\]\(#([a-z-]+)\) \|`).FindAllStringSubmatch(read(t, "docs", "reference", "runbooks.md"), -1) {
		if !opened[m[1]] {
			t.Errorf("no panel leads to the runbook #%s", m[1])
		}
	}
}

// Grafana moves panels that overlap, and confuses those with the same number.
func TestPanelsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	for name, d := range dashboards(t) {
		ids, taken := map[int]string{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if other, twice := ids[p.ID]; twice || p.ID == 0 {
				t.Errorf("%s: %q and %q have the number %d", name, other, p.Title, p.ID)
			}
			ids[p.ID] = p.Title
			at := p.GridPos
			if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
				t.Errorf("%s: %q lies at %+v, beside the grid of 24 columns", name, p.Title, at)
			}
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					if other, there := taken[[2]int{x, y}]; there {
						t.Fatalf("%s: %q lies over %q", name, p.Title, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}

// A threshold is that of the alert to whose runbook the panel leads, or they tell different stories.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	t.Parallel()
	rules := read(t, "deploy", "prometheus", "rules.yml")
	found := 0
	for _, row := range []struct{ title, condition string }{
		{"Attempts that fail", "> 0.05"}, {"Oldest in the outbox", "(outbox_oldest_age_seconds) > 30\n"},
		{"Oldest in quarantine", "(quarantine_oldest_age_seconds) > 3600\n"}, {"Last counted", "(quarantine_counted_timestamp_seconds) > 120\n"},
		{"Ledger last checked", "max(ledger_checked_timestamp_seconds) > 600\n"}, {"Sessions lost", "(increase(messaging_sessions_total[5m])) > 5\n"},
	} {
		if !strings.Contains(rules, row.condition) {
			t.Errorf("no alert rings for %q any more; change the threshold of the panel %q too", row.condition, row.title)
		}
		want := regexp.MustCompile(`> ([0-9.]+)`).FindStringSubmatch(row.condition)[1]
		for _, p := range dashboards(t)["bank"].Panels {
			if p.Title != row.title {
				continue
			}
			found++
			steps := p.FieldConfig.Defaults.Thresholds.Steps
			if got, err := json.Marshal(steps[len(steps)-1].Value); err != nil || string(got) != want {
				t.Errorf("%s: red from %s on, want %s (%v)", row.title, got, want, err)
			}
		}
	}
	if found != 6 {
		t.Errorf("%d panels have such a threshold, want 6", found)
	}
}
