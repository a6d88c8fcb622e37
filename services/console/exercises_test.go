package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/banking/exercises"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"github.com/go-json-experiment/json"
)

// keeper is the keeper of a bank, as far as exercises go: it tells what a test has it tell.
type keeper struct {
	*fake
	told chan string   // lines of the run; closing it ends the answer
	left chan struct{} // gets one when the console has gone in the middle of a run
}

func newKeeper(t *testing.T) *keeper {
	t.Helper()
	k := &keeper{newFake(t), make(chan string), make(chan struct{}, 1)}
	for number := range 14 {
		run := fmt.Sprintf("POST /exercises/%d/", number)
		k.on(run+"run", func(w http.ResponseWriter, r *http.Request) {
			stream := http.NewResponseController(w)
			w.WriteHeader(http.StatusOK)
			_ = stream.Flush()
			for {
				select {
				case line, more := <-k.told:
					if !more {
						return
					}
					_, _ = io.WriteString(w, line+"\n")
					_ = stream.Flush()
				case <-r.Context().Done():
					k.left <- struct{}{}
					return
				}
			}
		})
		for _, order := range []string{"stop", "continue"} {
			k.on(run+order, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		}
	}
	return k
}

// tell tells one event of exercise 1.
func (k *keeper) tell(kind, text string, more document) {
	e := document{"at": time.Now().UTC(), "exercise": 1, "kind": kind, "text": text}
	for name, value := range more {
		e[name] = value
	}
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	k.told <- string(line)
}

func startExercising(t *testing.T) (*console, *keeper) {
	t.Helper()
	k := newKeeper(t)
	c := startConsole(t, "CONTROL_URL="+k.URL)
	c.signIn(t)
	return c, k
}

func TestExercisesAreShown(t *testing.T) {
	t.Parallel()
	c := startConsole(t) // without a keeper: they can be read all the same
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	list := c.call(t, "GET", "/api/exercises", "")
	if n := strings.Count(list.body, `"question"`); list.status != http.StatusOK || n != len(exercises.All()) || !strings.Contains(list.body, `"possible":false`) {
		t.Errorf("%d, %d exercises: %s", list.status, n, list.body)
	}
	for _, e := range exercises.All() {
		got := c.call(t, "GET", fmt.Sprintf("/api/exercises/%d", e.Number), "")
		if got.status != http.StatusOK || strings.Count(got.body, `"blocks":[{`) != 8 {
			t.Errorf("exercise %d: %d %.200s", e.Number, got.status, got.body)
		}
	}
	for _, number := range []string{"0", "14", "-1", "01", "one", "1e0"} {
		expectStatus(t, c.call(t, "GET", "/api/exercises/"+number, ""), http.StatusNotFound)
	}
}

// Who is not signed in, on another site, or only looking runs nothing.
func TestExercisesAreRunByWhoMay(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	c := startConsole(t, "CONTROL_URL="+k.URL)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	orders := []string{"/api/exercises/1/run", "/api/exercises/1/stop", "/api/exercises/1/continue"}
	for _, path := range orders {
		expectStatus(t, c.call(t, "POST", path, ""), http.StatusUnauthorized)
	}
	c.signIn(t)
	for _, path := range orders {
		expectStatus(t, c.call(t, "POST", path, "", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
		expectStatus(t, c.call(t, "POST", path, "", "Origin", "http://elsewhere.example"), http.StatusForbidden)
		expectStatus(t, c.call(t, "GET", path, ""), http.StatusMethodNotAllowed)
		expectStatus(t, c.call(t, "POST", strings.Replace(path, "/1/", "/14/", 1), ""), http.StatusNotFound)
	}
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/stop", ""), http.StatusConflict)
	if n := k.total(); n != 0 {
		t.Errorf("the keeper was asked %d times", n)
	}

	without := startConsole(t)
	without.client.Transport = openapitest.New(t, openAPI, without.client.Transport)
	without.signIn(t)
	if got := without.call(t, "POST", "/api/exercises/1/run", ""); got.status != http.StatusNotImplemented || !strings.Contains(got.body, "CONTROL_URL") {
		t.Errorf("without a keeper: %+v", got)
	}
}

// A run is told step by step to every page, also to one that comes later, and there is one at a time.
func TestARunIsToldToEveryPage(t *testing.T) {
	t.Parallel()
	c, k := startExercising(t)
	first := c.listen(t, "exercises,exercise:1")
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusNoContent)
	if request, _ := k.request(t, "POST /exercises/1/run"); request.Header.Get("Authorization") != "Bearer "+adminToken || request.URL.Query().Get("look") != lookAround.String() {
		t.Errorf("asked with %v %s", request.Header, request.URL)
	}
	k.tell("begun", "How often?", nil)
	k.tell("doing", "Publish it.", nil)
	await(t, first, "the step", func(e event) bool { return strings.Contains(e.data, `"text":"Publish it."`) })

	for _, path := range []string{"/api/exercises/1/run", "/api/exercises/2/run"} {
		if got := c.call(t, "POST", path, ""); got.status != http.StatusConflict || !strings.Contains(got.body, "An exercise is running already: number 1.") {
			t.Errorf("%s meanwhile: %+v", path, got)
		}
	}
	expectStatus(t, c.call(t, "POST", "/api/exercises/2/stop", ""), http.StatusConflict)

	other := c.listen(t, "exercises,exercise:1")
	await(t, other, "all of it on another page", func(e event) bool {
		return strings.Contains(e.data, `"state":"running"`) && strings.Contains(e.data, "How often?") && strings.Contains(e.data, "Publish it.")
	})
	k.tell("looking", "Look around.", nil)
	await(t, other, "the wait", func(e event) bool { return strings.Contains(e.data, `"state":"looking"`) })
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/continue", ""), http.StatusNoContent)
	await(t, other, "its end", func(e event) bool { return strings.Contains(e.data, `"state":"running"`) })
	k.tell("ended", "Exercise 1 passed.", document{"ok": true})
	close(k.told)
	await(t, first, "the verdict", func(e event) bool {
		return strings.Contains(e.data, `"state":"passed"`) && strings.Contains(e.data, `"endedAt"`)
	})
	if k.count("POST /exercises/1/continue") != 1 || k.count("POST /exercises/1/stop") != 0 {
		t.Error("the keeper got other orders than were given")
	}
}

func TestARunIsStopped(t *testing.T) {
	t.Parallel()
	c, k := startExercising(t)
	events := c.listen(t, "exercise:1")
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusNoContent)
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/stop", ""), http.StatusNoContent)
	await(t, events, "the stop", func(e event) bool { return strings.Contains(e.data, `"state":"stopping"`) })
	k.tell("reset", "The account is thawed.", nil) // it goes on to tell
	await(t, events, "what is put back", func(e event) bool { return strings.Contains(e.data, "thawed") })
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusConflict)
	k.tell("ended", "Exercise 1 has not passed: interrupted, and everything is put back", document{"ok": false, "reason": "INTERRUPTED"})
	close(k.told)
	await(t, events, "the end", func(e event) bool { return strings.Contains(e.data, `"state":"stopped"`) })
}

// What the keeper refuses, or that it is away, is answered in words, and nothing is left running.
func TestTheKeeperRefuses(t *testing.T) {
	t.Parallel()
	c, k := startExercising(t)
	plain := *c
	plain.client = &http.Client{Transport: c.client.Transport} // the document's checker reads an answer to its end
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	run := func() answer { return c.call(t, "POST", "/api/exercises/1/run", "") }
	k.refuse("POST /exercises/1/run", http.StatusConflict, "exercise 3 is running, or is putting things back")
	if got := run(); got.status != http.StatusConflict || !strings.Contains(got.body, "Exercise 3 is running, or is putting things back.") {
		t.Errorf("busy: %+v", got)
	}
	k.refuse("POST /exercises/1/run", http.StatusUnauthorized, "the admin token is missing or wrong")
	if got := run(); got.status != http.StatusBadGateway || !strings.Contains(got.body, "different ones") {
		t.Errorf("another token: %+v", got)
	}
	k.refuse("POST /exercises/1/run", http.StatusBadRequest, "no")
	expectStatus(t, run(), http.StatusBadGateway)
	k.Close()
	if got := run(); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "the bank's keeper does not answer") {
		t.Errorf("away: %+v", got)
	}
	await(t, plain.listen(t, "exercises"), "that nothing runs", func(e event) bool { return strings.Contains(e.data, `"keys":[]`) })
}

// A keeper that goes in the middle of a run is no end of it.
func TestTheKeeperGoes(t *testing.T) {
	t.Parallel()
	c, k := startExercising(t)
	events := c.listen(t, "exercise:1")
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusNoContent)
	k.tell("doing", "Publish it.", nil)
	k.told <- "no event"
	close(k.told)
	await(t, events, "the break", func(e event) bool { return strings.Contains(e.data, `"state":"broken"`) })
}

// What a run tells is kept within bounds, and its end always.
func TestARunThatTellsTooMuch(t *testing.T) {
	t.Parallel()
	c, k := startExercising(t)
	expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusNoContent)
	for range 1000 {
		k.tell("doing", strings.Repeat("x", 1000), nil)
	}
	k.tell("ended", "Exercise 1 passed.", document{"ok": true})
	close(k.told)
	all := await(t, c.listen(t, "exercise:1"), "the end", func(e event) bool { return strings.Contains(e.data, `"state":"passed"`) })
	if len(all.data) > 300<<10 || !strings.Contains(all.data, `"dropped":`) || !strings.Contains(all.data, `"kind":"ended"`) {
		t.Errorf("%d bytes are kept", len(all.data))
	}
}

// A console that stops breaks the run off, by which the keeper puts everything back; it waits for nothing else.
func TestTheConsoleStopsInTheMiddle(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	t.Run("console", func(t *testing.T) {
		c := startConsole(t, "CONTROL_URL="+k.URL)
		c.signIn(t)
		expectStatus(t, c.call(t, "POST", "/api/exercises/1/run", ""), http.StatusNoContent)
		k.tell("doing", "Publish it.", nil)
	}) // its clean-up stops the console
	select {
	case <-k.left:
	case <-time.After(20 * time.Second):
		t.Error("the keeper still runs it")
	}
}

func TestControlURL(t *testing.T) {
	t.Parallel()
	_, err := service.Load[config]([]string{"CONTROL_URL=127.0.0.1:1", "RABBITMQ_MANAGEMENT_URL=http://operator:x@localhost:15672"}, defaults)
	if err == nil || !strings.Contains(err.Error(), "CONTROL_URL") {
		t.Errorf("got %v", err)
	}
}
