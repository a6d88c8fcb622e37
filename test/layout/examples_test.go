package layout

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every package below pkg shows how it is used, in an example that runs: one without an output is only compiled.
func TestEveryPackageHasAnExampleThatRuns(t *testing.T) {
	t.Parallel()
	packages := 0
	for name := range imports(t, "Imports") {
		if !strings.HasPrefix(name, "pkg/") {
			continue
		}
		packages++
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(name), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if runningExamples(t, files) == 0 {
			t.Errorf("%s has no example with an output: write one for its entry point (func ExampleName, // Output:)", name)
		}
	}
	if packages < 15 {
		t.Errorf("only %d packages were looked at", packages)
	}
}

func runningExamples(t *testing.T, files []string) (running int) {
	t.Helper()
	set := token.NewFileSet()
	var trees []*ast.File
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := parser.ParseFile(set, file, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, tree)
	}
	for _, example := range doc.Examples(trees...) {
		if example.Output != "" || example.EmptyOutput {
			running++
		}
	}
	return running
}
