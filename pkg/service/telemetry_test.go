package service_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

var traceparentForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)

func TestTraceParentTravels(t *testing.T) {
	t.Parallel()
	ctx := service.WithTraceParent(t.Context(), parent)
	if got := service.TraceParent(ctx); got != parent {
		t.Errorf("got %s", got)
	}
	if got := service.TraceID(ctx); got != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %s", got)
	}
	inner, end := service.StartSpan(ctx, "handle", trace.SpanKindConsumer)
	if got := service.TraceParent(inner); got != parent { // nothing is exported, so there is no span of our own
		t.Errorf("below a span: %s", got)
	}
	end(errors.New("failed"))
	unsampled := strings.TrimSuffix(parent, "1") + "0"
	if got := service.TraceParent(service.WithTraceParent(t.Context(), unsampled)); got != unsampled {
		t.Errorf("got %s", got)
	}
}

func TestTraceParentIsMadeWhenThereIsNone(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		got := service.TraceParent(context.Background())
		if !traceparentForm.MatchString(got) || seen[got] {
			t.Fatalf("got %s", got)
		}
		seen[got] = true
		if service.TraceParent(service.WithTraceParent(context.Background(), got)) != got {
			t.Fatalf("%s is not understood", got)
		}
	}
	for _, malformed := range []string{"", "nonsense", "00-00000000000000000000000000000000-b7ad6b7169203331-01", "ff" + parent[2:], strings.ToUpper(parent)} {
		if ctx := service.WithTraceParent(t.Context(), malformed); service.TraceID(ctx) != "" {
			t.Errorf("%q was taken", malformed)
		}
	}
}

func TestRequestsHaveATrace(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/trace", func(c echo.Context) error {
			ctx := c.Request().Context()
			return c.String(http.StatusOK, service.TraceParent(ctx)+" "+service.TraceParent(ctx))
		})
	})
	if got := call(t, "GET", url+"/trace", nil, "traceparent", parent).body; got != parent+" "+parent {
		t.Errorf("the client's: %s", got)
	}
	first, second, _ := strings.Cut(call(t, "GET", url+"/trace", nil).body, " ")
	if !traceparentForm.MatchString(first) || first != second {
		t.Errorf("one of its own: %s %s", first, second)
	}
}
