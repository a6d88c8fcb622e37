package newservice_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/banking/internal/newservice"
)

var update = flag.Bool("update", false, "write what go mod tidy says a module requires into the template")

// A module requires what it needs and no more, whatever its road: go mod tidy finds nothing to change. Not parallel: with -update it writes.
func TestModuleIsTidy(t *testing.T) {
	root := checkout(t)
	for i, o := range inService(root) {
		o.Module, o.Dir = "example.org/"+o.Name, t.TempDir()
		rendered, err := newservice.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := newservice.Write(o.Dir, rendered); err != nil {
			t.Fatal(err)
		}
		if *update {
			if i == 0 {
				updateRequirements(t, root, o.Dir)
			}
			continue
		}
		// It may ask the network for a module that only another platform needs, on a machine that has never seen it.
		if changes := tidy(t, o.Dir, "-diff"); strings.TrimSpace(changes) != "" {
			t.Errorf("%s: go.mod or go.sum of a new module is not what it needs; run go generate ./internal/newservice\n%s", o.Retry, changes)
		}
		if requires := string(rendered["go.mod"]); strings.Contains(requires, "chromedp") || !strings.Contains(requires, "github.com/jackc/pgx/v5") {
			t.Errorf("%s: the module requires\n%s", o.Retry, requires)
		}
	}
}

func tidy(t *testing.T, dir string, flags ...string) string {
	t.Helper()
	return run(t, dir, []string{"GOPROXY=" + os.Getenv("GOPROXY")}, "go", slices.Concat([]string{"mod", "tidy"}, flags)...)
}

// updateRequirements begins with all that this repository requires, in the versions that its tests have seen, and keeps what is left.
func updateRequirements(t *testing.T, root, dir string) {
	t.Helper()
	read := func(name string) []byte {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	write := func(name string, content []byte) {
		if err := os.WriteFile(name, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const begin = "\nrequire (\n"
	template := filepath.Join(root, "internal", "newservice", "files", "replaced")
	mod := filepath.Join(dir, "go.mod")
	head, _, _ := bytes.Cut(read(mod), []byte(begin))
	_, all, _ := bytes.Cut(read(filepath.Join(root, "go.mod")), []byte(begin))
	write(mod, slices.Concat(head, []byte(begin), all))
	write(filepath.Join(dir, "go.sum"), read(filepath.Join(root, "go.sum")))
	if tidy(t, dir); t.Failed() {
		t.FailNow()
	}
	_, needed, _ := bytes.Cut(read(mod), []byte(begin))
	head, _, _ = bytes.Cut(read(filepath.Join(template, "go.mod.tmpl")), []byte(begin))
	write(filepath.Join(template, "go.mod.tmpl"), slices.Concat(head, []byte(begin), needed))
	write(filepath.Join(template, "go.sum"), read(filepath.Join(dir, "go.sum")))
}
