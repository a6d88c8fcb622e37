package service_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"
)

// Whoever is told that the same call may be made again makes it again: it must not be said of what may have been done.
func TestTheSameCallMayBeMadeAgain(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("store: %w", &pgconn.ConnectError{})
	for name, c := range map[string]struct {
		method string
		err    error
		may    bool
	}{
		"no answer":               {"POST", context.DeadlineExceeded, false},
		"cut off":                 {"POST", io.ErrUnexpectedEOF, false},
		"ended by the server":     {"POST", &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"}, false},
		"refused by the server":   {"POST", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "53100"}, true},
		"no connection":           {"POST", refused, true},
		"marked":                  {"POST", fmt.Errorf("accept: %w", service.Repeatable(context.DeadlineExceeded)), true},
		"only read":               {"GET", context.DeadlineExceeded, true},
		"deleted without answer":  {"DELETE", io.ErrUnexpectedEOF, false},
		"read from what was away": {"GET", refused, true},
	} {
		url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
			h.Echo.Add(c.method, "/", func(echo.Context) error { return c.err })
		})
		detail := wantProblem(t, call(t, c.method, url+"/", nil), http.StatusServiceUnavailable).Detail
		if strings.Contains(detail, "the same call may be made again") != c.may || strings.Contains(detail, "not known whether this was done") == c.may {
			t.Errorf("%s: %q", name, detail)
		}
	}
	if service.Repeatable(nil) != nil {
		t.Error("no error has become one")
	}
}

// A call that has a key of its own does nothing twice, and so its answer says that it may be made again.
func ExampleRepeatable() {
	err := service.Repeatable(fmt.Errorf("store the order: %w", context.DeadlineExceeded))
	fmt.Println(err)
	// Output:
	// store the order: context deadline exceeded
}
