package drill

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var reference = regexp.MustCompile("\\[`([A-Za-z]+)`\\]\\(([^)]+\\.go)\\)")

// folder is where the pages of the exercises are.
var folder = filepath.Join("..", "..", "..", "docs", "exercises")

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(folder, "13-wrong-variants.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The page sends its readers to functions of the real services. They must be there.
func TestPageNamesWhatIsThere(t *testing.T) {
	t.Parallel()
	page := readPage(t)
	declared := map[string]map[string]bool{}
	services := 0
	for _, link := range reference.FindAllStringSubmatch(page, -1) {
		symbol, path := link[1], link[2]
		if declared[path] == nil {
			declared[path] = declarations(t, filepath.Join(folder, path))
		}
		if !declared[path][symbol] && filepath.Base(filepath.Dir(path)) != symbol { // a program is named by its folder
			t.Errorf("the page says that %s is in %s", symbol, path)
		}
		if strings.HasPrefix(path, "../../pkg/") {
			services++
		}
	}
	if services < len(variants) {
		t.Errorf("the page names %d places in the real services, and there are %d variants", services, len(variants))
	}
	for _, v := range variants {
		if !strings.Contains(page, "`"+v.Name+"`") {
			t.Errorf("the page does not name %s", v.Name)
		}
	}
}

func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range value.Names {
						names[name.Name] = true
					}
				}
			}
		}
	}
	return names
}
