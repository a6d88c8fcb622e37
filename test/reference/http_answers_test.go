package reference

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"example.com/banking/internal/newservice"
	"example.com/banking/pkg/fault/control"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/service"
	"github.com/getkin/kin-openapi/openapi3"
)

// documents are the OpenAPI documents as they are served, each with the packages whose errors its service answers with.
func documents(t *testing.T) map[string]httpDocument {
	t.Helper()
	read := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	made, err := newservice.Render(newservice.Order{Name: "fees", Keys: []string{"transfers.transfer.completed"}, Retry: "lap", Checkout: checkout})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]httpDocument{
		"account":  {text: read("services/account/openapi.yaml"), sources: []string{"services/account"}},
		"transfer": {text: read("services/transfer/openapi.yaml"), sources: []string{"services/transfer"}},
		"console":  {text: read("services/console/openapi.yaml"), sources: []string{"services/console"}},
		"fees":     {text: made["services/fees/openapi.yaml"]},
	}
	for name, s := range all {
		if name != "console" { // it has no queue and no fault points
			if s.text, err = service.MergeOpenAPI(s.text, quarantine.OpenAPI, control.OpenAPI); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			s.sources = append(s.sources, "pkg/quarantine", "pkg/fault/control")
			s.starts = true
		}
		if s.document, err = openapi3.NewLoader().LoadFromData(s.text); err == nil {
			err = s.document.Validate(t.Context())
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	return all
}

type httpDocument struct {
	text     []byte
	document *openapi3.T
	sources  []string // folders
	starts   bool     // it answers 503 until its tables are there
}

// operations calls visit with each operation of the document, in order.
func (s httpDocument) operations(visit func(method, path string, operation *openapi3.Operation)) {
	paths := s.document.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := paths[path].Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			visit(method, path, operations[method])
		}
	}
}

// What pkg/service answers before a route is asked can come from every route, so each operation has to name it: it is asked of a
// server with these settings and no route at all. (A body on GET means nothing and is not tried.)
func TestWhatEveryRouteMayAnswerIsDescribed(t *testing.T) {
	t.Parallel()
	unopened := make(chan struct{})
	edge := func(token string) http.Handler {
		h, err := service.NewHTTP(service.HTTPConfig{
			Addr: "127.0.0.1:0", AdminToken: token, Started: unopened, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		return h.Handler()
	}
	guarded, closed := edge("token"), edge("")
	for name, s := range documents(t) {
		s.operations(func(method, path string, operation *openapi3.Operation) {
			ask := func(of http.Handler, want int, change func(*http.Request)) {
				t.Helper()
				r := httptest.NewRequest(method, strings.NewReplacer("{", "", "}", "").Replace(path), nil)
				r.Host = "localhost"
				r.Header.Set("Authorization", "Bearer token")
				change(r)
				answer := httptest.NewRecorder()
				of.ServeHTTP(answer, r)
				if answer.Code != want {
					t.Errorf("%s: %s %s is answered with %d, want %d: has the test lost its way?", name, method, path, answer.Code, want)
				}
				if operation.Responses.Status(want) == nil && operation.Responses.Default() == nil {
					t.Errorf("%s: the OpenAPI document does not know that %s %s may be answered with %d", name, method, path, want)
				}
			}
			ask(guarded, http.StatusMisdirectedRequest, func(r *http.Request) { r.Host = "rebound.example" })
			if operation.Responses.Status(http.StatusMisdirectedRequest) == nil {
				t.Errorf("%s: %s %s does not name 421", name, method, path)
			}
			admin, operates := strings.HasPrefix(path, "/admin/"), slices.Contains(operation.Tags, "operation")
			if admin {
				ask(guarded, http.StatusUnauthorized, func(r *http.Request) { r.Header.Del("Authorization") })
				ask(closed, http.StatusForbidden, func(*http.Request) {})
			}
			if s.starts && !operates {
				ask(guarded, http.StatusServiceUnavailable, func(*http.Request) {})
			}
			if method != http.MethodGet {
				ask(guarded, http.StatusForbidden, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
				ask(guarded, http.StatusRequestEntityTooLarge, func(r *http.Request) { r.Body, r.ContentLength = http.NoBody, 1<<20+1 })
			}
			if !operates && operation.Responses.Status(http.StatusInternalServerError) == nil && operation.Responses.Default() == nil {
				t.Errorf("%s: %s %s does not say how an unexpected error is answered", name, method, path)
			}
		})
	}
}

// Each status with which code refuses something stands in the document of its service, and none stands there that nobody answers with. At
// which of its routes is proven where they are called: every answer in a service's tests is held against the document (openapitest).
func TestEveryProblemIsDescribed(t *testing.T) {
	t.Parallel()
	ofTheEdge := []int{
		http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge, http.StatusMisdirectedRequest,
		http.StatusInternalServerError, http.StatusServiceUnavailable,
	}
	for name, s := range documents(t) {
		named := map[int]bool{}
		s.operations(func(_, _ string, operation *openapi3.Operation) {
			for status := range operation.Responses.Map() {
				if n, err := strconv.Atoi(status); err == nil && n >= http.StatusBadRequest {
					named[n] = true
				}
			}
		})
		raised := map[int]string{}
		for _, folder := range s.sources {
			maps.Copy(raised, problemsIn(t, folder))
		}
		if len(raised) < 3 {
			t.Errorf("%s: only %v found in %v: does the test still read the code?", name, raised, s.sources)
		}
		for status, where := range raised {
			if !named[status] {
				t.Errorf("%s: %s answers with %d, which no operation of the OpenAPI document names", name, where, status)
			}
		}
		if name == "fees" {
			continue // the template's code is read and run by its own tests
		}
		for status := range named {
			if raised[status] == "" && !slices.Contains(ofTheEdge, status) {
				t.Errorf("%s: the OpenAPI document names %d, which nobody answers with", name, status)
			}
		}
	}
}

// statusOf are the names in pkg/service by which code refuses something, by the status that comes of it.
var statusOf = map[string]int{
	"BadRequest": http.StatusBadRequest, "FieldErrors": http.StatusBadRequest, "DecodeJSON": http.StatusBadRequest, "PageOf": http.StatusBadRequest,
	"Unauthorized": http.StatusUnauthorized, "Forbidden": http.StatusForbidden, "NotFound": http.StatusNotFound, "PathID": http.StatusNotFound,
	"Conflict": http.StatusConflict, "TooLarge": http.StatusRequestEntityTooLarge, "Unprocessable": http.StatusUnprocessableEntity,
	"Unavailable": http.StatusServiceUnavailable,
}

// otherStatuses are those that code gives to service.NewProblem.
var otherStatuses = map[string]int{
	"StatusBadGateway": http.StatusBadGateway, "StatusNotImplemented": http.StatusNotImplemented, "StatusTooManyRequests": http.StatusTooManyRequests,
}

// problemsIn are the statuses of the problems that the code of a folder makes, each with a place where it does.
func problemsIn(t *testing.T, folder string) map[int]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	found := map[int]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		where := func(n ast.Node) string {
			return folder + "/" + filepath.Base(file) + ":" + strconv.Itoa(set.Position(n.Pos()).Line)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if member(n.Fun, "service") == "NewProblem" {
					status := otherStatuses[member(n.Args[0], "http")]
					if status == 0 {
						t.Errorf("%s makes a problem of a status that this test cannot read: name it in otherStatuses", where(n))
					}
					found[status] = where(n)
				}
			case *ast.SelectorExpr:
				if status := statusOf[member(n, "service")]; status != 0 {
					found[status] = where(n)
				}
			}
			return true
		})
	}
	return found
}

// member is what an expression names in a package; "" when it names nothing there.
func member(of ast.Expr, pkg string) string {
	if selector, ok := of.(*ast.SelectorExpr); ok {
		if name, ok := selector.X.(*ast.Ident); ok && name.Name == pkg {
			return selector.Sel.Name
		}
	}
	return ""
}
