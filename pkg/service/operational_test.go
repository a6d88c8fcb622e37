package service_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"
)

type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks"`
}

func TestReadyzRunsChecksAndGivesReasons(t *testing.T) {
	t.Parallel()
	fails := errors.New("no route to host")
	var failing error
	both := make(chan struct{})
	url := serve(t, service.HTTPConfig{Checks: []service.Check{
		{Name: "database", Ready: func(ctx context.Context) error { // only together do they pass: they run at the same time
			select {
			case both <- struct{}{}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		{Name: "broker", Ready: func(ctx context.Context) error {
			select {
			case <-both:
				return failing
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
	}}, nil)
	for _, test := range []struct {
		err    error
		status int
		want   readiness
	}{
		{nil, 200, readiness{true, map[string]string{"database": "ok", "broker": "ok"}}},
		{fails, 503, readiness{false, map[string]string{"database": "ok", "broker": "no route to host"}}},
		{nil, 200, readiness{true, map[string]string{"database": "ok", "broker": "ok"}}},
	} {
		failing = test.err
		got := call(t, "GET", url+"/readyz", nil)
		var said readiness
		if err := json.Unmarshal([]byte(got.body), &said); err != nil {
			t.Fatal(err)
		}
		if got.status != test.status || said.Ready != test.want.Ready || said.Checks["database"] != "ok" || said.Checks["broker"] != test.want.Checks["broker"] {
			t.Errorf("got %d %s, want %d %v", got.status, got.body, test.status, test.want)
		}
		if test.status == 503 {
			wantProblem(t, got, 503)
		}
	}
}

func TestReadyzDoesNotWaitForAHangingCheck(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	ended := make(chan struct{})
	url := serve(t, service.HTTPConfig{Checks: []service.Check{
		{Name: "hanging", Ready: func(context.Context) error { defer close(ended); <-release; return nil }},
		{Name: "panicking", Ready: func(context.Context) error { panic("oh") }},
	}}, nil)
	got := call(t, "GET", url+"/readyz", nil)
	wantProblem(t, got, 503)
	for _, want := range []string{`"hanging":"no answer within 3s"`, `"panicking":"panic: oh"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	close(release)
	await(t, 1, ended)
}

// PostgreSQL words its start-up errors in the server's own encoding.
func TestReadyzAnswersWholeWhateverTheReason(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{Checks: []service.Check{
		{Name: "database", Ready: func(context.Context) error { return errors.New("Datenbank f\xe4hrt hoch") }},
	}}, nil)
	got := call(t, "GET", url+"/readyz", nil)
	wantProblem(t, got, 503)
	if want := "\"database\":\"Datenbank f\uFFFDhrt hoch\""; !strings.Contains(got.body, want) {
		t.Errorf("no %s in %s", want, got.body)
	}
}

func TestMetricsCountRequestsByRoute(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/things/:id", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	})
	for _, path := range []string{"/things/1", "/things/2", "/unknown/1", "/unknown/2", "/admin/x"} {
		call(t, "GET", url+path, nil)
	}
	call(t, "BREW", url+"/things/1", nil)
	got := call(t, "GET", url+"/metrics", nil).body
	for _, want := range []string{
		`http_request_duration_seconds_count{method="GET",route="/things/:id",status="204"} 2`,
		`http_request_duration_seconds_count{method="GET",route="unmatched",status="404"} 2`,
		`http_request_duration_seconds_count{method="other",`,
		`http_requests_running 1`, "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, "BREW") || strings.Contains(got, "unknown") || strings.Contains(got, `"/admin/x"`) {
		t.Errorf("a client can make series:\n%s", got)
	}
}

const operationalDocument = `
openapi: 3.0.3
info: {title: Operational, version: "1"}
paths:
  /healthz: {get: {responses: {"200": {description: alive, content: {application/json: {schema: {type: object, required: [status]}}}}}}}
  /readyz: {get: {responses: {"200": {description: ready, content: {application/json: {schema: {type: object, required: [ready, checks]}}}}}}}
  /metrics: {get: {responses: {"200": {description: figures, content: {text/plain: {schema: {type: string}}}}}}}
  /openapi.yaml: {get: {responses: {"200": {description: this, content: {application/yaml: {schema: {type: object, required: [openapi]}}}}}}}
`

func TestOperationalRoutesAnswerAsDescribed(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{OpenAPI: []byte(operationalDocument)}, nil)
	transport := openapitest.New(t, []byte(operationalDocument), client.Transport)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.yaml", "/else"} {
		response, err := (&http.Client{Transport: transport}).Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if missing := transport.Uncovered(); len(missing) > 0 {
		t.Errorf("not answered: %v", missing)
	}
	if got := call(t, "GET", url+"/openapi.yaml", nil); got.body != operationalDocument {
		t.Errorf("got %s", got.body)
	}
}

func TestAdminNeedsTheToken(t *testing.T) {
	t.Parallel()
	routes := func(h *service.HTTP) {
		h.Admin.GET("/faults", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	}
	open := serve(t, service.HTTPConfig{}, routes)
	guarded := serve(t, service.HTTPConfig{AdminToken: "s3cret"}, routes)
	for _, path := range []string{"/admin", "/admin/faults", "/admin/unknown"} {
		wantProblem(t, call(t, "GET", open+path, nil, "Authorization", "Bearer "), 403)
		for _, given := range []string{"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets", "Basic s3cret", "s3cret"} {
			got := call(t, "GET", guarded+path, nil, "Authorization", given)
			wantProblem(t, got, 401)
			if !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%q: WWW-Authenticate is %q", given, got.header.Get("WWW-Authenticate"))
			}
		}
	}
	for _, given := range []string{"Bearer s3cret", "bearer s3cret"} {
		if got := call(t, "GET", guarded+"/admin/faults", nil, "Authorization", given); got.status != 204 {
			t.Errorf("%q: got %d", given, got.status)
		}
	}
	wantProblem(t, call(t, "GET", guarded+"/admin/unknown", nil, "Authorization", "Bearer s3cret"), 404)
	wantProblem(t, call(t, "DELETE", guarded+"/admin/faults", nil, "Authorization", "Bearer s3cret"), 405)
}
