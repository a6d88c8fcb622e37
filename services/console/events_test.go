package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// event is one server-sent event.
type event struct{ name, data string }

// listen opens a stream; the channel is closed with it.
func (c *console) listen(t *testing.T, topics string) <-chan event {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "GET", c.url+"/events?topics="+topics, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := c.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("got %s %s", response.Status, response.Header.Get("Content-Type"))
	}
	events := make(chan event, 100)
	go func() {
		defer close(events)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		var now event
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				now.name = name
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				now.data = data
				events <- now
			}
		}
	}()
	return events
}

// await reads events until one is what is wanted.
func await(t *testing.T, events <-chan event, what string, ok func(event) bool) event {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		select {
		case e, open := <-events:
			if !open {
				t.Fatalf("%s: the stream has ended", what)
			}
			if ok(e) {
				return e
			}
		case <-late:
			t.Fatalf("%s has not come", what)
		}
	}
}

func TestEventsTellWhatChanges(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.transfer.say("GET /transfers", `{"items":[{"id":"a","status":"REQUESTED","amountMinor":5}]}`)
	c.transfer.say("GET /transfers/summary", `{"REQUESTED":1}`)
	events := c.listen(t, "transfers,summary,transfers,ledger")
	await(t, events, "a beat", func(e event) bool { return e.name == "beat" })
	first := await(t, events, "the list", func(e event) bool { return strings.Contains(e.data, `"topic":"transfers"`) })
	if !strings.Contains(first.data, `"keys":["a"]`) || !strings.Contains(first.data, `"amountMinor":"5"`) || !strings.Contains(first.data, `"ok":true`) {
		t.Errorf("first: %s", first.data)
	}
	c.transfer.say("GET /transfers", `{"items":[{"id":"a","status":"DEBITED","amountMinor":5}]}`)
	next := await(t, events, "the change", func(e event) bool { return strings.Contains(e.data, "DEBITED") })
	if strings.Contains(next.data, "keys") || strings.Contains(next.data, "source") {
		t.Errorf("more than the change: %s", next.data)
	}
	c.transfer.Close()
	await(t, events, "silence", func(e event) bool {
		return strings.Contains(e.data, `"silent":true`) && strings.Contains(e.data, `"topic":"transfers"`)
	})
}

func TestTopicsThatThereAreNot(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	many := "queues"
	for i := range mostTopics {
		many += fmt.Sprintf(",leg:%08d-0000-4000-8000-000000000001", i)
	}
	for _, query := range []string{"", "?topics=", "?topics=,", "?topics=nonsense", "?topics=queues&topics=ledger", "?topics=queues,account:1", "?topics=" + many} {
		expectStatus(t, c.call(t, "GET", "/events"+query, ""), http.StatusBadRequest)
	}
}

func TestAnActionIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.account.say("GET /accounts", `{"items":[{"id":"a","status":"OPEN"}]}`)
	c.account.on("POST /accounts/"+alice+"/freeze", func(w http.ResponseWriter, _ *http.Request) {
		c.account.say("GET /accounts", `{"items":[{"id":"a","status":"FROZEN"}]}`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	})
	events := c.listen(t, "accounts")
	await(t, events, "the list", func(e event) bool { return strings.Contains(e.data, "OPEN") })
	expectStatus(t, c.call(t, "POST", "/api/accounts/"+alice+"/freeze", ""), http.StatusOK)
	await(t, events, "the change", func(e event) bool { return strings.Contains(e.data, "FROZEN") })
}

func TestTheStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	f := fakes{newFake(t), newFake(t), newFake(t)}
	f.transfer.say("GET /admin/quarantine", `{"items":[{"queue":"banking.dead-letters","key":"k"}],"next":null}`)
	c := startOver(t, f, "ADMIN_TOKEN="+adminToken)
	c.signIn(t)
	events := c.listen(t, "parked:transfer")
	await(t, events, "the parked message", func(e event) bool { return strings.Contains(e.data, `"banking.dead-letters/k"`) })
	expectStatus(t, c.call(t, "DELETE", "/api/session", ""), http.StatusNoContent)
	await(t, events, "the end", func(e event) bool { return e.name == "end" })
	if _, open := <-events; open {
		t.Error("the stream goes on")
	}
}

// Fifty open pages cost the services what one does.
func TestFiftyPages(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.transfer.say("GET /transfers/summary", `{}`)
	c.transfer.say("GET /transfers", `{"items":[]}`)
	c.account.say("GET /accounts", `{"items":[]}`)
	c.management.say("GET /api/queues/banking", `[]`)
	began := time.Now()
	for range 50 {
		await(t, c.listen(t, "summary,transfers,accounts,queues"), "a state", func(e event) bool { return e.name == "state" })
	}
	second := c.listen(t, "summary")
	await(t, second, "a beat", func(e event) bool { return e.name == "beat" })
	took := time.Since(began)
	const quick = 75 * time.Millisecond // how often is asked in the first seconds, for one page as for all
	for _, name := range []string{"GET /transfers", "GET /transfers/summary"} {
		if n, most := c.transfer.count(name), int(took/quick)+2; n > most {
			t.Errorf("%s was asked %d times in %s by 51 pages, want at most %d", name, n, took, most)
		}
	}
	if n, most := c.management.total(), int(took/time.Second)+2; n > most {
		t.Errorf("the broker was asked %d times in %s, want at most %d", n, took, most)
	}
}

// The stop does not wait for pages: their streams end.
func TestStopEndsStreams(t *testing.T) {
	t.Parallel()
	var events <-chan event
	t.Run("console", func(t *testing.T) {
		c := startConsole(t)
		c.account.say("GET /ledger", `{"ok":true,"currencies":[]}`)
		request, err := http.NewRequest("GET", c.url+"/events?topics=ledger", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan event)
		events = ended
		go func() {
			defer close(ended)
			defer func() { _ = response.Body.Close() }()
			lines := bufio.NewScanner(response.Body)
			for lines.Scan() {
			}
		}()
	}) // its clean-up stops the console, and fails the test when that is not clean
	for range events {
	}
}
