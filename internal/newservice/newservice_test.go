package newservice_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/internal/newservice"
	"example.com/banking/internal/testenv/servers"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v4"
)

// What cannot be made is refused in words that say what is wrong and what to do, before anything is written.
func TestRefusals(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for path, content := range map[string]string{"services/loans/service.json": `{"port": 8083}`, "services/cards/service.json": `{"port": 8085}`, "go.mod": "module example.com/banking\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*newservice.Order)
		want   string
	}{
		"a name that is none":         {func(o *newservice.Order) { o.Name = "Fees" }, "2 to 30 small letters and digits"},
		"a name with a hyphen":        {func(o *newservice.Order) { o.Name = "late-fees" }, "2 to 30 small letters and digits"},
		"a path":                      {func(o *newservice.Order) { o.Name = "../fees" }, "2 to 30 small letters and digits"},
		"no name":                     {func(o *newservice.Order) { o.Name = "" }, "2 to 30 small letters and digits"},
		"a reserved name":             {func(o *newservice.Order) { o.Name = "transfer" }, `"transfer" is taken`},
		"a name of a variable":        {func(o *newservice.Order) { o.Name = "amqp" }, `"amqp" is taken`},
		"a name in the composition":   {func(o *newservice.Order) { o.Name = "grafana" }, `"grafana" is taken`},
		"a role of PostgreSQL":        {func(o *newservice.Order) { o.Name = "pgfees" }, `"pgfees" is taken`},
		"a service that is there":     {func(o *newservice.Order) { o.Name = "loans" }, "services/loans is there already"},
		"a port of another":           {func(o *newservice.Order) { o.Port = 8085 }, "port 8085 is that of cards"},
		"a port that is none":         {func(o *newservice.Order) { o.Port = 70000 }, "no port"},
		"an unknown road":             {func(o *newservice.Order) { o.Retry = "loop" }, "in-process, lap, tiered"},
		"no keys":                     {func(o *newservice.Order) { o.Keys = nil }, "at least one routing key"},
		"a pattern":                   {func(o *newservice.Order) { o.Keys = []string{"accounts.account.*"} }, "is a pattern"},
		"a type for a key":            {func(o *newservice.Order) { o.Keys = []string{"Accounts.Account.Debited"} }, "is no routing key"},
		"a key twice":                 {func(o *newservice.Order) { o.Keys = []string{"a.b", "a.b"} }, "given twice"},
		"two keys of one reader":      {func(o *newservice.Order) { o.Keys = []string{"a-b.c", "a.b.c"} }, "a reader of the same name"},
		"its own events":              {func(o *newservice.Order) { o.Keys = []string{"fees.record.opened"} }, "would hear itself"},
		"no checkout":                 {func(o *newservice.Order) { o.Checkout = "" }, "--module PATH"},
		"a module that is none":       {func(o *newservice.Order) { o.Module = "Fees Ltd" }, "cannot be the path of the module"},
		"a module inside this one":    {func(o *newservice.Order) { o.Module = "example.com/banking/fees" }, "cannot be the path of the module"},
		"a module in the checkout":    {func(o *newservice.Order) { o.Module, o.Dir = "example.org/fees", filepath.Join(root, "fees") }, "lies inside the checkout"},
		"a module in a full folder":   {func(o *newservice.Order) { o.Module, o.Dir = "example.org/fees", full }, "not empty"},
		"a version that is none":      {func(o *newservice.Order) { o.Module, o.Dir, o.Version = "example.org/fees", "x", "latest" }, "looks like v1.2.3"},
		"a module of nothing at hand": {func(o *newservice.Order) { o.Module, o.Dir, o.Checkout = "example.org/fees", "x", "" }, "inside a checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newservice.Order{Name: "fees", Keys: []string{"transfers.transfer.completed"}, Retry: "lap", Checkout: root}
			c.change(&o)
			if rendered, err := newservice.Render(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d files and error %v, want one with %q", len(rendered), err, c.want)
			}
		})
	}

	rendered, err := newservice.Render(newservice.Order{Name: "fees", Keys: []string{"a.b"}, Retry: "lap", Checkout: root})
	if err != nil {
		t.Fatal(err)
	}
	if port := string(rendered["services/fees/service.json"]); !strings.Contains(port, "8084") {
		t.Errorf("beside ports 8083 and 8085 the new service has %s, want the free one between them", port)
	}
}

// A file that is there stays as it is, and nothing is written beside it.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newservice.Write(dir, map[string][]byte{"a": nil, "b": []byte("theirs"), "c": nil}); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(filepath.Join(dir, "b")); len(left) != 1 || string(content) != "mine" {
		t.Errorf("%d files are left, and the one that was there says %q", len(left), content)
	}
}

// A module that requires a version has no word of the checkout, and needs none.
func TestModuleOfAVersion(t *testing.T) {
	t.Parallel()
	rendered, err := newservice.Render(newservice.Order{
		Name: "fees", Keys: []string{"a.b"}, Retry: "tiered", Module: "example.org/fees", Dir: filepath.Join(t.TempDir(), "fees"), Version: "v1.2.3",
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "module example.org/fees\n\ngo 1.26.0\n\nrequire example.com/banking v1.2.3\n"; string(rendered["go.mod"]) != want {
		t.Errorf("go.mod is\n%s\nwant\n%s", rendered["go.mod"], want)
	}
	if _, there := rendered["services/fees/service.json"]; there {
		t.Error("a module has files of this repository")
	}
}

// A checkout may lie in a folder whose name go.mod has to quote.
func TestModuleOfACheckoutWithSpaces(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "my work (new)")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(checkout(t), name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "fees")
	rendered, err := newservice.Render(newservice.Order{
		Name: "fees", Keys: []string{"a.b"}, Retry: "lap", Module: "example.org/fees", Dir: dir, Checkout: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newservice.Write(dir, rendered); err != nil {
		t.Fatal(err)
	}
	if out := run(t, dir, nil, "go", "list", "-m", "-f", "{{.Replace.Path}}", "example.com/banking"); strings.TrimSpace(out) != root {
		t.Errorf("the module is replaced by %q, want %q", out, root)
	}
}

// What is generated is finished: nothing is left to fill in, and nothing of the template shows.
func TestGeneratedFilesAreFinished(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	for _, o := range inService(root) {
		for _, module := range []string{"", "example.org/" + o.Name} {
			o.Module, o.Dir = module, filepath.Join(t.TempDir(), o.Name)
			rendered, err := newservice.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			for path, content := range rendered {
				for _, word := range []string{"TODO", "FIXME", "[[ .", "[[.", "<no value>"} {
					if path != "go.sum" && bytes.Contains(content, []byte(word)) {
						t.Errorf("%s: %s holds %q", o.Retry, path, word)
					}
				}
				if len(bytes.TrimSpace(content)) == 0 {
					t.Errorf("%s: %s is empty", o.Retry, path)
				}
			}
		}
	}
}

// Prometheus finds the service, and the alert that names it goes by the job under which it is scraped.
func TestServiceIsScrapedAndWatched(t *testing.T) {
	t.Parallel()
	rendered, err := newservice.Render(inService(checkout(t))[0])
	if err != nil {
		t.Fatal(err)
	}
	var scraped struct {
		Configs []struct {
			Job string `yaml:"job_name"`
		} `yaml:"scrape_configs"`
	}
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	for path, into := range map[string]any{"fees.scrape.yml": &scraped, "fees.rules.yml": &rules} {
		if err := yaml.Load(rendered["deploy/prometheus/services/"+path], into); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if len(scraped.Configs) != 1 || len(rules.Groups) != 1 || len(rules.Groups[0].Rules) != 1 {
		t.Fatalf("scraped %+v, rules %+v", scraped, rules)
	}
	alert := rules.Groups[0].Rules[0]
	if want := `up{job="` + scraped.Configs[0].Job + `"} == 0`; alert.Expr != want || alert.Annotations["runbook"] == "" {
		t.Errorf("alert %+v, want it for %s, with a runbook", alert, want)
	}
	if _, err := parser.ParseExpr(alert.Expr); err != nil {
		t.Error(err)
	}
}

// Grafana finds the service's dashboard, which shows what is scraped under its name and nothing else, and the composition's own beside it.
func TestServiceHasADashboard(t *testing.T) {
	t.Parallel()
	rendered, err := newservice.Render(inService(checkout(t))[0])
	if err != nil {
		t.Fatal(err)
	}
	var own, bank struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	committed, err := os.ReadFile(filepath.Join(checkout(t), "deploy", "grafana", "dashboards", "banking-saga.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(json.Unmarshal(rendered["deploy/grafana/dashboards/services/fees.json"], &own), json.Unmarshal(committed, &bank)); err != nil {
		t.Fatal(err)
	}
	if own.UID == "" || own.UID == bank.UID {
		t.Errorf("its uid is %q and the bank's %q: Grafana would show one of the two", own.UID, bank.UID)
	}
	asked := 0
	for _, p := range own.Panels {
		for _, target := range p.Targets {
			asked++
			if !strings.Contains(target.Expr, `job="fees"`) || strings.Contains(target.Expr, "$service") {
				t.Errorf("%s: %s is not about fees alone", p.Title, target.Expr)
			}
		}
	}
	if asked < 20 {
		t.Errorf("only %d queries", asked)
	}
}

// The composition for Docker and 'bank up' give a new service the same rights, or it works in one and not in the other.
func TestGrantsAreThoseOfBankUp(t *testing.T) {
	t.Parallel()
	o := inService(checkout(t))[0]
	rendered, err := newservice.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	grant := servers.ServiceGrant(o.Name)
	for _, pattern := range []string{grant.Configure, grant.Write, grant.Read} {
		inJSON := `"` + strings.ReplaceAll(pattern, `\`, `\\`) + `"`
		if definitions := string(rendered["services/fees/rabbitmq.json"]); !strings.Contains(definitions, inJSON) {
			t.Errorf("rabbitmq.json does not grant %s:\n%s", inJSON, definitions)
		}
	}
}
