package watch

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"example.com/banking/services/console/upstream"
)

const someID = "00000000-0000-4000-8000-000000000001"

// server answers by path, and notes what it was asked.
type server struct {
	*httptest.Server
	m       sync.Mutex
	answers map[string]string
	asked   map[string]int
	last    http.Header
}

func newServer(t *testing.T, answers map[string]string) *server {
	t.Helper()
	s := &server{answers: answers, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.m.Lock()
		defer s.m.Unlock()
		path := r.URL.EscapedPath()
		s.asked[path]++
		s.last = r.Header.Clone()
		text, ok := s.answers[path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = fmt.Fprint(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) say(path, answer string) {
	s.m.Lock()
	defer s.m.Unlock()
	s.answers[path] = answer
}

func (s *server) count(path string) int {
	s.m.Lock()
	defer s.m.Unlock()
	return s.asked[path]
}

func bankAt(t *testing.T, s *server) *Bank {
	t.Helper()
	at := func(name, address string) *upstream.Upstream {
		u, err := upstream.New(name, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(u.Close)
		return u
	}
	management := strings.Replace(s.URL, "http://", "http://operator:secret@", 1)
	return &Bank{Account: at("account", s.URL), Transfer: at("transfer", s.URL), Management: at("RabbitMQ", management), Vhost: "a/b", AdminToken: "token"}
}

// poll asks a topic's source once.
func poll(t *testing.T, b *Bank, topic string) ([]Part, error) {
	t.Helper()
	source, ok := b.Find(topic)
	if !ok {
		t.Fatalf("no topic %s", topic)
	}
	return source.Poll(t.Context(), false)
}

func expectParts(t *testing.T, parts []Part, err error, wanted ...string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range parts {
		got = append(got, p.Key+" "+string(p.Value))
	}
	if strings.Join(got, "\n") != strings.Join(wanted, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	b := &Bank{Account: &upstream.Upstream{Name: "account"}, Transfer: &upstream.Upstream{Name: "transfer"}, Others: []*upstream.Upstream{{Name: "fees"}}, Management: &upstream.Upstream{}}
	for _, topic := range []string{
		"queues", "topology", "ledger", "accounts", "transfers", "summary", "metrics:account", "metrics:transfer", "transfers:REFUNDED",
		"account:" + someID, "transfer:" + someID, "leg:" + someID, "parked:account", "parked:transfer", "metrics:fees", "parked:fees",
	} {
		if source, ok := b.Find(topic); !ok || source.Poll == nil || source.Interval <= 0 {
			t.Errorf("%s cannot be watched", topic)
		}
		if secret := strings.HasPrefix(topic, "parked"); NeedsSession(topic) != secret {
			t.Errorf("%s needs a session: %t, want %t", topic, !secret, secret)
		}
	}
	for _, topic := range []string{
		"", "nonsense", "queues:x", "metrics", "metrics:", "metrics:console", "transfers:", "transfers:DONE", "transfers:REFUNDED&limit=200", "account",
		"account:1", "account:../ledger", "transfer:0000000000004000800000000000000A", "transfer:" + strings.ToUpper("0000000a-0000-4000-8000-000000000001"), "parked", "parked:x", "metrics:x", "fees",
	} {
		if _, ok := b.Find(topic); ok {
			t.Errorf("%q can be watched", topic)
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"/transfers": `{"items":[{"id":"b","amountMinor":9007199254740993},{"id":"a","amountMinor":1}],"next":"later"}`})
	parts, err := poll(t, bankAt(t, s), "transfers")
	expectParts(t, parts, err, `b {"id":"b","amountMinor":"9007199254740993"}`, `a {"id":"a","amountMinor":"1"}`, `next "later"`)

	s.say("/accounts", `{"items":[],"next":null}`)
	parts, err = poll(t, bankAt(t, s), "accounts")
	expectParts(t, parts, err)

	for _, nonsense := range []string{`[]`, `no JSON`, `{"items":7}`} {
		s.say("/accounts", nonsense)
		if parts, err = poll(t, bankAt(t, s), "accounts"); err == nil {
			t.Errorf("%s: got %v without an error", nonsense, parts)
		}
	}
}

func TestATransferOfWhichNotAllIsKnown(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"/transfers/" + someID: `{"id":"x","status":"REQUESTED"}`})
	b := bankAt(t, s)
	parts, err := poll(t, b, "transfer:"+someID)
	expectParts(t, parts, err, `transfer {"id":"x","status":"REQUESTED"}`)
	source, _ := b.Find("transfer:" + someID)
	if source.Calm(parts) {
		t.Error("an open transfer is to be asked for as often as possible")
	}
	s.say("/transfers/"+someID, `{"id":"x","status":"COMPLETED"}`)
	s.say("/transfers/"+someID+"/life", `{"events":[{"kind":"POSTED","amountMinor":5}]}`)
	parts, err = poll(t, b, "transfer:"+someID)
	expectParts(t, parts, err, `transfer {"id":"x","status":"COMPLETED"}`, `life {"events":[{"kind":"POSTED","amountMinor":"5"}]}`)
	if !source.Calm(parts) {
		t.Error("a transfer that has ended hardly changes any more")
	}
	parts, err = poll(t, b, "leg:"+someID)
	expectParts(t, parts, err)
}

func TestQueuesAndTopology(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{
		"/api/queues/a%2Fb": `[{"name":"work_error","messages_ready":1,"messages_unacknowledged":2,"consumers":0,"type":"quorum","state":"running"},
			{"name":"retry","messages_ready":3,"arguments":{"x-message-ttl":5000,"x-dead-letter-exchange":""},"message_stats":{"publish":7,"deliver_get":6,"ack":5},"type":"quorum"}]`,
		"/api/exchanges/a%2Fb": `[{"name":"","type":"direct"},{"name":"amq.topic","type":"topic"},{"name":"banking.dlx","type":"topic"}]`,
		"/api/bindings/a%2Fb": `[{"source":"","destination":"q","destination_type":"queue","routing_key":"q"},
			{"source":"banking.dlx","destination":"q","destination_type":"queue","routing_key":"#"}]`,
	})
	b := bankAt(t, s)
	parts, err := poll(t, b, "queues")
	expectParts(t, parts, err,
		`retry {"ready":3,"unacked":0,"consumers":0,"published":7,"delivered":6,"acked":5,"ttlMs":5000,"type":"quorum","state":""}`,
		`work_error {"ready":1,"unacked":2,"consumers":0,"published":0,"delivered":0,"acked":0,"type":"quorum","state":"running"}`)
	if user, password, ok := (&http.Request{Header: s.last}).BasicAuth(); !ok || user != "operator" || password != "secret" {
		t.Error("the management API was asked without the operator's password")
	}
	parts, err = poll(t, b, "topology")
	expectParts(t, parts, err,
		`exchange/banking.dlx {"name":"banking.dlx","type":"topic"}`,
		`binding/banking.dlx/q/# {"source":"banking.dlx","destination":"q","destination_type":"queue","routing_key":"#"}`)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{"/metrics": `# TYPE go_goroutines gauge
go_goroutines 12
# TYPE messaging_breaker_state gauge
messaging_breaker_state{queue="q"} 2
# TYPE messaging_deliveries_total counter
messaging_deliveries_total{outcome="done",queue="q"} 7
messaging_deliveries_total{outcome="retried",queue="q"} 1
# TYPE messaging_handler_seconds histogram
messaging_handler_seconds_bucket{queue="q",le="+Inf"} 3
messaging_handler_seconds_sum{queue="q"} 0.5
messaging_handler_seconds_count{queue="q"} 3
# TYPE outbox_oldest_age_seconds gauge
outbox_oldest_age_seconds NaN
# TYPE transfers_overdue gauge
transfers_overdue 4
`})
	parts, err := poll(t, bankAt(t, s), "metrics:transfer")
	expectParts(t, parts, err,
		`messaging_breaker_state [{"labels":{"queue":"q"},"value":2}]`,
		`messaging_deliveries_total [{"labels":{"outcome":"done","queue":"q"},"value":7},{"labels":{"outcome":"retried","queue":"q"},"value":1}]`,
		`transfers_overdue [{"value":4}]`)
	s.say("/metrics", "}{")
	if parts, err := poll(t, bankAt(t, s), "metrics:account"); err == nil {
		t.Errorf("got %v without an error", parts)
	}
}

// A look into a quarantine fetches all of it; it is taken when something has moved there, and not each second.
func TestAQuarantineIsLookedIntoWhenItHasMoved(t *testing.T) {
	t.Parallel()
	const figures = `[{"name":"banking.dead-letters","messages_ready":%d},{"name":"transfer.account-events","messages_ready":%d}]`
	s := newServer(t, map[string]string{
		"/api/queues/a%2Fb": fmt.Sprintf(figures, 2, 0),
		"/admin/quarantine": `{"items":[{"queue":"banking.dead-letters","key":"a/b"},{"queue":"banking.dead-letters","key":"a/b"}],"next":null}`,
	})
	source, _ := bankAt(t, s).Find("parked:transfer")
	look := func(asked bool, wanted int) {
		t.Helper()
		parts, err := source.Poll(t.Context(), asked)
		expectParts(t, parts, err, `banking.dead-letters/a%2Fb {"queue":"banking.dead-letters","key":"a/b"}`, `banking.dead-letters/a%2Fb+ {"queue":"banking.dead-letters","key":"a/b"}`)
		if n := s.count("/admin/quarantine"); n != wanted {
			t.Errorf("looked %d times, want %d", n, wanted)
		}
	}
	look(false, 1)
	if got := s.last.Get("Authorization"); got != "Bearer token" {
		t.Errorf("Authorization %q", got)
	}
	look(false, 1)
	s.say("/api/queues/a%2Fb", fmt.Sprintf(figures, 2, 99)) // what moves elsewhere does not matter
	look(false, 1)
	look(true, 2) // a page has done something
	s.say("/api/queues/a%2Fb", fmt.Sprintf(figures, 3, 0))
	look(false, 3)
	s.say("/api/queues/a%2Fb", "no JSON") // nor is a broker that tells nothing a reason to look again and again
	look(false, 3)
	look(true, 4)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t, map[string]string{})
	b := bankAt(t, s)
	if _, err := poll(t, b, "accounts"); !upstream.Is(err, http.StatusNotFound) {
		t.Errorf("got %v, want a 404", err)
	}
	s.Close()
	_, err := poll(t, b, "queues")
	if err == nil || !strings.HasPrefix(err.Error(), "RabbitMQ does not answer: ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %q", err)
	}
}
