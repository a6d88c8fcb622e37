package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
)

// A watch shows what is ready and what is dead and still there, takes in queues that come, and outlives queues that go, statistics that answer
// with 500, and a broker that cuts it off.
func TestQueuesAreWatchedWhateverHappens(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	ch := declared(t, env.AMQPURL, "first")
	var m sync.Mutex
	listed, broken := `{"name":"first"}`, 0
	say := func(queues string, refuse int) {
		m.Lock()
		defer m.Unlock()
		listed, broken = queues, refuse
	}
	management := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.Lock()
		defer m.Unlock()
		if broken > 0 {
			broken--
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "["+listed+"]")
	}))
	t.Cleanup(management.Close)
	b, err := newBroker(&endpoints{AMQPURL: env.AMQPURL, ManagementURL: management.URL})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(queue string) {
		t.Helper()
		if err := b.publish(t.Context(), "", queue, amqp.Publishing{}); err != nil {
			t.Fatal(err)
		}
	}
	from, to := io.Pipe()
	watch := newQueueWatch(b, newOutput(to, true), 20*time.Millisecond)
	watch.statistics = 50 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watch.run(ctx); _ = to.Close() }()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(from); in.Scan(); {
			lines <- in.Text()
		}
	}()
	expect := func(wanted string) {
		t.Helper()
		late := time.After(time.Minute)
		for {
			select {
			case line, open := <-lines:
				if !open {
					t.Fatalf("it has ended before %s", wanted)
				}
				if strings.Contains(line, wanted) {
					return
				}
			case <-late:
				t.Fatalf("%s is not shown", wanted)
			}
		}
	}
	publish("first")
	expect(`"queue":"first","ready":1,"deadLettering":0`)
	say(`{"name":"first","messages_dlx":3}`, 3)
	expect(`"queue":"first","ready":1,"deadLettering":3`)

	declared(t, env.AMQPURL, "second")
	publish("second")
	say(`{"name":"first","messages_dlx":3},{"name":"second"}`, 0)
	expect(`"queue":"second","ready":1`)
	if _, err := ch.QueueDelete("second", false, false, false); err != nil { // which the statistics go on to list
		t.Fatal(err)
	}
	expect(`"queue":"second","ready":0,"deadLettering":0,"gone":true`)
	publish("first")
	expect(`"queue":"first","ready":2`)

	env.CloseConnections(t) // as the broker does when it is stopped
	publish("first")
	expect(`"queue":"first","ready":3`)
	stop()
	go func() { // what it still prints
		for range lines {
		}
	}()
	if err := <-ended; err != nil {
		t.Errorf("stopped: %v", err)
	}
}

// The text form has a column for it, and says in words what has gone.
func TestAWatchInWords(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	w := newQueueWatch(nil, newOutput(&text, false), time.Second)
	w.start = time.Now()
	w.known = map[string]queueDepth{"a": {1, 0}, "b": {0, 0}, "c": {0, 7}}
	for _, step := range []error{nil, io.EOF, io.EOF, nil} {
		if err := w.tell(step); err != nil {
			t.Fatal(err)
		}
	}
	delete(w.known, "a")
	if err := w.tell(nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"1 a", "0 7 c", "EOF; trying again", "the broker answers again", "0 a (deleted)"}
	var got []string
	for line := range strings.Lines(text.String()) {
		_, rest, _ := strings.Cut(line, " s ")
		got = append(got, strings.Join(strings.Fields(rest), " "))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("shown is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
