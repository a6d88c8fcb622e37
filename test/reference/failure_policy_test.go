package reference

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/banking/pkg/retry"
)

var update = flag.Bool("update", false, "write the decision table of docs/reference/failure-policy.md, and docs/reference/policy.md, instead of comparing them")

var page = filepath.Join("..", "..", "docs", "reference", "failure-policy.md")

// block cuts the page at the marks of a block: what is before its content, the content, and what is behind.
func block(t *testing.T, name string) (before, content, behind string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	before, rest, ok := strings.Cut(string(text), begin)
	content, behind, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no block %q", page, name)
	}
	return before + begin, content, end + behind
}

// Not parallel: with -update it writes what the others read.
func TestDecisions(t *testing.T) {
	before, got, behind := block(t, "decisions")
	want := retry.Table()
	if *update {
		if err := os.WriteFile(page, []byte(before+want+behind), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the decision table is\n%swant\n%srun go generate ./test/reference", got, want)
	}
}

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// rows are the first cells of a block's table.
func rows(t *testing.T, name string) []string {
	t.Helper()
	_, content, _ := block(t, name)
	var cells []string
	for _, match := range firstCell.FindAllStringSubmatch(content, -1) {
		cells = append(cells, match[1])
	}
	return cells
}

// texts are the text literals of a package, without its tests; literals that are the value of a constant are under its name.
func texts(t *testing.T, dir string) (constants map[string]string, literals map[string]bool) {
	t.Helper()
	constants, literals = map[string]string{}, map[string]bool{}
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, value := range n.Values {
					if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.STRING {
						constants[n.Names[i].Name], _ = strconv.Unquote(literal.Value)
					}
				}
			case *ast.BasicLit:
				if n.Kind == token.STRING {
					text, _ := strconv.Unquote(n.Value)
					literals[text] = true
				}
			}
			return true
		})
	}
	return constants, literals
}

func same(t *testing.T, what string, page, code []string) {
	t.Helper()
	slices.Sort(page)
	slices.Sort(code)
	if len(code) == 0 || !slices.Equal(page, code) {
		t.Errorf("%s: the page has\n%v\nthe code has\n%v", what, page, code)
	}
}

func TestHeadersAndReasons(t *testing.T) {
	constants, literals := texts(t, "pkg/messaging")
	named := func(constants map[string]string, prefix string) (values []string) {
		for name, value := range constants {
			if strings.HasPrefix(name, prefix) {
				values = append(values, value)
			}
		}
		return values
	}
	same(t, "headers", rows(t, "headers"), named(constants, "Header"))

	var faults []string
	for literal := range maps.Keys(literals) {
		if strings.HasPrefix(literal, "MT-") && !strings.HasSuffix(literal, "-") { // a prefix is no header
			faults = append(faults, literal)
		}
	}
	same(t, "fault headers", rows(t, "fault-headers"), faults)

	constants, _ = texts(t, "pkg/retry")
	same(t, "reasons", rows(t, "reasons"), named(constants, "Reason"))
	same(t, "the list of reasons", retry.Reasons(), named(constants, "Reason"))
	classes := []string{
		string(retry.Validation), string(retry.Invariant), string(retry.NotFound), string(retry.Conflict),
		string(retry.Timeout), string(retry.RateLimited), string(retry.Unknown), string(retry.Cancelled),
	}
	same(t, "classes", rows(t, "classes"), classes)
}
