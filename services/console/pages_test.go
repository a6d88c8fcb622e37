package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Every page can be read and used at every size, light and dark.
func TestEveryPageAtEverySize(t *testing.T) {
	t.Parallel()
	pages := []struct{ path, says string }{
		{"#/", "Every cent is accounted for"},
		{"#/transfers", "New transfer"},
		{"#/transfers/" + transfer, "Ended after 40 ms"},
		{"#/accounts", "In all: 1,500.00 EUR"},
		{"#/accounts/" + alice, "Opening balance"},
		{"#/parked", "Max attempts"},
		{"#/parked/message/banking.dead-letters/poison-1", "will fail again: unknown transfer"},
		{"#/parked/audit", "Because it was wrong"},
		{"#/exercises", "The broker restarts mid-traffic"},
		{"#/interview", "How do you prove that money is conserved?"},
		{"#/interview/7", "You write to a database and publish to a broker. What can go wrong?"},
		{"#/exercises/13", "docker compose run --rm bank exercise run 13"},
	}
	for _, how := range []look{{1280, 900, false, false}, {1280, 900, true, false}, {400, 800, false, true}, {400, 800, true, true}} {
		t.Run(fmt.Sprintf("%d dark %t", how.width, how.dark), func(t *testing.T) {
			t.Parallel()
			c := startLifelike(t)
			c.park(parked("banking.dead-letters", "poison-1", "MAX_ATTEMPTS", "NOT_FOUND"))
			c.transfer.say("POST /admin/quarantine/replay", runOf(document{"forecast": "UNKNOWN_TRANSFER", "outcome": "WOULD_REPLAY"}))
			c.transfer.say("GET /admin/quarantine/audit", items(document{"id": 1, "action": "DISCARD", "outcome": "DONE", "queue": "banking.dead-letters", "key": "poison-0",
				"operator": "Grace (console)", "because": "Because it was wrong", "target": "", "detail": "", "startedAt": "2026-11-30T10:00:00Z"}))
			p := c.openTab(t, how, "#/parked")
			p.says("Sign in to look inside")
			p.check("#/parked, locked")
			p.keep("locked", how)
			p.signIn()
			for _, page := range pages {
				p.eval(fmt.Sprintf("location.hash = %q", page.path), nil)
				p.says(page.says)
				p.until("the page's tab is in view", `((row, tab) => tab.left >= row.left - 1 && tab.right <= row.right + 1 && tab.left >= 0 && tab.right <= innerWidth)(
					document.querySelector("#nav").getBoundingClientRect(), document.querySelector("#nav [aria-current]").getBoundingClientRect())`)
				p.check(page.path)
				p.keep(page.path, how)
			}
		})
	}
}

// The page stands there before it is known who is signed in: that matters to few of its parts.
func TestTheFirstPageDoesNotWaitForTheSession(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	f := newFront(t)
	f.to(c.url)
	f.m.Lock()
	through := f.next
	known := make(chan struct{})
	f.next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/session" {
			select {
			case <-known:
			case <-r.Context().Done():
				return
			}
		}
		through.ServeHTTP(w, r)
	})
	f.m.Unlock()
	c.url = f.URL
	p := c.openTab(t, wide, "")
	p.says("Every cent is accounted for")
	close(known)
	p.click("Parked")
	p.signIn()
}

// runOf is the answer to an order of one message.
func runOf(item document) document {
	whole := parked("banking.dead-letters", "poison-1", "MAX_ATTEMPTS", "NOT_FOUND")
	for name, value := range map[string]any{"detail": "", "target": "transfer.account-events", "forecast": "", "canary": false} {
		whole[name] = value
	}
	for name, value := range item {
		whole[name] = value
	}
	done := 1
	if whole["outcome"] == "REFUSED" {
		done = 0
	}
	return document{"items": []any{whole}, "dryRun": strings.HasPrefix(whole["outcome"].(string), "WOULD"), "run": nil, "matched": 1, "done": done, "refused": 1 - done, "failed": 0, "missing": []any{}}
}

// A transfer is made and watched to its end without a mouse, and without loading the page again.
func TestATransferByKeyboard(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	c.transfer.say("GET /transfers", items())
	c.transfer.say("GET /transfers/"+transfer, aTransfer("REQUESTED", "REQUESTED"))
	c.transfer.on("POST /transfers", func(w http.ResponseWriter, _ *http.Request) {
		c.transfer.say("GET /transfers", items(aTransfer("REQUESTED", "REQUESTED")))
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"id":%q,"status":"REQUESTED","amountMinor":2500}`, transfer)
	})
	p := c.openTab(t, wide, "")
	p.says("Every cent is accounted for")
	p.eval("window.loaded = true", nil)
	p.tabTo("Transfers")
	p.press(kb.Enter)
	p.says("No money has moved yet.")
	p.says("In EUR; 975.00 are there.")
	p.tabTo("Amount")
	p.press("12,50")
	p.says("Write an amount such as 25")
	p.press(kb.Backspace, kb.Backspace, kb.Backspace, kb.Backspace, kb.Backspace, "25.00")
	p.says("2500 minor units of EUR")
	p.tabTo("Reference")
	p.press("lunch", kb.Enter)
	p.says("Waiting for account to debit")
	request, body := c.transfer.request(t, "POST /transfers")
	if want := fmt.Sprintf(`{"sourceAccountId":%q,"destinationAccountId":%q,"currency":"EUR","reference":"lunch","amountMinor":2500}`, alice, bob); body != want {
		t.Errorf("sent %s, want %s", body, want)
	}
	if request.Header.Get("Idempotency-Key") == "" {
		t.Error("sent without an Idempotency-Key")
	}

	c.transfer.say("GET /transfers/"+transfer, aTransfer("DEBITED", "REQUESTED", "DEBITED"))
	p.says("Waiting for account to credit")
	c.transfer.say("GET /transfers/"+transfer, aTransfer("COMPLETED", "REQUESTED", "DEBITED", "CREDITED"))
	p.says("Ended after 40 ms")
	p.until("it is the page that was loaded", "window.loaded")
}

// A transfer's life is one timeline of what both services tell, attempts, waits, parking and replay among it.
func TestALifeOverBothServices(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	event := func(second int, kind string, more document) document {
		e := document{"at": fmt.Sprintf("2026-11-30T10:00:%02dZ", second), "kind": kind}
		for name, value := range more {
			e[name] = value
		}
		return e
	}
	c.transfer.say("GET /transfers/"+transfer+"/life", document{"transferId": transfer, "service": "transfer", "events": []document{
		event(0, "ACCEPTED", nil),
		event(0, "SENT", document{"type": "Transfers.Transfer.Requested", "messageId": "m1"}),
		event(2, "FAILED", document{"attempt": 1, "class": "TIMEOUT", "detail": "the database is away", "queue": "transfer.account-events"}),
		event(2, "WAITING", document{"nextDelayMs": 5000}),
		event(12, "PARKED", document{"reason": "MAX_ATTEMPTS", "queue": "banking.dead-letters"}),
		event(40, "REPLAYED", document{"by": "Grace (console)"}),
		event(41, "HANDLED", document{"type": "Accounts.Account.Debited", "attempt": 2}),
		event(41, "FACT", document{"detail": "DEBITED"}),
	}})
	c.account.say("GET /legs/"+transfer+"/life", document{"transferId": transfer, "service": "account", "events": []document{
		event(1, "POSTED", document{"amountMinor": -2500, "accountId": alice}),
	}})
	p := c.openTab(t, wide, "#/transfers/"+transfer)
	p.says("Posted −25.00 for Alice")
	p.says("Replayed by Grace (console)")
	var steps []string
	p.eval("[...document.querySelectorAll('.life-step')].map((s) => s.querySelector('.life-text').innerText + ' / ' + s.querySelector('.life-service').innerText + ' / ' + (s.querySelector('.life-since')?.innerText || ''))", &steps)
	want := []string{
		"Accepted / transfer / ", "Sent Requested / transfer / +0 ms", "Posted −25.00 for Alice / account / +1 s", "Failed, attempt 1: timeout / transfer / +2 s",
		"Waits 5 s before the next attempt / transfer / +2 s", "Given up, and parked / transfer / +12 s", "Replayed by Grace (console) / transfer / +40 s",
		"Handled Debited, attempt 2 / transfer / +41 s", "Debited / transfer / +41 s",
	}
	if got := strings.Join(steps, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the life is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}

	// While a transfer is under way another event of the same moment can come into a place: it brings its message along. Ids begin with
	// their time, so it is the end that tells them apart.
	c.account.say("GET /legs/"+transfer+"/life", document{"transferId": transfer, "service": "account", "events": []document{
		event(1, "SENT", document{"type": "Accounts.Account.Debited", "messageId": "01a22f7f-6fc6-81b6-b74b-7603156c310b"}),
	}})
	p.says("Sent Debited account message …156c310b")
	p.says("Accepted transfer 25.00 EUR from Alice to Bob")
	p.check("a life")
}

// The same key again is the same transfer; with another body it is refused, in the service's words.
func TestTheSameKeyAgain(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	keys := make(chan string, 2)
	c.transfer.on("POST /transfers", func(w http.ResponseWriter, r *http.Request) {
		keys <- r.Header.Get("Idempotency-Key")
		w.Header().Set("Content-Type", "application/json")
		if len(keys) == 2 {
			w.Header().Set("Idempotency-Replayed", "true")
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprintf(w, `{"id":%q,"status":"REQUESTED","amountMinor":100}`, transfer)
	})
	p := c.openTab(t, wide, "#/transfers")
	p.says("In EUR; 975.00 are there.")
	p.fill("Amount", "1")
	p.eval("document.querySelector('.key').open = true; document.getElementById('keep-key').click()", nil)
	p.click("Send")
	p.says("Ended after")
	p.click("New transfer")
	p.click("Send")
	p.says("The same answer as before")
	if first, second := <-keys, <-keys; first == "" || first != second {
		t.Errorf("sent with the keys %q and %q", first, second)
	}
	c.transfer.refuse("POST /transfers", http.StatusUnprocessableEntity, "This Idempotency-Key was used for another transfer.")
	p.fill("Amount", "2")
	p.click("Send")
	p.says("This Idempotency-Key was used for another transfer.")
}

// tabTo presses Tab until the control of that name has the focus, and sees that the focus can be seen.
func (p *tab) tabTo(name string) {
	p.Helper()
	for range 60 {
		p.press(kb.Tab)
		var at struct {
			Name    string
			Nothing bool // behind the last element and before the first the browser itself has the focus
			Visible bool
		}
		p.eval(`(() => { const e = document.activeElement, s = getComputedStyle(e);
			return { name: (e.labels?.[0]?.textContent || e.getAttribute('aria-label') || e.innerText || '').trim(), nothing: e === document.body, visible: s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 }; })()`, &at)
		if at.Nothing {
			continue
		}
		if !at.Visible {
			p.Errorf("that %q has the focus cannot be seen", at.Name)
		}
		if strings.HasPrefix(at.Name, name) {
			return
		}
	}
	p.Fatalf("%s cannot be reached with the Tab key", name)
}

// A service that stops is shown as such, with what was last known of it, and everything else goes on.
func TestAStoppedServiceIsShownAsSuch(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	p := c.openTab(t, wide, "")
	p.says("Nothing needs anybody.")
	c.account.Close()
	p.says("account does not answer since")
	p.until("the books are grey, and still there", "document.querySelector('.conservation.stale')?.innerText.includes('1,500.00')")
	p.until("the drawing says so", "document.querySelector('.node.account.away')")
	p.says("not known of account") // and not: both outboxes empty
	c.transfer.say("GET /transfers/summary", document{"REQUESTED": 7, "DEBITED": 0, "COMPLETED": 1, "REJECTED": 0, "REFUNDING": 0, "REFUNDED": 0})
	p.says("7 requested")
	c.management.say("GET /api/queues/banking", queuesOf(map[string]int{"account.transfer-requested": 7}))
	p.until("the broker's figures go on", "[...document.querySelectorAll('.node.queue .depth')].some((d) => d.textContent === '7')")
}

// Without account nobody can be chosen, and the form does not ask for it.
func TestAFormWithoutAccounts(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	c.account.Close()
	p := c.openTab(t, wide, "#/transfers")
	p.says("The accounts are not known: account does not answer.")
	p.fill("Amount", "25")
	p.click("Send")
	p.until("it says so again", `document.querySelector("form .problem").innerText === "The accounts are not known: account does not answer."`)
	p.until("the amount is not blamed", `!document.querySelector("form [aria-invalid]")`)
}

func TestWhatWouldPageSomebody(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	p := c.openTab(t, wide, "")
	p.says("Nothing needs anybody.")
	c.transfer.metrics(metricsText(2, 2, "transfer.account-events") + "# TYPE transfers_overdue gauge\ntransfers_overdue 2\n# TYPE outbox_oldest_age_seconds gauge\noutbox_oldest_age_seconds 95\n")
	c.account.metrics(strings.Replace(metricsText(2, 1, accountQueues...), "messaging_session_up 1", "messaging_session_up 0", 1))
	c.account.say("GET /ledger", document{"ok": false, "currencies": []document{{"currency": "EUR", "customersMinor": 150001, "inTransitMinor": 0, "fundingMinor": -150000, "sumMinor": 1}}})
	for _, text := range []string{
		"transfer.account-events: the breaker is open", "account.refund-requested: the breaker is half-open", "2 transfers are open past the timeout",
		"The outbox of transfer is not emptied", "account has lost the broker", "the books in EUR are off by 0.01", "Paused: the breaker is open",
	} {
		p.says(text)
	}
	p.check("with all that can be wrong")
}

// Whatever people, messages and errors call themselves is text, and runs nowhere.
func TestNothingThatIsShownIsEverRun(t *testing.T) {
	t.Parallel()
	const script = `<img src=x onerror="window.ran=1"><script>window.ran=1</script>`
	c := startLifelike(t)
	c.account.say("GET /accounts", items(account(alice, script, "OPEN", 1), account(bob, `"><svg onload=window.ran=1>`, "OPEN", 1)))
	c.account.say("GET /accounts/"+alice, account(alice, script, "OPEN", 1))
	made := aTransfer("REJECTED", "REQUESTED")
	made["reference"], made["reason"] = script, script
	c.transfer.say("GET /transfers", items(made))
	c.transfer.say("GET /transfers/"+transfer, made)
	message := parked("banking.dead-letters", "k", script, script)
	message["type"], message["error"], message["transferId"], message["messageId"] = script, script, script, script
	c.park(message)
	whole := document{"copies": 1, "headers": document{script: script}, "deaths": []any{document{"queue": script, "reason": script, "count": 1, "exchange": script, "routingKeys": []string{script}}},
		"properties": document{"type": script}, "body": document{"size": 9, "text": script}}
	for name, value := range message {
		whole[name] = value
	}
	c.transfer.say("GET /admin/quarantine/banking.dead-letters/k", whole)
	c.transfer.refuse("POST /admin/quarantine/replay", http.StatusBadRequest, script)
	c.transfer.say("GET /admin/quarantine/audit", items(document{"id": 1, "action": script, "outcome": script, "queue": script, "key": script, "operator": script, "because": script, "target": script, "detail": script, "startedAt": "x"}))
	c.transfer.refuse("POST /transfers", http.StatusBadRequest, script)
	c.management.say("GET /api/queues/banking", append(queuesOf(map[string]int{"banking.dead-letters": 1}), document{"name": script + "_error", "messages_ready": 1, "type": "quorum"}))

	p := c.openTab(t, wide, "#/parked")
	p.signIn()
	for _, path := range []string{"#/parked", "#/parked/message/banking.dead-letters/k", "#/parked/audit", "#/accounts/" + alice, "#/transfers/" + transfer, "#/", "#/transfers"} {
		p.eval(fmt.Sprintf("location.hash = %q", path), nil)
		p.says("<img src=x onerror=")
		p.until("no markup came of it", `!document.querySelector('img, main script, svg[onload], [onerror]')`)
	}
	p.fill("Amount", "1")
	p.press(kb.Enter)
	p.until("the refusal is shown", "document.querySelector('.problem').innerText.includes('<script>')")
	var ran bool
	p.eval("Boolean(window.ran)", &ran)
	if ran {
		t.Error("it was run")
	}
}

// Messages are seen to move; for who wants no movement, nothing moves.
func TestMessagesAreSeenToMove(t *testing.T) {
	t.Parallel()
	for _, still := range []bool{false, true} {
		t.Run(fmt.Sprintf("still %t", still), func(t *testing.T) {
			t.Parallel()
			c := startLifelike(t)
			p := c.openTab(t, look{width: 1280, height: 900, still: still}, "")
			p.says("Every cent is accounted for")
			p.eval("window.dots = 0; new MutationObserver((all) => { for (const m of all) window.dots += m.addedNodes.length; }).observe(document.querySelector('.dots'), { childList: true })", nil)
			c.transfer.metrics(metricsText(40, 0, "transfer.account-events"))
			p.until("a rate is shown", "[...document.querySelectorAll('.edge-rate')].some((e) => e.textContent.endsWith('/s'))")
			if still {
				var dots int
				p.eval("window.dots", &dots)
				if dots != 0 {
					t.Errorf("%d dots move", dots)
				}
				return
			}
			p.until("dots move", "window.dots > 0")
		})
	}
}

// A console that is gone is shown as such, and found again when it is back.
func TestAConsoleThatComesBack(t *testing.T) {
	t.Parallel()
	f := startLifelike(t).fakes
	front := newFront(t)
	first := startOver(t, f, "ADMIN_TOKEN="+adminToken)
	front.to(first.url)
	first.url = front.URL
	p := first.openTab(t, wide, "")
	p.says("Nothing needs anybody.")
	front.to("")
	p.says("The console does not answer since")
	second := startOver(t, f, "ADMIN_TOKEN="+adminToken)
	front.to(second.url)
	p.silent("The console does not answer since")
	p.says("Nothing needs anybody.")
}
