package runs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"example.com/banking/services/console/upstream"
)

// keeper answers orders as the bank's keeper does: a run with what a test has it tell, until tell is closed or the call is broken off.
type keeper struct {
	t      *testing.T
	server *httptest.Server
	tell   chan string
	left   chan struct{}

	m      sync.Mutex
	orders []string
	refuse int  // answer with this status; 0: obey
	silent bool // answer nothing
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{t: t, tell: make(chan string), left: make(chan struct{}, 10)}
	k.server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(k.server.Close)
	return k
}

func (k *keeper) set(change func(*keeper)) {
	k.m.Lock()
	defer k.m.Unlock()
	change(k)
}

func (k *keeper) serve(w http.ResponseWriter, r *http.Request) {
	k.m.Lock()
	k.orders = append(k.orders, r.Header.Get("Authorization")+" "+r.URL.String())
	refuse, silent := k.refuse, k.silent
	k.m.Unlock()
	switch {
	case silent:
		<-r.Context().Done()
		return
	case refuse != 0:
		w.WriteHeader(refuse)
		_, _ = io.WriteString(w, `{"title":"no","detail":"the keeper says no"}`)
		return
	case !strings.HasSuffix(r.URL.Path, "/run"):
		w.WriteHeader(http.StatusNoContent)
		return
	}
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case line, more := <-k.tell:
			if !more {
				return
			}
			_, _ = io.WriteString(w, line+"\n")
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			k.left <- struct{}{}
			return
		}
	}
}

// told is the orders so far.
func (k *keeper) told() []string {
	k.m.Lock()
	defer k.m.Unlock()
	return slices.Clone(k.orders)
}

// watched is a Runs over a keeper, with what it has poked.
type watched struct {
	*Runs
	t     *testing.T
	pokes chan []string
	stop  func()
}

func start(t *testing.T, k *keeper, answer time.Duration) *watched {
	t.Helper()
	w := &watched{t: t, pokes: make(chan []string, 10000)}
	cfg := Config{Token: "token", Look: time.Minute, Answer: answer, Logger: slog.New(slog.DiscardHandler), Poke: func(topics ...string) { w.pokes <- topics }}
	if k != nil {
		u, err := upstream.New("the bank's keeper", k.server.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		cfg.Keeper = u
	}
	w.Runs = New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = w.Run(ctx) }()
	w.stop = func() { cancel(); <-ended }
	t.Cleanup(w.stop)
	return w
}

// parts is what a page sees of a topic, by key and in its order.
func (w *watched) parts(topic string) (keys []string, values map[string]string) {
	w.t.Helper()
	source, ok := w.Find(topic)
	if !ok {
		w.t.Fatalf("there is no topic %s", topic)
	}
	parts, err := source.Poll(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	values = map[string]string{}
	for _, p := range parts {
		keys = append(keys, p.Key)
		values[p.Key] = string(p.Value)
	}
	return keys, values
}

func (w *watched) run(number int) (seen Run) {
	w.t.Helper()
	if _, values := w.parts(topicOf(number)); values["run"] != "" {
		if err := json.Unmarshal([]byte(values["run"]), &seen); err != nil {
			w.t.Fatal(err)
		}
	}
	return seen
}

// await waits until pages have been told something after which the condition holds.
func (w *watched) await(what string, holds func() bool) {
	w.t.Helper()
	late := time.After(time.Minute)
	for !holds() {
		select {
		case <-w.pokes:
		case <-late:
			w.t.Fatalf("%s does not come; exercise 1 is %+v", what, w.run(1))
		}
	}
}

func (w *watched) awaitState(number int, state State) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d %s", number, state), func() bool { return w.run(number).State == state })
}

func (w *watched) begin(number int) {
	w.t.Helper()
	if seen, err := w.Start(number); err != nil || seen.State != Running || seen.Exercise != number {
		w.t.Fatalf("start: %+v, %v", seen, err)
	}
}
