package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// What fails comes up as a banner; the message is looked into, replayed, and absorbed.
func TestFromPoisonToReplay(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	p := c.openTab(t, wide, "")
	p.says("Nothing needs anybody.")
	c.park(parked("banking.dead-letters", "poison-1", "MAX_ATTEMPTS", "NOT_FOUND"))
	p.says("1 message in banking.dead-letters")
	p.click("Look")
	p.signIn()
	p.says(`there is no transfer "not-a-real-id"`)
	c.transfer.say("POST /admin/quarantine/replay", runOf(document{"forecast": "DUPLICATE", "outcome": "WOULD_REPLAY"}))
	p.click("poison-1")
	p.says("will be absorbed as a duplicate")
	p.click("Replay…")
	p.says("What would happen")
	if _, body := c.transfer.request(t, "POST /admin/quarantine/replay"); strings.Contains(body, "confirm") {
		t.Errorf("the preview was not a dry run: %s", body)
	}
	p.until("the replay can be ordered", "[...document.querySelectorAll('dialog button')].some((b) => b.innerText === 'Replay 1 message' && !b.disabled)")
	c.transfer.on("POST /admin/quarantine/replay", func(w http.ResponseWriter, _ *http.Request) {
		c.management.say("GET /api/queues/banking", queuesOf(nil))
		c.transfer.say("GET /admin/quarantine", items())
		c.transfer.refuse("GET /admin/quarantine/banking.dead-letters/poison-1", http.StatusNotFound, "There is no message of this name in the queue.")
		w.Header().Set("Content-Type", "application/json")
		writeJSON(w, runOf(document{"outcome": "REPLAYED"}))
	})
	p.click("Replay 1 message")
	p.says("1 message replayed.")
	p.says("This message is no longer parked")
	request, body := c.transfer.request(t, "POST /admin/quarantine/replay")
	if !strings.Contains(body, `"confirm":true`) || !strings.Contains(body, `"ids":["poison-1"]`) || request.Header.Get("X-Operator") != "Grace (console)" {
		t.Errorf("ordered %s by %s", body, request.Header.Get("X-Operator"))
	}
	p.click("Overview")
	p.says("Nothing needs anybody.")
}

// Of many parked messages the first are shown at once, and all of them soon.
func TestManyParkedMessages(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	var all []any
	for i := range 300 {
		all = append(all, parked("banking.dead-letters", fmt.Sprintf("poison-%d", i), "MAX_ATTEMPTS", "NOT_FOUND"))
	}
	c.transfer.say("GET /admin/quarantine", items(all...))
	c.management.say("GET /api/queues/banking", queuesOf(map[string]int{"banking.dead-letters": 300}))
	p := c.openTab(t, wide, "#/parked")
	p.eval("window.first = 0; new MutationObserver(() => { window.first ||= document.querySelectorAll('.parked tbody tr').length; }).observe(document.body, { childList: true, subtree: true })", nil)
	p.signIn()
	p.until("all are shown", "document.querySelectorAll('.parked tbody tr').length === 300")
	var first int
	p.eval("window.first", &first)
	if first == 0 || first == 300 {
		t.Errorf("%d came at once", first)
	}
	p.says("Replay these 300…")
}

func TestADiscardNeedsAReason(t *testing.T) {
	t.Parallel()
	c := startLifelike(t)
	c.park(parked("banking.dead-letters", "poison-1", "MAX_ATTEMPTS", "NOT_FOUND"))
	c.transfer.say("POST /admin/quarantine/discard", runOf(document{"outcome": "WOULD_DISCARD"}))
	p := c.openTab(t, wide, "#/parked")
	p.signIn()
	p.click("Discard it…")
	p.says("will be thrown away")
	p.click("Discard 1 message")
	p.says("Say why they may be thrown away.")
	if _, body := c.transfer.request(t, "POST /admin/quarantine/discard"); strings.Contains(body, "confirm") {
		t.Errorf("discarded without a reason: %s", body)
	}
	c.transfer.say("POST /admin/quarantine/discard", runOf(document{"outcome": "DISCARDED"}))
	p.fill("Because", "it never was one")
	p.click("Discard 1 message")
	p.says("1 message discarded.")
	if _, body := c.transfer.request(t, "POST /admin/quarantine/discard"); !strings.Contains(body, `"because":"it never was one"`) || !strings.Contains(body, `"confirm":true`) {
		t.Errorf("ordered %s", body)
	}
}
