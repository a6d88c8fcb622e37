package exercises

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/banking/exercises"
	"example.com/banking/internal/control"
)

// expectOrders gives every order to a service, as people do by hand.
func (b *bank) expectOrders() {
	b.t.Helper()
	url := b.endpoint("ACCOUNT_URL")
	order := func(want control.State, args ...string) (p control.Process) {
		b.t.Helper()
		b.command(&p, append([]string{"service"}, args...)...)
		if p.State != want {
			b.t.Fatalf("bank service %s: %+v, want it %s", strings.Join(args, " "), p, want)
		}
		return p
	}
	refused := func(because string, args ...string) {
		b.t.Helper()
		if out, err := b.try(append([]string{"service"}, args...)...); err == nil || !strings.Contains(string(out), because) {
			b.t.Errorf("bank service %s: %v, %s; want it refused: %s", strings.Join(args, " "), err, out, because)
		}
	}
	order(control.Stopped, "stop", "account")
	if status := answer(url + "/readyz"); status != 0 {
		b.t.Errorf("a stopped service answers %d", status)
	}
	refused("nothing to kill", "kill", "account")
	refused("only what is running can be told to pause", "pause", "account")
	refused("the bank decides it", "start", "account", "--set", "DATABASE_URL=postgres://elsewhere")
	refused("capital letters", "start", "account", "--set", "path=/tmp")
	refused("ended before it was ready", "start", "account", "--set", "RETRY_INTERVALS=never")
	if p := order(control.Running, "restart", "account", "--set", "FAULTS=on"); p.Changed["FAULTS"] != "on" {
		b.t.Errorf("its settings: %v", p.Changed)
	}
	refused("nothing to start", "start", "account")
	if status := answer(url + "/readyz"); status != http.StatusOK { // a start is over when it is ready
		b.t.Errorf("a service that was started answers %d", status)
	}
	order(control.Paused, "pause", "account")
	order(control.Running, "resume", "account")
	before := order(control.Running, "restart", "account") // and what was changed is as usual again
	if !before.Usual() {
		b.t.Errorf("after a plain restart: %+v", before)
	}

	b.command(nil, "service", "kill", "account") // which the bank starts again by itself
	for deadline := time.Now().Add(time.Minute); ; {
		var all []control.Process
		b.command(&all, "service", "list")
		if all[0].Starts > before.Starts && answer(url+"/readyz") == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("a killed service does not come back: %+v", all[0])
		}
	}
	refused("no such process", "stop", "nobody")
	refused("only a service can be paused", "pause", "postgres")
	refused("only a service takes them", "restart", "postgres", "--set", "FAULTS=on")
	order(control.Running, "start", "postgres")
}

// expectStream runs an exercise as the console does, and refuses who has no token.
func (b *bank) expectStream() {
	b.t.Helper()
	url := b.endpoint("CONTROL_URL")
	for _, path := range []string{"/processes", "/exercises", "/exercises/5/run"} {
		if status := answer(url + path); status != http.StatusUnauthorized {
			b.t.Errorf("%s without the token: %d", path, status)
		}
	}
	var list struct {
		Items []struct{ Number int }
	}
	content := b.ask(http.MethodGet, url+"/exercises")
	if err := json.NewDecoder(content).Decode(&list); err != nil || len(list.Items) != len(exercises.All()) {
		b.t.Errorf("GET /exercises: %v, %d exercises", err, len(list.Items))
	}
	var page struct {
		Sections map[string]string
	}
	if err := json.NewDecoder(b.ask(http.MethodGet, url+"/exercises/5")).Decode(&page); err != nil || page.Sections["Why"] == "" {
		b.t.Errorf("GET /exercises/5: %v, %v", err, page)
	}
	var last exercises.Event
	lines := bufio.NewScanner(b.ask(http.MethodPost, url+"/exercises/5/run"))
	n := 0
	for ; lines.Scan(); n++ {
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			b.t.Errorf("line %d of the stream: %v", n+1, err)
		}
	}
	if last.Kind != exercises.Ended || !*last.OK || n < 10 {
		b.t.Errorf("%d events, the last %+v", n, last)
	}
}

// endpoint is an address of the bank.
func (b *bank) endpoint(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, "endpoints.env"))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key == name {
			return value
		}
	}
	b.t.Fatalf("%s is not among the bank's addresses", name)
	return ""
}

// ask makes a call with the admin token.
func (b *bank) ask(method, url string) io.Reader {
	b.t.Helper()
	request, err := http.NewRequest(method, url, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+b.endpoint("ADMIN_TOKEN"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		b.t.Errorf("%s %s: %s", method, url, response.Status)
	}
	return response.Body
}

// answer is the status of a GET, or 0 when nobody answers.
func answer(url string) int {
	response, err := http.Get(url)
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
