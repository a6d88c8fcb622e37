package reference

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/banking/pkg/retry"
)

const errorsIntroduction = `<!-- Written by "go generate ./test/reference". Change the messages in the code, not this page. -->

# Error messages

What account and transfer say when they refuse something, read from the code that says it; a test reads it again. *…* stands for what differs from case to
case. The last column leads to the function.
`

const errorsOfMessages = `
## Of messages

The error of a message is in the service's log, in ` + "`x-last-error`" + ` of a quarantined one, and in ` + "`bin/bank transfer show ID --life`" + `. Its class
decides what becomes of the message ([failure policy](failure-policy.md#classes-and-decisions)). What the database and the network say comes in
their own words, behind what was being done.

`

const errorsOfHTTP = `
## Of HTTP

Each is the ` + "`detail`" + ` of a problem document (RFC 9457). With *is not acceptable* the member ` + "`errors`" + ` names every field that is wrong. A 503 carries ` + "`Retry-After`" + `.

`

// finding is one message that the code can say.
type finding struct {
	of    string // a class, or a status
	text  string
	where string // a link into the code
}

// TestErrorsPage keeps docs/reference/errors.md equal to the code. Not parallel: with -update it writes.
func TestErrorsPage(t *testing.T) {
	path := filepath.Join(root, "docs", "reference", "errors.md")
	messages, answers := findings(t)
	if len(messages) < 20 || len(answers) < 20 {
		t.Fatalf("only %d errors and %d answers are found", len(messages), len(answers))
	}
	var b strings.Builder
	b.WriteString(errorsIntroduction + errorsOfMessages + table("class", messages) + errorsOfHTTP + table("status", answers))
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is not what the code says; run go generate ./test/reference", path)
	}
}

func table(of string, found []finding) string {
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.of, b.of), strings.Compare(a.text, b.text), strings.Compare(a.where, b.where))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | message | said by |\n| --- | --- | --- |\n", of)
	for _, f := range slices.Compact(found) {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.of, strings.ReplaceAll(f.text, "|", "\\|"), f.where)
	}
	return b.String()
}

// findings reads what the packages and the two services can say.
func findings(t *testing.T) (messages, answers []finding) {
	t.Helper()
	for _, pattern := range []string{"pkg/*", "pkg/*/*", "services/account", "services/account/*", "services/transfer", "services/transfer/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			relative, _ := filepath.Rel(root, file)
			for _, d := range parsed.Decls {
				function, ok := d.(*ast.FuncDecl)
				if !ok || function.Body == nil {
					continue
				}
				where := function.Name.Name
				if function.Recv != nil {
					where = receiver(function.Recv.List[0].Type) + "." + where
				}
				where = fmt.Sprintf("[`%s`](../../%s)", where, filepath.ToSlash(relative))
				ast.Inspect(function.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok {
						return true
					}
					if class, text := classified(call); text != "" {
						messages = append(messages, finding{class, text, where})
					}
					if status, text := answered(call); text != "" {
						answers = append(answers, finding{status, text, where})
					}
					return true
				})
			}
		}
	}
	return messages, answers
}

var classesByName = map[string]retry.Class{
	"Validation": retry.Validation, "Invariant": retry.Invariant, "NotFound": retry.NotFound, "Conflict": retry.Conflict, "Timeout": retry.Timeout,
	"RateLimited": retry.RateLimited, "Unknown": retry.Unknown, "Cancelled": retry.Cancelled,
}

// classified reads retry.Errorf(retry.Class, "text", …).
func classified(call *ast.CallExpr) (class, text string) {
	if called(call) != "retry.Errorf" || len(call.Args) < 2 {
		return "", ""
	}
	class = "*varies*" // with the table of legs, or with what was ordered
	if selector, ok := call.Args[0].(*ast.SelectorExpr); ok && classesByName[selector.Sel.Name] != "" {
		class = "`" + string(classesByName[selector.Sel.Name]) + "`"
	}
	return class, literal(call.Args[1])
}

var statuses = map[string]int{
	"BadRequest": http.StatusBadRequest, "Unauthorized": http.StatusUnauthorized, "Forbidden": http.StatusForbidden, "NotFound": http.StatusNotFound,
	"Conflict": http.StatusConflict, "TooLarge": http.StatusRequestEntityTooLarge, "Unprocessable": http.StatusUnprocessableEntity,
	"Unavailable": http.StatusServiceUnavailable,
}

// answered reads service.NotFound("text"), and the same inside of package service.
func answered(call *ast.CallExpr) (status, text string) {
	function := strings.TrimPrefix(called(call), "service.")
	if code := statuses[function]; code != 0 && len(call.Args) > 0 {
		return strconv.Itoa(code), literal(call.Args[0])
	}
	return "", ""
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

var verb = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)

// literal is a text as people meet it; "" when it holds nothing but what differs.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return "" // a number
		}
		return strings.ReplaceAll(verb.ReplaceAllString(text, "…"), "\n", " ")
	case *ast.BinaryExpr:
		left, right := literal(e.X), literal(e.Y)
		if left == "" && right == "" {
			return ""
		}
		return cmp.Or(left, "…") + cmp.Or(right, "…")
	}
	return ""
}
