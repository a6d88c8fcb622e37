package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
)

// What the console shows and does is what the real services and the real broker say: a transfer is watched from its request to its end
// on both sides, and a poison event on its laps, in the quarantine, and back there after a replay, until it is discarded.
func TestConsoleOverTheRealServices(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	b := newBank(t, env, 1, map[string]string{"ADMIN_TOKEN": "secret", "RETRY_DELAY": "100ms", "MAX_ATTEMPTS": "2"})
	customers := b.open(2, 1000)
	console := startReplica(t, "console", "console", map[string]string{
		"ADMIN_TOKEN": "secret", "ACCOUNT_URL": b.accounts[0].url, "TRANSFER_URL": b.transfers[0].url,
		"RABBITMQ_MANAGEMENT_URL": env.ManagementURL, "RABBITMQ_VHOST": env.VHost,
	})
	console.awaitReady()
	page := openPage(t, console.url)

	status, body := page.call(http.MethodPost, "/api/transfers", fmt.Sprintf(
		`{"sourceAccountId":%q,"destinationAccountId":%q,"amountMinor":25,"currency":"EUR"}`, customers[0], customers[1]))
	var made struct{ ID, AmountMinor string }
	if err := json.Unmarshal([]byte(body), &made); status != http.StatusAccepted || err != nil || made.AmountMinor != "25" {
		t.Fatalf("making a transfer: %d %s", status, body)
	}
	page.watch("queues", "topology", "metrics:account", "metrics:transfer", "ledger", "accounts", "transfers", "summary", "transfer:"+made.ID, "leg:"+made.ID, "account:"+customers[0])
	page.awaitPart("transfer:"+made.ID, "transfer", `"status":"COMPLETED"`)
	page.awaitPart("leg:"+made.ID, "leg", `"state":"CREDITED"`)
	page.awaitPart("transfers", made.ID, `"status":"COMPLETED"`)
	page.awaitPart("summary", "summary", `"COMPLETED":1`)
	page.awaitPart("accounts", customers[1], `"balanceMinor":"1025"`)
	page.awaitPart("account:"+customers[0], "entries", `"amountMinor":"-25"`)
	page.awaitPart("ledger", "ledger", `"customersMinor":"2000"`)
	page.awaitPart("queues", "banking.dead-letters", `"ready":0`)
	page.awaitPart("topology", "exchange/transfer.retry", `"headers"`)
	page.awaitPart("metrics:account", "messaging_breaker_state", `"account.refund-requested"`)
	page.awaitPart("metrics:transfer", "messaging_deliveries_total", `"outcome":"done","queue":"transfer.account-events"},"value":2`)

	if status, body = page.call(http.MethodPost, "/api/session", `{"token":"secret","operator":"Grace"}`); status != http.StatusNoContent {
		t.Fatalf("signing in: %d %s", status, body)
	}
	page.watch("queues", "parked:transfer", "parked:account")
	b.publishEvent("accounts.account.debited", `{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`)
	page.awaitPart("parked:transfer", "banking.dead-letters/poison-1", `"reason":"MAX_ATTEMPTS"`)
	page.awaitPart("queues", "banking.dead-letters", `"ready":1`)
	page.expect(http.MethodGet, "/api/parked/transfer/message/banking.dead-letters/poison-1", "", `not-a-real-id`)
	page.expect(http.MethodPost, "/api/parked/transfer/replay", `{"ids":["poison-1"]}`, `"forecast":"UNKNOWN_TRANSFER"`)
	page.expect(http.MethodPost, "/api/parked/transfer/replay", `{"ids":["poison-1"],"confirm":true}`, `"outcome":"REPLAYED"`)
	page.awaitPart("parked:transfer", "banking.dead-letters/poison-1", `"replayCount":1`)
	page.expect(http.MethodPost, "/api/parked/transfer/discard", `{"ids":["poison-1"],"because":"made up by a test","confirm":true}`, `"outcome":"DISCARDED"`)
	page.awaitGone("parked:transfer", "banking.dead-letters/poison-1")
	page.expect(http.MethodGet, "/api/parked/transfer/audit", "", `"operator":"Grace (console)"`)

	b.accounts[0].kill()
	page.watch("ledger", "transfers")
	page.awaitSilence("ledger")
	page.awaitPart("transfers", made.ID, `"status":"COMPLETED"`)
	if code := console.stop(); code != 0 {
		t.Errorf("the console ended with %d while a page was open", code)
	}
}

// publishEvent sends a raw message to the events exchange.
func (b *bank) publishEvent(key, body string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "body")
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if out, err := b.command("publish", "--key", key, "--body", file); err != nil {
		b.t.Fatalf("bank publish: %v\n%s", err, out)
	}
}

// page is what a browser does with the console, without one.
type page struct {
	t      *testing.T
	url    string
	client *http.Client
	states chan state
	topics map[string]*state
}

// state is what is known of a topic, or what has changed of it.
type state struct {
	Topic  string                     `json:"topic"`
	Keys   []string                   `json:"keys"`
	Parts  map[string]json.RawMessage `json:"parts"`
	Source *struct{ Silent bool }     `json:"source"`
}

func openPage(t *testing.T, url string) *page {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{t: t, url: url, client: &http.Client{Jar: jar, Transport: &http.Transport{}}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

func (p *page) call(method, path, body string) (int, string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// expect makes a call that succeeds with an answer that says something.
func (p *page) expect(method, path, body, says string) {
	p.t.Helper()
	if status, answer := p.call(method, path, body); status != http.StatusOK || !strings.Contains(answer, says) {
		p.t.Errorf("%s %s: %d, without %s: %s", method, path, status, says, answer)
	}
}

// watch looks at topics from now on, and forgets what was looked at before.
func (p *page) watch(topics ...string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.url+"/events?topics="+strings.Join(topics, ","), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		p.t.Fatalf("watching %v: %s", topics, response.Status)
	}
	states := make(chan state, 1000)
	p.states, p.topics = states, map[string]*state{}
	go func() {
		defer close(states)
		defer func() { _ = response.Body.Close() }()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
			var s state
			if ok && json.Unmarshal(data, &s) == nil && s.Topic != "" {
				states <- s
			}
		}
	}()
}

// await takes in what the console tells until what is wanted holds.
func (p *page) await(what, topic string, holds func(*state) bool) {
	p.t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	for p.topics[topic] == nil || !holds(p.topics[topic]) {
		select {
		case s, open := <-p.states:
			if !open {
				p.t.Fatalf("%s: the stream has ended", what)
			}
			p.take(s)
		case <-late.C:
			p.t.Fatalf("%s does not come; known of %s is %+v", what, topic, p.topics[topic])
		}
	}
}

func (p *page) take(s state) {
	known := p.topics[s.Topic]
	if known == nil {
		known = &state{Parts: map[string]json.RawMessage{}}
		p.topics[s.Topic] = known
	}
	for key, value := range s.Parts {
		known.Parts[key] = value
	}
	if s.Keys != nil {
		kept := map[string]json.RawMessage{}
		for _, key := range s.Keys {
			kept[key] = known.Parts[key]
		}
		known.Parts = kept
	}
	if s.Source != nil {
		known.Source = s.Source
	}
}

func (p *page) awaitPart(topic, key, says string) {
	p.t.Helper()
	p.await(topic+"/"+key+" with "+says, topic, func(s *state) bool { return bytes.Contains(s.Parts[key], []byte(says)) })
}

func (p *page) awaitGone(topic, key string) {
	p.t.Helper()
	p.await(topic+" without "+key, topic, func(s *state) bool { return s.Parts[key] == nil })
}

func (p *page) awaitSilence(topic string) {
	p.t.Helper()
	p.await("the silence of "+topic, topic, func(s *state) bool { return s.Source != nil && s.Source.Silent })
}
