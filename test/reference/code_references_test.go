package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var root = filepath.Join("..", "..")

// pagesBelow reads all Markdown of a folder of the repository, by path from its root.
func pagesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	pages := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		pages[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	link     = regexp.MustCompile(`\[([^\[\]]+)\]\(([^)\s]+)\)`)
	codeText = regexp.MustCompile("^`([A-Za-z][A-Za-z0-9]*(?:\\.[A-Za-z][A-Za-z0-9]*)?)`$")
	goFile   = regexp.MustCompile(`[A-Za-z0-9_]+\.go\b`)
)

// Whoever follows a page must find what it names. A link to a Go file has a symbol of that file as its text, and every other link of
// ours leads to something.
func TestPagesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	pages := pagesBelow(t, "docs")
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages["README.md"] = string(readme)
	known := map[string]map[string]bool{}
	symbols := 0
	for page, text := range pages {
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			said, target := l[1], l[2]
			if strings.Contains(target, "://") {
				continue
			}
			target, section, _ := strings.Cut(target, "#")
			path := filepath.Join(root, filepath.Dir(page), target)
			if target == "" {
				path = filepath.Join(root, page)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %s leads nowhere", page, l[0])
				continue
			}
			if section != "" && filepath.Ext(path) == ".md" && !hasSection(t, path, section) {
				t.Errorf("%s: %s: there is no such section", page, l[0])
			}
			if filepath.Ext(path) != ".go" {
				continue
			}
			if known[path] == nil {
				known[path] = declarations(t, path)
			}
			symbol := codeText.FindStringSubmatch(said)
			if symbol == nil {
				t.Errorf("%s: %s: the text of a link into the code is `Symbol` or `Type.Member`", page, l[0])
			} else if symbols++; !known[path][symbol[1]] {
				t.Errorf("%s: %s: there is no %s in that file", page, l[0], symbol[1])
			}
		}
	}
	if symbols < 150 {
		t.Errorf("only %d symbols are named", symbols)
	}
}

var (
	heading    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInNames = regexp.MustCompile(`[^\pL\pN_ -]`)
)

// hasSection says whether a page has a heading of this name, as GitHub makes names of headings.
func hasSection(t *testing.T, page, name string) bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range heading.FindAllStringSubmatch(string(text), -1) {
		if strings.ReplaceAll(notInNames.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-") == name {
			return true
		}
	}
	return false
}

// What a walkthrough names it names so that it is checked.
func TestWalkthroughsNameFilesInLinksOnly(t *testing.T) {
	t.Parallel()
	pages := pagesBelow(t, filepath.Join("docs", "walkthrough"))
	if len(pages) < 4 {
		t.Fatalf("only %d pages", len(pages))
	}
	for page, text := range pages {
		if found := goFile.FindAllString(link.ReplaceAllString(text, ""), -1); len(found) > 0 {
			t.Errorf("%s names %q outside of a link [`Symbol`](file)", page, found)
		}
	}
}

// declarations are the names that a file declares: functions, types, constants and variables, and the methods of a type, alone and
// behind the type's name. A program is known by its folder as well.
func declarations(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	if file.Name.Name == "main" {
		names[filepath.Base(filepath.Dir(path))] = true
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
			if d.Recv != nil {
				names[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				case *ast.TypeSpec:
					names[spec.Name.Name] = true
					for _, member := range members(spec.Type) {
						names[spec.Name.Name+"."+member] = true
					}
				}
			}
		}
	}
	return names
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// members are the fields of a struct and the methods of an interface.
func members(e ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}
