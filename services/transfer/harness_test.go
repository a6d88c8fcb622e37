package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

// patience is how long a test waits for something that must happen: long, because the machine may be busy with other
// tests; nothing waits that long when all is well.
const patience = time.Minute

// bank is a running transfer service with what stands around it: its database, and a broker on which the test plays account.
type bank struct {
	t        *testing.T
	env      *testenv.Env
	database string
	db       *pgxpool.Pool
	url      string
	client   *http.Client
	broker   *amqp.Channel
	sent     *sent
	stop     func() error
}

// newBank makes the servers' side and starts nothing. The test reads everything transfer sends from b.sent.
func newBank(t *testing.T) *bank {
	t.Helper()
	env := testenv.New(t)
	b := &bank{t: t, env: env, database: env.Database(t, "transfer")}
	db, err := pgxpool.New(t.Context(), b.database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	b.db = db

	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // a test may have cut it
	if b.broker, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	b.must(b.broker.ExchangeDeclare(contract.EventsExchange, amqp.ExchangeTopic, true, false, false, false, nil))
	b.must(b.broker.Confirm(false))
	b.sent = b.listen("transfers.#")
	return b
}

// startBank runs a transfer service with the settings, given as NAME=value, and waits until it is ready.
func startBank(t *testing.T, settings ...string) *bank {
	t.Helper()
	b := newBank(t)
	b.start(settings...)
	return b
}

// start runs the service in this process, exactly as main does from the configuration on.
func (b *bank) start(settings ...string) {
	b.t.Helper()
	b.url, b.stop = b.replica(settings...)
	b.client = &http.Client{Transport: openapitest.New(b.t, documented(b.t), nil)}
	b.awaitReady()
}

// documented is the whole document that the service serves.
func documented(t testing.TB) []byte {
	t.Helper()
	described, err := document()
	if err != nil {
		t.Fatal(err)
	}
	return described
}

// replica runs one more service on the same servers; stop ends it and returns what it ended with.
func (b *bank) replica(settings ...string) (url string, stop func() error) {
	b.t.Helper()
	environment := append([]string{
		"HTTP_ADDR=127.0.0.1:0",
		"DATABASE_URL=" + b.database,
		"AMQP_URL=" + b.env.AMQPURL,
	}, settings...)
	cfg, err := service.Load[config](environment, defaults)
	if err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(b.t.Output(), nil))
	a, err := newApp(ctx, cfg, log)
	if err != nil {
		cancel()
		b.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- a.run(ctx) }()
	stopped := false
	stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(patience):
			return fmt.Errorf("did not stop within %s", patience)
		}
	}
	b.t.Cleanup(func() {
		if err := stop(); err != nil {
			b.t.Errorf("stop transfer: %v", err)
		}
	})
	return "http://" + a.http.Addr(), stop
}

func (b *bank) awaitReady() {
	b.t.Helper()
	b.eventually("transfer is ready", func() bool {
		response, err := http.Get(b.url + "/readyz")
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func (b *bank) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// eventually asks until the condition holds, and fails the test when it never does.
func (b *bank) eventually(what string, condition func() bool) {
	b.t.Helper()
	eventually(b.t, what, condition)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// answer is an HTTP answer with its body read.
type answer struct {
	*http.Response
	body []byte
}

// call sends a request; header lines are "Name: value".
func (b *bank) call(method, path, body string, headers ...string) answer {
	b.t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, content)
	b.must(err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" { // which Go's client takes from elsewhere
			request.Host = value
		}
		request.Header.Add(name, value)
	}
	return b.send(b.t, request)
}

// send may be called by any goroutine.
func (b *bank) send(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := b.client.Do(request)
	if err != nil {
		t.Error(err)
		return answer{Response: &http.Response{}}
	}
	return read(t, response)
}

func read(t *testing.T, response *http.Response) answer {
	t.Helper()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	_ = response.Body.Close()
	return answer{response, body}
}

func (b *bank) decode(body []byte, v any) {
	b.t.Helper()
	if err := json.Unmarshal(body, v); err != nil {
		b.t.Fatalf("%v in %s", err, body)
	}
}

// order is what a test asks for, 25 EUR from one fresh account to another.
type order struct{ source, destination uuid.UUID }

func newOrder() order { return order{uuid.New(), uuid.New()} }

func (o order) body() string {
	return fmt.Sprintf(`{"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":2500,"currency":"EUR"}`, o.source, o.destination)
}

// request creates a transfer.
func (b *bank) request(o order) transferView {
	b.t.Helper()
	a := b.call(http.MethodPost, "/transfers", o.body())
	if a.StatusCode != http.StatusAccepted {
		b.t.Fatalf("POST /transfers: %d %s", a.StatusCode, a.body)
	}
	var t transferView
	b.decode(a.body, &t)
	return t
}

func (b *bank) get(id uuid.UUID) transferView {
	b.t.Helper()
	a := b.call(http.MethodGet, "/transfers/"+id.String(), "")
	if a.StatusCode != http.StatusOK {
		b.t.Fatalf("GET transfer: %d %s", a.StatusCode, a.body)
	}
	var t transferView
	b.decode(a.body, &t)
	return t
}

// awaitStatus waits until the transfer has the status and returns it.
func (b *bank) awaitStatus(id uuid.UUID, status string) transferView {
	b.t.Helper()
	var t transferView
	b.eventually(fmt.Sprintf("transfer %s becomes %s", id, status), func() bool {
		t = b.get(id)
		return string(t.Status) == status
	})
	return t
}

func (t transferView) facts() []string {
	var facts []string
	for _, e := range t.Timeline {
		facts = append(facts, e.Fact)
	}
	slices.Sort(facts)
	return facts
}

// quiet is a logger for parts whose lines a test does not want.
func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(new(bytes.Buffer), nil)) }
