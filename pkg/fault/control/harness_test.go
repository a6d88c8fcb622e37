package control

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	patience = time.Minute
	token    = "secret"
)

// newDatabase makes a database with the table.
func newDatabase(t *testing.T) string {
	t.Helper()
	url := testenv.New(t).Database(t, "faults")
	if _, err := connect(t, url).Exec(t.Context(), Schema); err != nil {
		t.Fatal(err)
	}
	return url
}

func connect(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// replica is one process with fault points: its control and its HTTP edge.
type replica struct {
	*testing.T
	*Control
	url     string
	client  *http.Client
	checker *openapitest.Transport
	stop    context.CancelFunc
}

// base is a document that has what the fragment refers to.
const base = `
openapi: 3.0.3
info: { title: test, version: "1" }
paths: {}
components:
  schemas:
    Problem:
      type: object
      required: [type, title, status, detail]
`

// start starts a replica and waits until its points are armed as the table says.
func start(t *testing.T, database string, on bool) *replica {
	t.Helper()
	migrated := make(chan struct{})
	close(migrated)
	log := slog.New(slog.DiscardHandler)
	c := New(Config{On: on, Pool: connect(t, database), Migrated: migrated, Logger: log})
	server, err := service.NewHTTP(service.HTTPConfig{Addr: "127.0.0.1:0", AdminToken: token, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	c.Register(server.Admin)
	listening := httptest.NewServer(server.Handler())
	t.Cleanup(listening.Close)

	document, err := service.MergeOpenAPI([]byte(base), OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Component().Run(ctx) }()
	r := &replica{T: t, Control: c, url: listening.URL, checker: openapitest.New(t, document, nil)}
	r.client = &http.Client{Transport: r.checker}
	r.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		ended <- nil
	}
	t.Cleanup(r.stop)
	select {
	case <-c.Loaded():
	case <-time.After(patience):
		t.Fatal("the faults are not loaded")
	}
	return r
}

// call makes a call with the token, which must get the status, and decodes the answer.
func (r *replica) call(method, path, body string, status int) (answer answered) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := r.client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	if response.StatusCode != status {
		r.Errorf("%s %s %s: %d, want %d: %s", method, path, body, response.StatusCode, status, text)
	}
	answer.text = string(text)
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			r.Fatalf("%v: %s", err, text)
		}
	}
	return answer
}

// anonymous makes a call without the token, which must be refused.
func (r *replica) anonymous(method, path string) {
	r.Helper()
	r.refused(method, path, http.StatusUnauthorized, func(*http.Request) {})
}

// rebound makes a call by a name that leads here and is not ours, which must be refused.
func (r *replica) rebound(method, path string) {
	r.Helper()
	r.refused(method, path, http.StatusMisdirectedRequest, func(request *http.Request) { request.Host = "rebound.example" })
}

func (r *replica) refused(method, path string, status int, change func(*http.Request)) {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, r.url+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	change(request)
	response, err := r.client.Do(request)
	if err != nil {
		r.Fatal(err)
	}
	if _ = response.Body.Close(); response.StatusCode != status {
		r.Errorf("%s %s without the right to: %d, want %d", method, path, response.StatusCode, status)
	}
}

// answered is any of the answers.
type answered struct {
	view
	Items  []view
	Detail string
	Errors []service.FieldError
	text   string
}

// fails says whether the point fails this message on this replica.
func (r *replica) fails(messageID string) bool {
	return r.Points().At(r.Context(), "handler", messageID) != nil
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for timeout := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
