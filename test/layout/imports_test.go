// Package layout holds the architecture in place: which part may know which.
package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "example.com/banking/"

// imports lists every package of the module with what it imports, itself (direct) or by way of others (all).
func imports(t *testing.T, field string) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join ."+field+" \" \"}}", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		packages[strings.TrimPrefix(words[0], module)] = words[1:]
	}
	if len(packages) < 15 {
		t.Fatalf("go list found only %d packages", len(packages))
	}
	return packages
}

// Imports point down only: services know pkg, pkg knows nothing of them, and no service knows another. What two services
// need to know of each other is in pkg/contract.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	for name, imported := range imports(t, "Imports") {
		part := strings.Split(name, "/")
		for _, path := range imported {
			other, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			switch {
			case part[0] == "pkg" && !strings.HasPrefix(other, "pkg/"):
				t.Errorf("%s imports %s: a package that services import depends on none of them", name, other)
			case part[0] == "services" && strings.HasPrefix(other, "services/") && strings.Split(other, "/")[1] != part[1]:
				t.Errorf("%s imports %s: services know each other by messages only", name, other)
			case name == "services/console" && (other == "internal/policy" || other == "internal/plot"):
				// It shows what bank policy and the documentation show, and is no service that anybody copies: one computation for all three.
			case name == "services/console" && (other == "exercises" || other == "docs/exercises" || other == "docs/interview"):
				// It shows what exercises there are, and their pages, and the interview. Running them is the keeper's business.
			case part[0] == "services" && !strings.HasPrefix(other, "services/") && !strings.HasPrefix(other, "pkg/"):
				t.Errorf("%s imports %s: a service is built from pkg alone, so that it can be copied", name, other)
			case part[0] == "exercises" && len(part) > 1 && part[1] == "variants" &&
				!strings.HasPrefix(other, "pkg/") && !strings.HasPrefix(other, "exercises/variants/"):
				t.Errorf("%s imports %s: a wrong variant shares nothing with what is right but the language", name, other)
			case part[0] != "exercises" && strings.HasPrefix(other, "exercises/variants/"):
				t.Errorf("%s imports %s: what is wrong on purpose is imported by the exercise only", name, other)
			}
		}
	}
}

// What decides is pure: no broker, no database, no network server behind it, at any distance.
func TestDecisionsArePure(t *testing.T) {
	t.Parallel()
	all := imports(t, "Deps")
	for _, name := range []string{"pkg/retry", "pkg/saga", "services/account/ledger", "services/transfer/lifecycle", "internal/policy"} {
		deps, known := all[name]
		if !known {
			t.Errorf("%s is not there", name)
		}
		for _, path := range deps {
			switch {
			case path == "database/sql", path == "net/http", path == "os/exec",
				strings.HasPrefix(path, "github.com/rabbitmq/"), strings.HasPrefix(path, "github.com/jackc/"):
				t.Errorf("%s depends on %s", name, path)
			}
		}
	}
}

// What decides reads no clock, waits for nothing and draws nothing: time and randomness are passed in, so that every decision can be
// made again.
func TestDecisionsReadNoClock(t *testing.T) {
	t.Parallel()
	impure := map[string][]string{
		"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"math/rand":    nil, // all of it
		"math/rand/v2": nil,
		"crypto/rand":  nil,
		"context":      {"WithTimeout", "WithDeadline"},
	}
	for _, name := range []string{"pkg/retry", "pkg/saga", "services/account/ledger", "services/transfer/lifecycle"} {
		files, err := filepath.Glob(filepath.Join("..", "..", name, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", name, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			imported := map[string]string{} // what a name in this file stands for
			for _, spec := range file.Imports {
				from := strings.Trim(spec.Path.Value, `"`)
				as := filepath.Base(strings.TrimSuffix(from, "/v2"))
				if spec.Name != nil {
					as = spec.Name.Name
				}
				imported[as] = from
				if names, known := impure[from]; known && names == nil {
					t.Errorf("%s imports %s", path, from)
				}
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if use, ok := node.(*ast.SelectorExpr); ok {
					if of, ok := use.X.(*ast.Ident); ok && slices.Contains(impure[imported[of.Name]], use.Sel.Name) {
						t.Errorf("%s uses %s.%s", path, of.Name, use.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
