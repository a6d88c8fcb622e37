package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
)

// parkedServices are stand-ins that answer admin calls of the quarantine; what they were asked is kept.
type parkedServices struct {
	dir   string
	asked []string
}

const parkedItem = `{"queue":%q,"key":%q,"messageId":%q,"type":"Accounts.Account.Debited","transferId":"t","reason":"MAX_ATTEMPTS","class":"NOT_FOUND",
"attempts":3,"error":"bad\u001b]0;pwned\u0007 \u202etxt","parkedAt":"2026-11-30T10:00:00Z","firstFailedAt":null,"originQueue":"transfer.account-events",
"originExchange":"banking.events","originRoutingKey":"accounts.account.debited","service":"transfer","replayCount":1%s}`

func item(queue, key, more string) string { return fmt.Sprintf(parkedItem, queue, key, key, more) }

// newParkedServices answers every call of a service with what is listed for its method and path.
func newParkedServices(t *testing.T, account, transfer map[string]string) *parkedServices {
	t.Helper()
	s := &parkedServices{dir: t.TempDir()}
	serve := func(answers map[string]string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			s.asked = append(s.asked, fmt.Sprintf("%s %s %s %s", r.Method, r.URL, r.Header.Get("Authorization"), body))
			answer, known := answers[r.Method+" "+r.URL.EscapedPath()]
			if !known {
				w.WriteHeader(http.StatusNotFound)
			}
			for _, status := range []int{http.StatusBadRequest, http.StatusServiceUnavailable} {
				if strings.Contains(answer, fmt.Sprintf(`"status":%d`, status)) {
					w.WriteHeader(status)
				}
			}
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	e := endpoints{AccountURL: serve(account), TransferURL: serve(transfer), AdminToken: "secret"}
	if err := e.save(s.dir); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *parkedServices) bank(t *testing.T, args ...string) (code int, out, complaints string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append([]string{"--dir", s.dir, "parked"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

const noItems = `{"items":[],"next":null,"depth":0,"missing":[]}`

func TestParkedListAndShow(t *testing.T) {
	t.Parallel()
	// What a show asks for, answered to a list as well: it has all that a list has.
	whole := item("banking.dead-letters", "a/b", `,"headers":{"x":"\u009b31m","n":{"deep":[1]}},"deaths":[{"queue":"q","reason":"rejected","count":2,
"firstAt":null,"exchange":"e","routingKeys":["k"]}],"properties":{"appId":"account"},"exchange":"","routingKey":"k","body":{"size":9,"text":"{\"a\":\"\u009b2J\u202e\"}"}`)
	bytes := item("banking.dead-letters", "c", `,"headers":{},"deaths":[],"properties":{},"exchange":"","routingKey":"","body":{"size":3,"base64":"/wAb"}`)
	s := newParkedServices(t, map[string]string{"GET /admin/quarantine": strings.Replace(noItems, "[]}", `["a,b","nobody"]}`, 1)}, map[string]string{
		"GET /admin/quarantine": `{"items":[` + whole + "\n," + bytes + `],"next":null,"depth":2,"missing":["nobody"]}`,
	})
	code, out, complaints := s.bank(t, "list", "--older-than", "90m", "--id", "a,b", "--class", "NOT_FOUND")
	if code != 0 || strings.Count(out, "\n") != 3 || !strings.Contains(out, "MAX_ATTEMPTS") || !strings.Contains(out, `bad\x1b]0;pwned\x07 \u202etxt`) {
		t.Errorf("exit code %d, %s\n%s", code, complaints, out)
	}
	if !strings.Contains(s.asked[1], "class=NOT_FOUND&id=a%2Cb&limit=100&olderThan=1h30m0s Bearer secret") {
		t.Errorf("asked were %q", s.asked)
	}
	var listed []parkedMessage
	if code, out, _ = s.bank(t, "list", "--json"); code != 0 || json.Unmarshal([]byte(out), &listed) != nil || len(listed) != 2 {
		t.Errorf("exit code %d, in JSON it is\n%s", code, out)
	}
	s.asked = nil
	code, out, complaints = s.bank(t, "show", "a/b")
	for _, wanted := range []string{"2 × rejected out of q", `x: \u009b31m`, `n: {"deep":[1]}`, "appId: account", `\u009b2J\u202e`, "the same, indented\n{\n"} {
		if !strings.Contains(out, wanted) {
			t.Errorf("%q is not in\n%s\n%s", wanted, out, complaints)
		}
	}
	if !strings.Contains(out, "ff 00 1b") { // the body of c, which the services list beside it
		t.Errorf("no dump of the bytes in\n%s", out)
	}
	if code != 0 || strings.ContainsAny(out, "\x1b\u009b\u202e\x07") {
		t.Errorf("exit code %d; shown to the terminal was %q", code, out)
	}
	if len(s.asked) != 2 || !strings.Contains(s.asked[1], "id=a%2Fb&limit=100&whole=true") {
		t.Errorf("asked were %q", s.asked)
	}
	for _, verb := range []string{"list", "show"} {
		if code, out, complaints = s.bank(t, verb, "--id", "a,b", "--id", "nobody"); code != 1 || !strings.HasSuffix(complaints, "not in quarantine: nobody\n") {
			t.Errorf("%s: exit code %d %q", verb, code, complaints)
		}
		if !strings.Contains(out, "a/b") || !strings.Contains(out, "MAX_ATTEMPTS") {
			t.Errorf("%s shows %s", verb, out)
		}
	}
}

func TestParkedRuns(t *testing.T) {
	t.Parallel()
	end := func(rest string) string {
		return `],"dryRun":false,"run":"6ba7b810-9dad-11d1-80b4-00c04fd430c8",` + rest + `}`
	}
	done := item("banking.dead-letters", "a", `,"outcome":"REPLAYED","detail":"","target":"queue transfer.account-events","forecast":"DUPLICATE","canary":false`)
	no := item("banking.dead-letters", "b", `,"outcome":"REFUSED","detail":"it has been replayed 3 times","target":"","forecast":"","canary":false`)
	nothing := `{"items":[` + end(`"matched":0,"done":0,"refused":0,"failed":0,"missing":["a"]`)
	for name, c := range map[string]struct {
		answer string
		args   []string
		code   int
		says   []string
	}{
		"done": {`{"items":[` + done + end(`"matched":1,"done":1,"refused":0,"failed":0,"missing":[]`), []string{"--id", "a", "--yes"}, 0,
			[]string{"replayed ", "→ queue transfer.account-events", "absorbed as a duplicate", "1 replayed", "parked audit --run 6ba7"}},
		"dry": {`{"items":[` + strings.Replace(done, "REPLAYED", "WOULD_REPLAY", 1) + end(`"matched":1,"done":1,"refused":0,"failed":0,"missing":[]`), nil, 0,
			[]string{"would replay", "nothing was changed: 1 would be replayed. There is no filter, so this is about every message. The same command with --yes does it."}},
		"dry, narrow": {`{"items":[` + strings.Replace(done, "REPLAYED", "WOULD_REPLAY", 1) + end(`"matched":1,"done":1,"refused":0,"failed":0,"missing":[]`), []string{"--id", "a"}, 0,
			[]string{"nothing was changed: 1 would be replayed. The same command with --yes does it."}},
		"refused": {`{"items":[` + done + "," + no + end(`"matched":2,"done":1,"refused":1,"failed":0,"missing":[]`), []string{"--class", "NOT_FOUND", "--yes"}, 1,
			[]string{"refused", "it has been replayed 3 times", "1 refused, 0 failed"}},
		"missing": {nothing, []string{"--id", "a", "--yes"}, 1, []string{"not in quarantine: a"}},
		"nothing": {strings.Replace(nothing, `"a"`, "", 1), []string{"--yes"}, 0, []string{"nothing in quarantine matches"}},
		"stopped": {`{"items":[` + done + end(`"matched":1,"done":1,"refused":0,"failed":0,"missing":[],"stopped":"the canary came back"`), []string{"--class", "NOT_FOUND", "--yes"}, 1, []string{"transfer has stopped early: the canary came back"}},
		"broken off": {`{"items":[` + done + "," + no, []string{"--class", "NOT_FOUND", "--yes"}, 1, []string{"replayed", "breaks off", "1 refused, 0 failed",
			"account: nothing in quarantine matches", "transfer: 1 replayed, as far as is known"}},
		"broken off, dry":    {`{"items":[` + strings.Replace(done, "REPLAYED", "WOULD_REPLAY", 1), nil, 1, []string{"transfer: 1 would be replayed, as far as is known", "nothing was changed"}},
		"broken off at once": {`{"items":[`, []string{"--yes"}, 1, []string{"transfer: 0 replayed, as far as is known", "bank parked audit has the rest"}},
		"not willing":        {`{"title":"Unavailable","status":503}`, []string{"--yes"}, 1, []string{"account: nothing in quarantine matches", "transfer: it refused, nothing was replayed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newParkedServices(t, map[string]string{"POST /admin/quarantine/replay": nothing}, map[string]string{"POST /admin/quarantine/replay": c.answer})
			code, out, complaints := s.bank(t, append([]string{"replay", "--canary", "1", "--rate", "10"}, c.args...)...)
			for _, wanted := range c.says {
				if !strings.Contains(out+complaints, wanted) {
					t.Errorf("%q is not in\n%s\n%s", wanted, out, complaints)
				}
			}
			if code != c.code {
				t.Errorf("exit code %d, want %d\n%s\n%s", code, c.code, out, complaints)
			}
			asked := s.asked[len(s.asked)-1]
			if confirm := fmt.Sprintf(`"confirm":%v`, strings.Contains(strings.Join(c.args, " "), "--yes")); !strings.Contains(asked, confirm) || !strings.Contains(asked, `"canary":1`) {
				t.Errorf("asked was %s", asked)
			}
			s.bank(t, append([]string{"replay", "--json"}, c.args...)...)
		})
	}
}

// A sum over the services that answered is none of them all.
func TestParkedRunTellsOfServicesThatDidNotAnswer(t *testing.T) {
	t.Parallel()
	const path = "POST /admin/quarantine/replay"
	ended := func(items string, matched int, rest string) string {
		return fmt.Sprintf(`{"items":[%s],"dryRun":false,"run":null,"matched":%d,"done":%d,"refused":0,"failed":0,"missing":[]%s}`, items, matched, matched, rest)
	}
	moved := item("transfer.x_error", "a", `,"outcome":"REPLAYED","detail":"","target":"queue q","forecast":"","canary":false`)
	for name, c := range map[string]struct {
		account, transfer string
		args              []string
		says, not         string
		code              int
	}{
		"the first away":        {"", ended("", 0, ""), nil, "account: it refused, nothing was replayed\ntransfer: nothing in quarantine matches\n", "\nnothing in quarantine", 1},
		"the first stopped":     {ended(moved, 1, `,"stopped":"the canary came back"`), "", nil, "account: 1 replayed, then it stopped early\ntransfer: not asked, another service has stopped early\n", "\n1 replayed", 1},
		"the limit was reached": {ended(moved, 1, ""), "", []string{"--limit", "1"}, "\n1 replayed\n", "transfer:", 0},
	} {
		s := newParkedServices(t, map[string]string{path: c.account}, map[string]string{path: c.transfer})
		if c.account == "" {
			s = newParkedServices(t, nil, map[string]string{path: c.transfer})
		}
		code, out, complaints := s.bank(t, append([]string{"replay", "--yes"}, c.args...)...)
		if code != c.code || !strings.Contains(out, c.says) || strings.Contains(out, c.not) {
			t.Errorf("%s: exit code %d, want %d\n%s\n%s", name, code, c.code, out, complaints)
		}
		var document struct {
			Services []parkedAnswer `json:"services"`
		}
		_, out, _ = s.bank(t, append([]string{"replay", "--yes", "--json"}, c.args...)...)
		if err := json.Unmarshal([]byte(out), &document); err != nil || len(document.Services) != 2 {
			t.Errorf("%s: in JSON it is %s", name, out)
		}
	}
}

// What the first service failed with is told also when the next refuses the call.
func TestParkedTellsAFailureBesideARefusal(t *testing.T) {
	t.Parallel()
	away := `{"status":503,"title":"Service Unavailable","detail":"the broker is away"}`
	wrong := `{"status":400,"title":"Bad Request","errors":[{"field":"olderThan","message":"must be a duration"}]}`
	s := newParkedServices(t, map[string]string{"GET /admin/quarantine": away}, map[string]string{"GET /admin/quarantine": wrong})
	code, _, complaints := s.bank(t, "list")
	if code != 1 || !strings.Contains(complaints, "the broker is away") || !strings.Contains(complaints, "must be a duration") {
		t.Errorf("exit code %d, %q", code, complaints)
	}
}

func TestParkedRefusals(t *testing.T) {
	t.Parallel()
	stranger := `{"status":400,"title":"Bad Request","errors":[{"field":"queue","message":"is not a quarantine queue of this service"}]}`
	s := newParkedServices(t, map[string]string{"GET /admin/quarantine": stranger}, map[string]string{"GET /admin/quarantine": noItems})
	if code, out, complaints := s.bank(t, "list", "--queue", "banking.dead-letters"); code != 0 || !strings.Contains(out, "nothing in quarantine matches") {
		t.Errorf("a queue of one service only: %d %s %s", code, out, complaints)
	}
	if code, _, complaints := s.bank(t, "list", "--id", "a"); code != 1 || strings.Count(complaints, "Bad Request") != 1 {
		t.Errorf("a refusal is exit code %d: %s", code, complaints)
	}
	s = newParkedServices(t, map[string]string{"GET /admin/quarantine": stranger}, map[string]string{"GET /admin/quarantine": stranger})
	if code, _, complaints := s.bank(t, "list", "--queue", "nowhere"); code != 1 || !strings.Contains(complaints, `no service has a quarantine queue "nowhere"`) {
		t.Errorf("a queue of nobody is exit code %d: %s", code, complaints)
	}
	s.asked = nil
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"discard", "--queue", "", "--because", "x", "--yes"}, "--queue: must not be empty"},
		{[]string{"discard", "--type=", "--because", "x"}, "--type: must not be empty"},
		{[]string{"replay", "--id", "", "--yes"}, "--id: must not be empty"},
		{[]string{"replay", "--reason", " "}, "--reason: must not be empty"},
		{[]string{"list", "--class", ""}, "--class: must not be empty"},
		{[]string{"list", "--older-than", ""}, "--older-than"},
		{[]string{"show", ""}, "must not be empty"},
		{[]string{"audit", "--id", ""}, "--id: must not be empty"},
		{[]string{"audit", "--run", ""}, "--run: must not be empty"},
		{[]string{"discard", "--id", "a", "--because", " "}, "--because must not be empty"},
	} {
		if code, _, complaints := s.bank(t, c.args...); code != 2 || !strings.Contains(complaints, c.says) {
			t.Errorf("%q: exit code %d: %s, want %q", c.args, code, complaints, c.says)
		}
	}
	if s.asked != nil {
		t.Errorf("asked were %q", s.asked)
	}
	if code, _, complaints := s.bank(t, "discard", "--yes"); code != 2 || !strings.Contains(complaints, "--because") {
		t.Errorf("a discard without a reason is exit code %d: %s", code, complaints)
	}
	nothing := map[string]string{"GET /admin/quarantine/audit": `{"items":[],"next":null}`,
		"POST /admin/quarantine/discard": `{"items":[],"dryRun":false,"run":null,"matched":0,"done":0,"refused":0,"failed":0,"missing":[],"all":true}`}
	s = newParkedServices(t, nothing, nothing)
	if code, _, complaints := s.bank(t, "audit", "--id", "nobody"); code != 1 || !strings.Contains(complaints, "the audit has nothing of nobody") {
		t.Errorf("an audit of nothing is exit code %d: %s", code, complaints)
	}
	if code, out, complaints := s.bank(t, "audit"); code != 0 {
		t.Errorf("an empty audit is exit code %d: %s%s", code, out, complaints)
	}
	if code, _, complaints := s.bank(t, "discard", "--because", "x", "--yes"); code != 0 || !strings.Contains(s.asked[len(s.asked)-1], `"confirm":true`) {
		t.Errorf("everything discarded is exit code %d: %s, asked were %q", code, complaints, s.asked)
	}
	if code, _, complaints := s.bank(t, "audit", "nonsense"); code != 1 || !strings.Contains(complaints, "account/12") {
		t.Errorf("a wrong entry is exit code %d: %s", code, complaints)
	}
}
