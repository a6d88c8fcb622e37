package layout

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A test's context has ended when its cleanups run: what they do with it fails at once, and a server or a user of the broker stays behind.
// Those that need a context take context.WithoutCancel(t.Context()), with a timeout.
func TestCleanupsOutliveTheContextOfTheirTest(t *testing.T) {
	t.Parallel()
	packages, cleanups := map[string][]*ast.File{}, 0
	files := token.NewFileSet()
	if err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		forTests := strings.HasSuffix(path, "_test.go") || err == nil && slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
		if err == nil && forTests {
			packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, parsed := range packages {
		found, seen := endedInCleanups(parsed)
		cleanups += seen
		for _, at := range found {
			t.Errorf("%s: a cleanup comes to the context of its test, which has ended by then", files.Position(at))
		}
	}
	if cleanups < 100 {
		t.Errorf("only %d cleanups were looked at", cleanups)
	}
}

// The ways in which a cleanup comes to that context, and those in which it does not.
func TestCleanupsAreLookedThrough(t *testing.T) {
	t.Parallel()
	const helpers = `
func deep(t T) { ask(t.Context()).answer() }
func helper(t T) { deep(t) }
func (b B) method() { deep(b.t) }
func lasting(t T) { ask(context.WithoutCancel(t.Context())) }
`
	for body, want := range map[string]int{
		`t.Cleanup(func() { ask(t.Context()) })`:                                            1,
		`b.t.Cleanup(func() { ask(b.t.Context()) })`:                                        1,
		`t.Cleanup(func() { helper(t) })`:                                                   1,
		`t.Cleanup(b.method)`:                                                               1,
		`local := func() { deep(t) }; t.Cleanup(func() { local() })`:                        1,
		`ctx, stop := context.WithCancel(t.Context()); t.Cleanup(func() { ask(ctx) })`:      1,
		`ctx, stop := context.WithCancel(t.Context()); t.Cleanup(stop)`:                     0,
		`t.Cleanup(func() { ask(context.WithoutCancel(t.Context())) })`:                     0,
		`t.Cleanup(func() { lasting(t) })`:                                                  0,
		`ctx := t.Context(); ask(ctx); t.Cleanup(func() { ctx := background(); ask(ctx) })`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+helpers+"func Test(t T) {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if found, seen := endedInCleanups([]*ast.File{file}); len(found) != want || seen != 1 {
			t.Errorf("%s: found %d of %d, in %d cleanups", body, len(found), want, seen)
		}
	}
}

// endedInCleanups finds the cleanups of a package that come to the context of their test, by themselves, by a variable or by functions of
// the package. It goes by names, without types: of two methods with one name both count.
func endedInCleanups(files []*ast.File) (found []token.Pos, cleanups int) {
	bodies := map[string][]ast.Node{} // of functions, and of methods with a point before their names
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				name := n.Name.Name
				if n.Recv != nil {
					name = "." + name
				}
				if n.Body != nil {
					bodies[name] = append(bodies[name], n.Body)
				}
			case *ast.AssignStmt:
				if _, function := n.Rhs[0].(*ast.FuncLit); function {
					bodies[nameOf(n.Lhs[0])] = append(bodies[nameOf(n.Lhs[0])], n.Rhs[0])
				}
			}
			return true
		})
	}
	reached := map[string]bool{} // of bodies, since some functions call each other
	var comes func(ast.Node) bool
	comes = func(in ast.Node) (yes bool) {
		ast.Inspect(in, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok && nameOf(call.Fun) == ".WithoutCancel" {
				return false
			}
			if e, ok := node.(ast.Expr); ok && isContext(e) {
				yes = true
			}
			if name := nameOf(node); !yes && name != "" && !reached[name] {
				reached[name] = true
				yes = slices.ContainsFunc(bodies[name], comes)
			}
			if selector, ok := node.(*ast.SelectorExpr); ok { // what is selected is no function of that name
				yes = yes || comes(selector.X)
				return false
			}
			return !yes
		})
		return yes
	}
	for _, file := range files {
		for _, function := range file.Decls {
			held := assigned(function, isContext)
			ast.Inspect(function, func(node ast.Node) bool {
				call, ok := node.(*ast.CallExpr)
				if !ok || nameOf(call.Fun) != ".Cleanup" || len(call.Args) != 1 {
					return true
				}
				cleanups++
				clear(reached)
				own := assigned(call.Args[0], func(ast.Expr) bool { return true })
				ended := comes(call.Args[0])
				ast.Inspect(call.Args[0], func(node ast.Node) bool {
					name, ok := node.(*ast.Ident)
					ended = ended || ok && held[name.Name] && !own[name.Name]
					return true
				})
				if ended {
					found = append(found, call.Pos())
				}
				return true
			})
		}
	}
	return found, cleanups
}

// assigned are the variables that get such a value as their first or only one.
func assigned(in ast.Node, such func(ast.Expr) bool) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(in, func(node ast.Node) bool {
		if n, ok := node.(*ast.AssignStmt); ok && such(n.Rhs[0]) {
			names[nameOf(n.Lhs[0])] = true
		}
		return true
	})
	return names
}

// isContext says whether an expression is the context of a test, or one that ends with it.
func isContext(of ast.Expr) bool {
	call, ok := of.(*ast.CallExpr)
	if !ok {
		return false
	}
	switch name := nameOf(call.Fun); name {
	case ".Context":
		return len(call.Args) == 0
	case ".WithCancel", ".WithTimeout", ".WithDeadline", ".WithValue":
		return len(call.Args) > 0 && isContext(call.Args[0])
	}
	return false
}

// nameOf is what an identifier is called, and a selector by its end, with a point.
func nameOf(node ast.Node) string {
	switch n := node.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return "." + n.Sel.Name
	}
	return ""
}
