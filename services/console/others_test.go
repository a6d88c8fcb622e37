package main

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
)

func TestServicesAreNamedWithTheirAddresses(t *testing.T) {
	t.Parallel()
	load := func(text string) (config, error) {
		return service.Load[config]([]string{"SERVICES=" + text, "RABBITMQ_MANAGEMENT_URL=http://operator:x@localhost:15672"}, defaults)
	}
	for text, wanted := range map[string][]other{
		"":                                     nil,
		"fees=http://fees:8083":                {{"fees", "http://fees:8083"}},
		" fees=http://a:1, loans2=https://b ,": {{"fees", "http://a:1"}, {"loans2", "https://b"}},
	} {
		cfg, err := load(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got, err := cfg.others(); err != nil || !slices.Equal(got, wanted) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	many := ""
	for c := 'a'; c < 'a'+mostOthers+1; c++ {
		many += "x" + string(c) + "=http://x:1,"
	}
	for text, says := range map[string]string{
		"fees": "name=http://host:port", "fees=ftp://a": "name=http://host:port", "Fees=http://a": "name=http://host:port", "fees=http://u:secret@a": "name=http://host:port",
		"fees=http://a?x=1": "name=http://host:port", "fees=http://a,fees=http://b": "fees is there already", "account=http://a": "account is there already", many: "10 services at most",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), "SERVICES") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want %q", text, err, says)
		}
	}
}

// A service that somebody has added is shown with how it is and what it gave up, which can be looked into, replayed and discarded as account's and transfer's.
// When it goes, that is said.
func TestAnAddedServiceIsShown(t *testing.T) {
	t.Parallel()
	fees := newFake(t)
	c := startLifelike(t, "SERVICES=fees="+fees.URL)
	fees.metrics(metricsText(5, 0, "fees.events"))
	fees.say("GET /admin/quarantine/audit", items())
	lost := parked("fees.dead-letters", "lost-1", "MAX_ATTEMPTS", "UNKNOWN")
	lost["service"], lost["originQueue"] = "fees", "fees.events"
	fees.say("GET /admin/quarantine", items(lost))
	whole := document{"copies": 1, "headers": document{}, "deaths": []any{}, "properties": document{}, "exchange": "fees.dlx", "routingKey": "x", "body": document{"size": 2, "text": "{}"}}
	for name, value := range lost {
		whole[name] = value
	}
	fees.say("GET /admin/quarantine/fees.dead-letters/lost-1", whole)
	fees.say("POST /admin/quarantine/replay", runOf(document{"queue": "fees.dead-letters", "key": "lost-1", "forecast": "RUN", "outcome": "WOULD_REPLAY"}))
	c.management.say("GET /api/queues/banking", append(queuesOf(nil), document{"name": "fees.events", "messages_ready": 7, "consumers": 1, "type": "quorum"},
		document{"name": "fees.dead-letters", "messages_ready": 1, "type": "quorum"}))

	p := c.openTab(t, wide, "")
	p.says("Added services")
	p.until("its figures", `((row) => row?.innerText.replace(/\s+/g, ' ').trim() === 'fees Running 7 1')(document.querySelector('.others tbody tr'))`)
	p.says("1 message in fees.dead-letters")
	p.until("its consumer", `[...document.querySelectorAll('.consumers tbody th')].some((th) => th.textContent === 'fees.events')`)
	p.check("an added service")

	p.eval(`location.hash = '#/parked/message/fees.dead-letters/lost-1'`, nil) // told to who is signed in alone, whose it is
	p.says("Sign in to look inside")
	p.signIn()
	p.says("Why it is here")
	if request, _ := fees.request(t, "GET /admin/quarantine/fees.dead-letters/lost-1"); request.Header.Get("Authorization") != "Bearer "+adminToken {
		t.Error("asked without the admin token")
	}
	p.eval("location.hash = '#/parked'", nil)
	p.says("fees.dead-letters")
	p.until("its message", `document.querySelector('.parked tbody')?.innerText.includes('lost-1')`)

	p.eval("location.hash = '#/'", nil)
	fees.Close()
	p.says("fees does not answer since")
	p.until("its state", `document.querySelector('.others tbody tr').innerText.includes('Does not answer')`)
}

// Who is not signed in sees nothing of its messages, and there is no other service than those that were named.
func TestOnlyNamedServicesAreAsked(t *testing.T) {
	t.Parallel()
	fees := newFake(t)
	c := startConsole(t, "SERVICES=fees="+fees.URL)
	c.client.Transport = openapitest.New(t, openAPI, c.client.Transport)
	expectStatus(t, c.call(t, "GET", "/api/parked/fees", ""), http.StatusUnauthorized)
	expectStatus(t, c.call(t, "GET", "/events?topics=parked:fees", ""), http.StatusUnauthorized)
	c.signIn(t)
	fees.say("GET /admin/quarantine", items())
	expectStatus(t, c.call(t, "GET", "/api/parked/fees", ""), http.StatusOK)
	if got := c.call(t, "GET", "/api/parked/loans", ""); got.status != http.StatusNotFound || !strings.Contains(got.body, "there are account, transfer, fees") {
		t.Errorf("another service: %+v", got)
	}
	expectStatus(t, c.call(t, "GET", "/events?topics=metrics:loans", ""), http.StatusBadRequest)
}
