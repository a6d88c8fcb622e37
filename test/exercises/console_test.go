package exercises

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"

	"example.com/banking/exercises"
)

// consolePage is what a browser does with the console, without one.
type consolePage struct {
	b      *bank
	url    string
	client *http.Client
	states chan watched
	parts  map[string]json.RawMessage // of the topic that is watched
}

// watched is what the console tells of a topic.
type watched struct {
	Keys  []string                   `json:"keys"`
	Parts map[string]json.RawMessage `json:"parts"`
}

// expectConsole runs exercise 1 from the console, looks at what it has parked, has it put back, and stops a second run in the middle.
func (b *bank) expectConsole() {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	p := &consolePage{b: b, url: b.endpoint("CONSOLE_URL"), client: &http.Client{Jar: jar}}
	p.order("/api/exercises/1/run", http.StatusUnauthorized, "")
	p.order("/api/session", http.StatusNoContent, fmt.Sprintf(`{"token":%q,"operator":"Grace"}`, b.endpoint("ADMIN_TOKEN")))
	p.watch("exercise:1")
	p.order("/api/exercises/1/run", http.StatusNoContent, "")
	p.order("/api/exercises/2/run", http.StatusConflict, "")
	p.await("looking")
	var parked struct {
		Items []struct{ Key, Reason string }
	}
	p.get("/api/parked/transfer", &parked)
	where := ""
	for _, e := range p.events() {
		where += e.Where + "\n"
	}
	if len(parked.Items) != 1 || parked.Items[0].Reason != "MAX_ATTEMPTS" || !strings.Contains(where, "bank parked show "+parked.Items[0].Key+" ") {
		b.t.Errorf("parked: %+v; told where:\n%s", parked.Items, where)
	}
	p.order("/api/exercises/1/continue", http.StatusNoContent, "")
	p.await("passed")
	checks := map[exercises.Proof]int{}
	for _, e := range p.events() {
		if e.Kind == exercises.Checked && *e.OK {
			checks[e.Proves]++
		}
	}
	if checks[exercises.TheFault] == 0 || checks[exercises.TheRecovery] == 0 || checks[exercises.TheInvariants] != 1 {
		b.t.Errorf("passed with the checks %v\n%s", checks, told(p.events()))
	}
	if p.get("/api/parked/transfer", &parked); len(parked.Items) != 0 {
		b.t.Errorf("left in quarantine: %+v", parked.Items)
	}

	p.order("/api/exercises/1/run", http.StatusNoContent, "")
	p.await("running")
	p.order("/api/exercises/1/stop", http.StatusNoContent, "")
	p.await("stopped")
}

func (p *consolePage) order(path string, wanted int, body string) {
	p.b.t.Helper()
	response, err := p.client.Post(p.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		p.b.t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != wanted {
		p.b.t.Fatalf("POST %s: %s, want %d", path, response.Status, wanted)
	}
}

func (p *consolePage) get(path string, into any) {
	p.b.t.Helper()
	response, err := p.client.Get(p.url + path)
	if err == nil {
		err = json.NewDecoder(response.Body).Decode(into)
		_ = response.Body.Close()
	}
	if err != nil {
		p.b.t.Fatalf("GET %s: %v", path, err)
	}
}

// watch looks at a topic until the test ends.
func (p *consolePage) watch(topic string) {
	p.b.t.Helper()
	response, err := p.client.Get(p.url + "/events?topics=" + topic)
	if err != nil {
		p.b.t.Fatal(err)
	}
	p.b.t.Cleanup(func() { _ = response.Body.Close() })
	p.states, p.parts = make(chan watched, 1000), map[string]json.RawMessage{}
	go func() {
		defer close(p.states)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var w watched
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &w) == nil {
				p.states <- w
			}
		}
	}()
}

// await takes in what is told until the run is in a state.
func (p *consolePage) await(state string) {
	p.b.t.Helper()
	late := time.NewTimer(2 * time.Minute)
	defer late.Stop()
	for !strings.Contains(string(p.parts["run"]), `"state":"`+state+`"`) {
		select {
		case w, open := <-p.states:
			if !open {
				p.b.t.Fatalf("the stream has ended before the run was %s", state)
			}
			for key, value := range w.Parts {
				p.parts[key] = value
			}
			if w.Keys == nil {
				continue
			}
			kept := map[string]json.RawMessage{}
			for _, key := range w.Keys {
				kept[key] = p.parts[key]
			}
			p.parts = kept
		case <-late.C:
			p.b.t.Fatalf("the run is not %s: %s\n%s", state, p.parts["run"], told(p.events()))
		}
	}
}

// events are what the run has told so far, in order.
func (p *consolePage) events() (events []exercises.Event) {
	for n := 0; ; n++ {
		part, there := p.parts[fmt.Sprint(n)]
		var e exercises.Event
		if !there || json.Unmarshal(part, &e) != nil {
			return events
		}
		events = append(events, e)
	}
}
