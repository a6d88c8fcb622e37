package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"example.com/banking/pkg/service"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(withBrowser{m}) }

// withBrowser runs the tests and closes the browser behind them, before goroutines are counted.
type withBrowser struct{ *testing.M }

func (w withBrowser) Run() int {
	code := w.M.Run()
	if browser.off != nil {
		browser.off()
	}
	return code
}

const adminToken = "a-token-for-tests"

// fakes are the services and the broker's management API, as far as the console asks them.
type fakes struct {
	account, transfer, management *fake
}

// fake answers each "METHOD /path" with what it was told to, and notes what it was asked.
type fake struct {
	*httptest.Server
	m       sync.Mutex
	answers map[string]http.HandlerFunc
	asked   map[string]int
	last    map[string]*http.Request
	bodies  map[string]string
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{answers: map[string]http.HandlerFunc{}, asked: map[string]int{}, last: map[string]*http.Request{}, bodies: map[string]string{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	name := r.Method + " " + r.URL.EscapedPath()
	body, _ := io.ReadAll(r.Body)
	f.m.Lock()
	f.asked[name]++
	f.last[name], f.bodies[name] = r.Clone(context.Background()), string(body)
	answer := f.answers[name]
	f.m.Unlock()
	if answer == nil {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"type":"about:blank","title":"Not Found","status":404,"detail":"There is nothing at this path."}`)
		return
	}
	answer(w, r)
}

// on sets the answer to a call.
func (f *fake) on(name string, answer http.HandlerFunc) {
	f.m.Lock()
	defer f.m.Unlock()
	f.answers[name] = answer
}

// say sets a JSON answer.
func (f *fake) say(name string, document any) {
	text, ok := document.(string)
	if !ok {
		encoded, err := json.Marshal(document)
		if err != nil {
			panic(err)
		}
		text = string(encoded)
	}
	f.on(name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	})
}

// refuse sets a problem as the answer.
func (f *fake) refuse(name string, status int, detail string) {
	f.on(name, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d,"detail":%q}`, http.StatusText(status), status, detail)
	})
}

func (f *fake) count(name string) int {
	f.m.Lock()
	defer f.m.Unlock()
	return f.asked[name]
}

// total is how often anything was asked.
func (f *fake) total() (n int) {
	f.m.Lock()
	defer f.m.Unlock()
	for _, times := range f.asked {
		n += times
	}
	return n
}

// request answers the last call of a name, with its body.
func (f *fake) request(t *testing.T, name string) (*http.Request, string) {
	t.Helper()
	f.m.Lock()
	defer f.m.Unlock()
	if f.last[name] == nil {
		t.Fatalf("%s was not asked for", name)
	}
	return f.last[name], f.bodies[name]
}

// console is a running console over fakes.
type console struct {
	fakes
	url    string
	client *http.Client
}

// startConsole starts one with settings beside what is required.
func startConsole(t *testing.T, settings ...string) *console {
	t.Helper()
	f := fakes{newFake(t), newFake(t), newFake(t)}
	return startOver(t, f, append([]string{"ADMIN_TOKEN=" + adminToken}, settings...)...)
}

func startOver(t *testing.T, f fakes, settings ...string) *console {
	t.Helper()
	cfg, err := service.Load[config](append([]string{
		"HTTP_ADDR=127.0.0.1:0", "ACCOUNT_URL=" + f.account.URL, "TRANSFER_URL=" + f.transfer.URL,
		"RABBITMQ_MANAGEMENT_URL=" + strings.Replace(f.management.URL, "http://", "http://operator:secret@", 1),
	}, settings...), defaults)
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, f, cfg)
}

func startWith(t *testing.T, f fakes, cfg config) *console {
	t.Helper()
	a, err := newApp(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	jar, _ := cookiejar.New(nil)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the console has not stopped cleanly: %v", err)
		}
	})
	return &console{fakes: f, url: "http://" + a.http.Addr(), client: &http.Client{Transport: transport, Jar: jar}}
}

// answer is what a call was answered.
type answer struct {
	status int
	header http.Header
	body   string
}

func (c *console) call(t *testing.T, method, path, body string, headers ...string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(content)}
}

func (c *console) signIn(t *testing.T) {
	t.Helper()
	if got := c.call(t, "POST", "/api/session", `{"token":"`+adminToken+`","operator":"Grace"}`); got.status != http.StatusNoContent {
		t.Fatalf("sign in: %+v", got)
	}
}

func expectStatus(t *testing.T, got answer, wanted int) {
	t.Helper()
	if got.status != wanted {
		t.Errorf("status %d, want %d: %s", got.status, wanted, got.body)
	}
}

func writeJSON(w io.Writer, document any) {
	if err := json.NewEncoder(w).Encode(document); err != nil {
		panic(err)
	}
}

// front stands before a console and can be let go of it: the address stays when the console does not.
type front struct {
	*httptest.Server
	m    sync.Mutex
	next http.Handler
}

func newFront(t *testing.T) *front {
	t.Helper()
	f := &front{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.m.Lock()
		next := f.next
		f.m.Unlock()
		if next == nil {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	}))
	f.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	t.Cleanup(f.Close)
	return f
}

// to sends what comes to a console; "" breaks off what is under way and refuses everything.
func (f *front) to(address string) {
	var next http.Handler
	if address != "" {
		target, err := url.Parse(address)
		if err != nil {
			panic(err)
		}
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		proxy.ErrorLog = f.Config.ErrorLog
		proxy.Transport = &http.Transport{DisableKeepAlives: true}
		next = proxy
	}
	f.m.Lock()
	f.next = next
	f.m.Unlock()
	if next == nil {
		f.CloseClientConnections()
	}
}
