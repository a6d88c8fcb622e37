package service_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/service"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// serve runs a server for the length of a test and returns its address.
func serve(t *testing.T, cfg service.HTTPConfig, routes func(*service.HTTP)) (url string) {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", cfg, routes)
}

func serveOn(t *testing.T, addr string, cfg service.HTTPConfig, routes func(*service.HTTP)) (url string) {
	t.Helper()
	cfg.Addr = addr
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	server, err := service.NewHTTP(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if routes != nil {
		routes(server)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := runAsync(ctx, patience, service.Component{Name: "http", Run: server.Run})
	t.Cleanup(func() {
		cancel()
		if err := result(t, done); err != nil {
			t.Error(err)
		}
	})
	return "http://" + server.Addr()
}

// client keeps no connections, so that none outlives its test.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

type answer struct {
	status int
	header http.Header
	body   string
}

func call(t *testing.T, method, url string, body io.Reader, headers ...string) answer {
	t.Helper()
	return callFor(t, "", method, url, body, headers...)
}

// callAs calls with the Host header of somebody who knows the server by that name.
func callAs(t *testing.T, host, method, url string, headers ...string) answer {
	t.Helper()
	return callFor(t, host, method, url, nil, headers...)
}

func callFor(t *testing.T, host, method, url string, body io.Reader, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host // "" is that of the URL
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

// wantProblem checks that an answer is a problem of this status and returns it.
func wantProblem(t *testing.T, got answer, status int) service.Problem {
	t.Helper()
	var problem service.Problem
	if err := json.Unmarshal([]byte(got.body), &problem); err != nil {
		t.Fatalf("status %d, body %q: %v", got.status, got.body, err)
	}
	if got.status != status || problem.Status != status || problem.Title == "" || problem.Type != "about:blank" || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("got %d %s %s, want a problem with status %d", got.status, got.header.Get("Content-Type"), got.body, status)
	}
	return problem
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	errOwn := errors.New("own")
	var fields service.FieldErrors
	fields.Add("owner", "is required")
	fields.Add("currency", "must be three capital letters")
	errorsByName := map[string]error{
		"fields":      fields.Err(),
		"notfound":    service.NotFound("No such account."),
		"conflict":    fmt.Errorf("wrapped: %w", service.Conflict("It differs.")),
		"unprocess":   service.Unprocessable("Another body."),
		"own":         fmt.Errorf("wrapped: %w", errOwn),
		"unavailable": service.Unavailable("Away.", errors.New("secret reason")),
		"deadline":    fmt.Errorf("query: %w", context.DeadlineExceeded),
		"refused":     fmt.Errorf("query: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}),
		"unknown":     errors.New("secret reason"),
		"teapot":      echo.NewHTTPError(http.StatusTeapot, "short"),
	}
	var log lockedBuffer
	url := serve(t, service.HTTPConfig{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Problem: func(err error) *service.Problem {
			if errors.Is(err, errOwn) {
				return service.Conflict("Ours.")
			}
			return nil
		},
	}, func(h *service.HTTP) {
		h.Echo.GET("/error/:name", func(c echo.Context) error { return errorsByName[c.Param("name")] })
		h.Echo.GET("/panic", func(echo.Context) error { panic("secret reason") })
	})
	for name, status := range map[string]int{
		"fields": 400, "notfound": 404, "conflict": 409, "unprocess": 422, "own": 409, "unavailable": 503, "deadline": 503, "refused": 503,
		"unknown": 500, "teapot": 418,
	} {
		got := call(t, "GET", url+"/error/"+name, nil)
		problem := wantProblem(t, got, status)
		if after := got.header.Get("Retry-After"); (after == "2") != (status == 503) {
			t.Errorf("%s: Retry-After is %q", name, after)
		}
		if strings.Contains(got.body, "secret") {
			t.Errorf("%s: the client is told %s", name, got.body)
		}
		if name == "fields" && (len(problem.Errors) != 2 || problem.Errors[1] != service.FieldError{Field: "currency", Message: "must be three capital letters"}) {
			t.Errorf("field errors are %v", problem.Errors)
		}
	}
	if n := strings.Count(log.String(), "secret reason"); n != 2 {
		t.Errorf("the log has %d reasons, want 2:\n%s", n, log.String())
	}
	if got := call(t, "GET", url+"/panic", nil); strings.Contains(wantProblem(t, got, 500).Detail, "secret") {
		t.Error("the client is told why it panicked")
	}
	if !strings.Contains(log.String(), "msg=panic") || !strings.Contains(log.String(), "http_test.go") {
		t.Errorf("the log has no stack:\n%s", log.String())
	}
	if (service.FieldErrors{}).Err() != nil {
		t.Error("no findings are an error")
	}
}

func TestRoutingErrorsAndHead(t *testing.T) {
	t.Parallel()
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/things/:id", func(c echo.Context) error {
			id, err := service.PathID(c, "id")
			if err != nil {
				return err
			}
			return c.JSON(http.StatusOK, []uuid.UUID{id})
		})
		h.Echo.POST("/things", func(c echo.Context) error { return c.NoContent(http.StatusCreated) })
	})
	const thing = "/things/0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11"
	for _, path := range []string{"/", "/unknown", "/things/", thing + "/", thing + "/2", "/healthz/"} {
		wantProblem(t, call(t, "GET", url+path, nil), 404)
	}
	for _, test := range [][3]string{{"PUT", thing, "GET"}, {"POST", thing, "GET"}, {"GET", "/things", "POST"}, {"DELETE", "/healthz", "GET"}} {
		got := call(t, test[0], url+test[1], nil)
		wantProblem(t, got, 405)
		if !strings.Contains(got.header.Get("Allow"), test[2]) {
			t.Errorf("%s %s: Allow is %q", test[0], test[1], got.header.Get("Allow"))
		}
	}
	for path, status := range map[string]int{thing: 200, "/healthz": 200, "/unknown": 404, "/things": 405} {
		if got := call(t, "HEAD", url+path, nil); got.status != status || got.body != "" || got.header.Get("Content-Length") == "0" {
			t.Errorf("HEAD %s: %d, want %d, body %q, %v", path, got.status, status, got.body, got.header)
		}
	}
	if got := call(t, "GET", url+thing, nil); got.body != `["0190c2a8-51c1-7cc2-b2ae-3b0a3c4f3a11"]` || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v", got)
	}
}

// A page anywhere on the web may let a browser POST plain text to any address without asking first.
func TestOtherSitesPagesChangeNothing(t *testing.T) {
	t.Parallel()
	var changed atomic.Int32
	base := serve(t, service.HTTPConfig{AdminToken: "token"}, func(h *service.HTTP) {
		change := func(c echo.Context) error {
			changed.Add(1)
			return c.NoContent(http.StatusNoContent)
		}
		h.Echo.POST("/move", change)
		h.Echo.GET("/look", change)
		h.Admin.DELETE("/faults", change)
	})
	own := strings.TrimPrefix(base, "http://")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		for _, of := range [][2]string{{"POST", "/move"}, {"DELETE", "/admin/faults"}} {
			wantProblem(t, call(t, of[0], base+of[1], strings.NewReader("{}"), append(headers, "Content-Type", "text/plain", "Authorization", "Bearer token")...), 403)
		}
	}
	if n := changed.Load(); n != 0 {
		t.Errorf("%d calls came through", n)
	}
	for _, headers := range [][]string{
		{"Content-Type", "application/x-www-form-urlencoded"}, // curl -d
		nil,
		{"Origin", "http://" + own},
		{"Sec-Fetch-Site", "same-origin", "Origin", "http://" + own},
		{"Sec-Fetch-Site", "none"},
	} {
		if got := call(t, "POST", base+"/move", strings.NewReader("{}"), headers...); got.status != http.StatusNoContent {
			t.Errorf("%v: %d %s", headers, got.status, got.body)
		}
	}
	if got := call(t, "GET", base+"/look", nil, "Sec-Fetch-Site", "cross-site"); got.status != http.StatusNoContent {
		t.Errorf("a link from another site: %d", got.status)
	}
}

func TestRequestsEndBeforeTheirTime(t *testing.T) {
	t.Parallel()
	left := make(chan time.Duration, 1)
	url := serve(t, service.HTTPConfig{}, func(h *service.HTTP) {
		h.Echo.GET("/slow", func(c echo.Context) error {
			deadline, _ := c.Request().Context().Deadline()
			left <- time.Until(deadline)
			return nil
		})
	})
	call(t, "GET", url+"/slow", nil)
	if d := <-left; d <= 0 || d > 9*time.Second {
		t.Errorf("a handler has %s", d)
	}
}

func TestClientThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	var log lockedBuffer
	url := serve(t, service.HTTPConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(h *service.HTTP) {
		h.Echo.GET("/slow", func(c echo.Context) error {
			close(entered)
			<-c.Request().Context().Done()
			return c.Request().Context().Err()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", url+"/slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-entered
		cancel()
	}()
	if response, err := client.Do(request); err == nil {
		response.Body.Close()
		t.Error("it was answered")
	}
	waitUntil(t, func() bool {
		return strings.Contains(call(t, "GET", url+"/metrics", nil).body, `route="/slow",status="499"} 1`)
	})
	if strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log complains:\n%s", log.String())
	}
}

func TestRoutesWaitForTheStart(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	url := serve(t, service.HTTPConfig{Started: started}, func(h *service.HTTP) {
		h.Echo.GET("/things", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) })
	})
	if got := call(t, "GET", url+"/things", nil); wantProblem(t, got, 503).Detail == "" || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v", got)
	}
	if got := call(t, "GET", url+"/healthz", nil); got.status != 200 {
		t.Errorf("/healthz answers %d", got.status)
	}
	close(started)
	if got := call(t, "GET", url+"/things", nil); got.status != 204 {
		t.Errorf("got %+v", got)
	}
}

func TestStopWaitsForRunningRequestsAndTakesNoMore(t *testing.T) {
	t.Parallel()
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet, Grace: 2 * patience})
	if err != nil {
		t.Fatal(err)
	}
	entered, release := make(chan struct{}), make(chan struct{})
	server.Echo.GET("/slow", func(c echo.Context) error {
		close(entered)
		<-release
		return c.String(http.StatusOK, "done")
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := runAsync(ctx, 2*patience, service.Component{Name: "http", Run: server.Run})
	answers := make(chan string, 1)
	go func() {
		response, err := client.Get("http://" + server.Addr() + "/slow")
		if err != nil {
			answers <- err.Error()
			return
		}
		defer response.Body.Close()
		content, _ := io.ReadAll(response.Body)
		answers <- string(content)
	}()
	await(t, 1, entered)
	cancel()
	for { // until the listener is closed
		conn, err := net.Dial("tcp", server.Addr())
		if err != nil {
			break
		}
		conn.Close()
	}
	close(release)
	if got := <-answers; got != "done" {
		t.Errorf("the running request got %q", got)
	}
	if err := result(t, done); err != nil {
		t.Error(err)
	}
}

// A request that waits for something that hangs is answered before the grace is over, and the stop is a clean one.
func TestStopEndsRequestsThatWouldOutliveTheGrace(t *testing.T) {
	t.Parallel()
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet, Grace: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan struct{})
	server.Echo.GET("/hangs", func(c echo.Context) error {
		close(running)
		<-c.Request().Context().Done()
		return c.Request().Context().Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	answered := make(chan answer, 1)
	go func() { answered <- call(t, "GET", "http://"+server.Addr()+"/hangs", nil) }()
	<-running
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	wantProblem(t, <-answered, 503)
}

func TestStopDoesNotWaitForUnusedConnections(t *testing.T) {
	t.Parallel()
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet, Grace: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := runAsync(ctx, patience, service.Component{Name: "http", Run: server.Run})
	for range 3 {
		conn, err := net.Dial("tcp", server.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	call(t, "GET", "http://"+server.Addr()+"/healthz", nil) // the ones before it have been taken
	cancel()
	if err := result(t, done); err != nil { // a second is all it had: the library would have waited five
		t.Error(err)
	}
}

func TestNewHTTPRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	if _, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0"}); err == nil {
		t.Error("no logger, and no error")
	}
	first, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.NewHTTP(service.HTTPConfig{Addr: first.Addr(), Logger: quiet}); err == nil || !strings.Contains(err.Error(), first.Addr()) {
		t.Errorf("an address in use: %v", err)
	}
	first.Close()
	again, err := service.NewHTTP(service.HTTPConfig{Addr: first.Addr(), Logger: quiet})
	if err != nil {
		t.Fatalf("Close did not give the address back: %v", err)
	}
	again.Close()
}
