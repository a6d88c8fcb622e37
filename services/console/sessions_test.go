package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

func TestWhoIsNotSignedInMayNotAdminister(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	for _, call := range []string{
		"GET /api/parked/transfer", "GET /api/parked/account/message/banking.dead-letters/x", "POST /api/parked/transfer/replay",
		"POST /api/parked/account/discard", "GET /api/parked/transfer/audit", "GET /api/parked/transfer/audit/1", "GET /events?topics=queues,parked:account",
	} {
		method, path, _ := strings.Cut(call, " ")
		got := c.call(t, method, path, "")
		expectStatus(t, got, http.StatusUnauthorized)
		// A token of one's own in a header is no session.
		expectStatus(t, c.call(t, method, path, "", "Authorization", "Bearer "+adminToken), http.StatusUnauthorized)
	}
	if n := c.account.total() + c.transfer.total(); n != 0 {
		t.Errorf("the services were asked %d times", n)
	}
}

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	c.transfer.say("GET /admin/quarantine", `{"items":[],"next":null}`)
	if got := c.call(t, "GET", "/api/session", ""); got.body != `{"signedIn":false,"available":true,"others":[]}` {
		t.Errorf("before: %s", got.body)
	}
	expectStatus(t, c.call(t, "POST", "/api/session", `{"token":"wrong"}`), http.StatusUnauthorized)
	expectStatus(t, c.call(t, "POST", "/api/session", `{"token":"`+adminToken+`","operator":"`+strings.Repeat("x", 61)+`"}`), http.StatusBadRequest)

	got := c.call(t, "POST", "/api/session", `{"token":"`+adminToken+`","operator":" Grace "}`)
	expectStatus(t, got, http.StatusNoContent)
	cookie := got.header.Get("Set-Cookie")
	for _, wanted := range []string{"HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=28800"} {
		if !strings.Contains(cookie, wanted) {
			t.Errorf("cookie %q without %s", cookie, wanted)
		}
	}
	if strings.Contains(cookie, adminToken) {
		t.Error("the token went into the cookie")
	}
	if got := c.call(t, "GET", "/api/session", ""); !strings.Contains(got.body, `"signedIn":true,"operator":"Grace"`) {
		t.Errorf("signed in: %s", got.body)
	}
	expectStatus(t, c.call(t, "GET", "/api/parked/transfer", ""), http.StatusOK)
	request, _ := c.transfer.request(t, "GET /admin/quarantine")
	if auth, who := request.Header.Get("Authorization"), request.Header.Get("X-Operator"); auth != "Bearer "+adminToken || who != "Grace (console)" {
		t.Errorf("asked with %q by %q", auth, who)
	}
	if request.Header.Get("Cookie") != "" {
		t.Error("the session's cookie went to the service")
	}
	expectStatus(t, c.call(t, "DELETE", "/api/session", ""), http.StatusNoContent)
	expectStatus(t, c.call(t, "GET", "/api/parked/transfer", ""), http.StatusUnauthorized)
}

func TestWithoutATokenNobodySignsIn(t *testing.T) {
	t.Parallel()
	c := startOver(t, fakes{newFake(t), newFake(t), newFake(t)})
	if got := c.call(t, "GET", "/api/session", ""); got.body != `{"signedIn":false,"available":false,"others":[]}` {
		t.Errorf("got %s", got.body)
	}
	for _, token := range []string{"", "anything"} {
		expectStatus(t, c.call(t, "POST", "/api/session", `{"token":"`+token+`"}`), http.StatusForbidden)
	}
	expectStatus(t, c.call(t, "GET", "/api/parked/transfer", ""), http.StatusForbidden)
}

func TestTokensCannotBeTriedForLong(t *testing.T) {
	t.Parallel()
	c := startConsole(t)
	tries := 0
	for ; tries < 30; tries++ {
		if got := c.call(t, "POST", "/api/session", `{"token":"wrong"}`); got.status == http.StatusTooManyRequests {
			if got.header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
			break
		}
	}
	if tries < 5 || tries > 20 {
		t.Errorf("%d wrong tokens could be tried", tries)
	}
	expectStatus(t, c.call(t, "POST", "/api/session", `{"token":"`+adminToken+`"}`), http.StatusTooManyRequests)
}

func TestSessionsExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := newSessions(adminToken, func() time.Time { return now })
	s.keep("mine", session{operator: "Grace", expires: now.Add(sessionTime)})
	context := echo.New().NewContext(&http.Request{Host: "localhost:8080", Header: http.Header{"Cookie": {"console-session-8080=mine"}}}, nil)
	for _, at := range []struct {
		after  time.Duration
		wanted bool
	}{{0, true}, {sessionTime - time.Second, true}, {sessionTime, false}, {0, false}} {
		now = now.Add(at.after)
		if _, ok := s.of(context); ok != at.wanted {
			t.Errorf("after %s: signed in %t", at.after, ok)
		}
		now = now.Add(-at.after)
	}
	var all sync.WaitGroup
	for i := range mostSessions + 50 {
		all.Go(func() { s.keep(time.Duration(i).String(), session{expires: now.Add(time.Duration(i) * time.Second)}) })
	}
	all.Wait()
	if n := len(s.active); n > mostSessions {
		t.Errorf("%d sessions are kept, at most %d may be", n, mostSessions)
	}
}
