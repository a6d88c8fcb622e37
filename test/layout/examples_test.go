package layout

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// unshown are the functions that no example can call and run, with the reason.
var unshown = map[string]string{
	"pkg/service.Main": "it ends the process; its example is compiled only",
}

// Every function of a package below pkg is called in the body of an example that runs: the documentation need not show more of an example than its
// body, and one without an output is only compiled. What belongs together may be shown together, in one example.
func TestEveryFunctionIsShownInAnExampleThatRuns(t *testing.T) {
	t.Parallel()
	packages, functions, excuses := 0, 0, 0
	for name := range imports(t, "Imports") {
		if !strings.HasPrefix(name, "pkg/") {
			continue
		}
		packages++
		exported, shown := functionsOf(t, name)
		functions += len(exported)
		for _, function := range exported {
			_, excused := unshown[name+"."+function]
			if excused {
				excuses++
			}
			switch {
			case excused && shown[function]:
				t.Errorf("%s.%s is shown, and needs no exception any more", name, function)
			case !excused && !shown[function]:
				t.Errorf("%s.%s is called in no example that has an output: write one (func Example%s, // Output:), or call it in that of what it belongs to",
					name, function, function)
			}
		}
		if shown == nil {
			t.Errorf("%s has no example with an output: write one for its entry point (func ExampleName, // Output:)", name)
		}
	}
	if excuses != len(unshown) {
		t.Errorf("%d of %d exceptions are for functions that there are", excuses, len(unshown))
	}
	if packages < 15 || functions < 100 {
		t.Errorf("only %d packages with %d functions were looked at", packages, functions)
	}
}

// functionsOf lists the exported functions of a package, and which of its names the bodies of its running examples call: nil when none runs.
func functionsOf(t *testing.T, name string) (exported []string, shown map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(name), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var tests []*ast.File
	for _, file := range files {
		tree, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			tests = append(tests, tree)
			continue
		}
		for _, declared := range tree.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				exported = append(exported, f.Name.Name)
			}
		}
	}
	for _, example := range doc.Examples(tests...) {
		if example.Output != "" || example.EmptyOutput {
			if shown == nil {
				shown = map[string]bool{}
			}
			addCalls(shown, example.Code, name[strings.LastIndexByte(name, '/')+1:])
		}
	}
	return exported, shown
}

// addCalls adds what is called of a package: package.Function(…), package.Function[T](…).
func addCalls(called map[string]bool, code ast.Node, of string) {
	ast.Inspect(code, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		function := call.Fun
		switch generic := function.(type) {
		case *ast.IndexExpr:
			function = generic.X
		case *ast.IndexListExpr:
			function = generic.X
		}
		if selected, ok := function.(*ast.SelectorExpr); ok {
			if from, ok := selected.X.(*ast.Ident); ok && from.Name == of {
				called[selected.Sel.Name] = true
			}
		}
		return true
	})
}
