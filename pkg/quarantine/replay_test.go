package quarantine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
	amqp "github.com/rabbitmq/amqp091-go"
)

func ids(from, to int) (all []string) {
	for i := from; i < to; i++ {
		all = append(all, fmt.Sprintf("m-%03d", i))
	}
	return all
}

func (b *bench) parkAll(ids ...string) {
	b.Helper()
	messages := make([]amqp.Publishing, len(ids))
	for i, id := range ids {
		messages[i] = parkedEvent(id)
	}
	b.park(messages...)
}

func keysOf(deliveries []amqp.Delivery) (keys []string) {
	for _, d := range deliveries {
		keys = append(keys, d.MessageId)
	}
	return keys
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) {
		c.KnownTransfers = func(_ context.Context, ids []string) (map[string]bool, error) {
			return map[string]bool{"t-fresh": true, "t-done": true, "t-other": true}, nil
		}
		c.Parse = func(m *messaging.Message) error {
			if m.Type == "Odd" {
				return errors.New("not an event")
			}
			return nil
		}
	})
	odd := parkedEvent("odd")
	odd.Body = []byte(`{"messageId":"odd","type":"Odd"}`)
	b.park(parkedEvent("fresh"), parkedEvent("done"), parkedEvent("other"), parkedEvent("stranger"), odd, amqp.Publishing{Body: []byte("{")},
		parkedEvent("account's", func(h amqp.Table) { h[messaging.HeaderOriginQueue] = contract.TransferRequestedQueue }))
	for _, id := range []string{"done", "other"} {
		e, err := messaging.Decode([]byte(event(id)))
		if err != nil {
			t.Fatal(err)
		}
		hash, err := e.PayloadHash()
		if err != nil {
			t.Fatal(err)
		}
		if id == "other" {
			hash[0]++
		}
		if _, err := b.pool.Exec(t.Context(), `insert into inbox values ($1, $2, $3, now())`, work0, id, hash[:]); err != nil {
			t.Fatal(err)
		}
	}
	before := b.contents(lot)
	r := b.replay(order{"canary": 2})
	var said []string
	for _, item := range r.Items {
		said = append(said, item.Outcome+" "+item.Forecast)
	}
	if want := []string{"WOULD_REPLAY RUN", "WOULD_REPLAY DUPLICATE", "WOULD_REPLAY CONTRADICTION", "WOULD_REPLAY UNKNOWN_TRANSFER",
		"WOULD_REPLAY INVALID", "REFUSED ", "WOULD_REPLAY ELSEWHERE"}; !slices.Equal(said, want) {
		t.Errorf("the dry run says %q, want %q", said, want)
	}
	if !r.DryRun || r.Run != nil || r.Matched != 7 || r.Done != 6 || r.Refused != 1 || !r.Items[1].Canary || r.Items[2].Canary || r.Items[0].Target != "queue "+work0 {
		t.Errorf("the dry run answers %+v", r)
	}
	if d := b.discard(order{"because": "test"}); !d.DryRun || d.Done != 7 || d.Items[0].Outcome != wouldDiscard {
		t.Errorf("the dry run answers %+v", d)
	}
	after := b.contents(lot)
	if len(after) != len(before) {
		t.Fatalf("%d messages, want %d", len(after), len(before))
	}
	for i := range after {
		delete(before[i].Headers, "x-delivery-count")
		delete(after[i].Headers, "x-delivery-count")
		if after[i].MessageId != before[i].MessageId || fmt.Sprint(after[i].Headers) != fmt.Sprint(before[i].Headers) || !bytes.Equal(after[i].Body, before[i].Body) {
			t.Errorf("message %d is now %+v, was %+v", i, after[i], before[i])
		}
	}
	if n := len(b.audit()) + b.depth(work0); n > 0 {
		t.Errorf("%d traces of a dry run", n)
	}
}

func TestReplayGoesToTheQueueThatFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, err := b.ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.ch.QueueBind(other.Name, "accounts.#", contract.EventsExchange, false, nil); err != nil {
		t.Fatal(err)
	}
	parked := parkedEvent("a", func(h amqp.Table) {
		h["foreign"], h["MT-Fault-Message"], h["MT-Reason"], h["MT-Host-MachineName"] = "kept", "x", "fault", "y"
		h["x-death"], h["CC"], h["Banking-Attempts"] = []any{amqp.Table{"queue": work0, "reason": "rejected", "count": int64(2)}}, []any{}, int64(3)
	})
	parked.CorrelationId, parked.Type, parked.Timestamp, parked.Priority = "c", "T", time.Unix(1700000000, 0), 2
	b.park(parked, parkedEvent("b"))
	began := time.Now().Truncate(time.Millisecond)
	r := decode[ran](b, b.call("POST", "/admin/quarantine/replay", order{"ids": []string{"a", "nobody"}, "confirm": true},
		func(r *http.Request) { r.Header.Set("X-Operator", "eve@desk") }))
	if r.DryRun || r.Matched != 1 || r.Done != 1 || r.Items[0].Outcome != replayed || r.Run == nil || !slices.Equal(r.Missing, []string{"nobody"}) {
		t.Errorf("answered %+v", r)
	}
	if got := keysOf(b.contents(lot)); !slices.Equal(got, []string{"b"}) {
		t.Errorf("parked are %q now", got)
	}
	d := b.contents(work0)[0]
	headers := slices.Sorted(maps.Keys(d.Headers))
	if want := []string{"foreign", "traceparent", "x-delivery-count", "x-origin-exchange", "x-origin-queue", "x-origin-routing-key", "x-replay-count", "x-replayed-at"}; !slices.Equal(headers, want) {
		t.Errorf("replayed with the headers %q, want %q", headers, want)
	}
	at, err := time.Parse(time.RFC3339, d.Headers[messaging.HeaderReplayedAt].(string))
	if err != nil || at.Before(began) || time.Since(at) > patience || d.Headers[messaging.HeaderReplayCount] != int64(1) {
		t.Errorf("replayed with %v", d.Headers)
	}
	if string(d.Body) != event("a") || d.MessageId != "a" || d.CorrelationId != "c" || d.Type != "T" || d.AppId != "account" || d.Priority != 2 ||
		!d.Timestamp.Equal(parked.Timestamp) || d.ContentType != "application/json" || d.DeliveryMode != amqp.Persistent {
		t.Errorf("replayed as %+v", d)
	}
	if n := b.depth(other.Name); n != 0 {
		t.Errorf("another subscriber got it too")
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY DONE a"}) {
		t.Errorf("the audit has %q", rows)
	}
	audit := decode[struct {
		Items []Entry `json:"items"`
	}](b, b.call("GET", "/admin/quarantine/audit?id=a&run="+*r.Run, nil)).Items
	if len(audit) != 1 || audit[0].Operator != "eve@desk" || audit[0].Target != "queue "+work0 || audit[0].EndedAt == nil || audit[0].Queue != lot {
		t.Errorf("the audit has %+v", audit)
	}

	if r := b.replay(order{"ids": []string{"b"}, "to": "exchange", "confirm": true}); r.Done != 1 || r.Items[0].Target != "exchange banking.events, key accounts.account.debited" {
		t.Errorf("answered %+v", r)
	}
	b.hasDepth(other.Name, 1)
	b.hasDepth(work0, 2)
	b.hasDepth(lot, 0)
}

// Whatever ends a run between two of its steps: each message is in one of the two queues, or in both.
func TestNothingIsLostByACrash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at           step
		parked, sent int
		audit        string
	}{
		"after the audit":   {afterAuditStarted, 3, 0, "STARTED"},
		"after the publish": {afterPublish, 3, 3, "STARTED"},
		"after the ack":     {afterAck, 0, 3, "STARTED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.parkAll("a", "b", "c")
			b.q.at = func(s step) error {
				if s == c.at {
					return errors.New("killed")
				}
				return nil
			}
			if r := b.call("POST", "/admin/quarantine/replay", order{"confirm": true}); strings.Contains(string(r.body), replayed) {
				t.Errorf("a run that was cut off says %s", r.body)
			}
			b.hasDepth(lot, c.parked)
			b.hasDepth(work0, c.sent)
			for _, row := range b.audit() {
				if !strings.HasPrefix(row, "REPLAY "+c.audit) {
					t.Errorf("the audit has %q", row)
				}
			}
			b.q.at = func(step) error { return nil }
			if r := b.replay(order{"confirm": true}); r.Done != c.parked || r.Stopped != "" {
				t.Errorf("the next run answers %+v", r)
			}
			b.hasDepth(lot, 0)
			b.hasDepth(work0, c.sent+c.parked)
		})
	}
	for name, c := range map[string]struct {
		at     step
		parked int
	}{"discard after the audit": {afterAuditStarted, 3}, "discard after the ack": {afterAck, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.parkAll("a", "b", "c")
			b.q.at = func(s step) error {
				if s == c.at {
					return errors.New("killed")
				}
				return nil
			}
			b.call("POST", "/admin/quarantine/discard", order{"because": "test", "confirm": true})
			b.hasDepth(lot, c.parked)
			var whole int
			if err := b.pool.QueryRow(t.Context(), `select count(*) from quarantine_audit where outcome = 'STARTED' and body is not null`).Scan(&whole); err != nil || whole != 3 {
				t.Errorf("%d whole messages in the audit, %v", whole, err)
			}
		})
	}
}

// cutter is a session whose last extra connection can be cut.
type cutter struct {
	*messaging.Session
	last net.Conn
}

func (c *cutter) Dial(ctx context.Context, purpose string, wrap ...func(net.Conn) net.Conn) (*amqp.Connection, error) {
	return c.Session.Dial(ctx, purpose, append(wrap, func(conn net.Conn) net.Conn {
		c.last = conn
		return conn
	})...)
}

// The connection that holds the messages breaks between the publish and the ack.
func TestNothingIsLostByALostConnection(t *testing.T) {
	t.Parallel()
	cut := &cutter{}
	b := newBench(t, func(c *Config) {
		cut.Session = c.Session.(*messaging.Session)
		c.Session = cut
	})
	b.parkAll("a", "b")
	b.q.at = func(s step) error {
		if s == afterPublish {
			return cut.last.Close()
		}
		return nil
	}
	r := b.replay(order{"confirm": true})
	b.q.at = func(step) error { return nil }
	if r.Stopped == "" || r.Done > 0 || r.Failed != 2 || r.Items[0].Outcome != outcomeUnknown {
		t.Errorf("answered %+v", r)
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY UNKNOWN a", "REPLAY UNKNOWN b"}) {
		t.Errorf("the audit has %q", rows)
	}
	b.hasDepth(lot, 2)
	b.hasDepth(work0, 2)
}

// A replayed message has all of its attempts and its age again, comes back with its first origin and its count, and is refused at last.
func TestReplayStartsAnewAndIsCounted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	handled := b.consume(func(*messaging.Message) error { return retry.Errorf(retry.Timeout, "still down") })
	old := parkedEvent("a")
	old.Timestamp = time.Now().Add(-48 * time.Hour) // past MAX_AGE, were it not for the replay
	b.park(old)
	for n := 1; n <= 3; n++ {
		if r := b.replay(order{"confirm": true}); r.Done != 1 || r.Items[0].ReplayCount != int64(n-1) {
			t.Fatalf("replay %d answers %+v", n, r)
		}
		for attempt := 1; attempt <= 3; attempt++ {
			select {
			case m := <-handled:
				if m.Attempt != attempt {
					t.Errorf("replay %d: attempt %d, want %d", n, m.Attempt, attempt)
				}
			case <-time.After(patience):
				t.Fatal("it is not handled")
			}
		}
		b.hasDepth(lot, 1)
		item := b.list("").Items[0]
		if item.ReplayCount != int64(n) || item.Attempts != 3 || item.Reason != retry.ReasonMaxAttempts || item.OriginQueue != work0 ||
			item.OriginExchange != contract.EventsExchange || item.OriginRoutingKey != "accounts.account.debited" || item.Error != "still down" ||
			time.Since(*item.FirstFailedAt) > time.Minute {
			t.Errorf("after replay %d it is %+v", n, item)
		}
	}
	r := b.replay(order{"confirm": true})
	if r.Refused != 1 || r.Done != 0 || r.Items[0].Outcome != refused || !strings.Contains(r.Items[0].Detail, "replayed 3 times") {
		t.Errorf("the fourth replay answers %+v", r)
	}
	if b.depth(lot) != 1 || len(b.audit()) != 3 {
		t.Errorf("refused, yet there are %d parked and the audit %q", b.depth(lot), b.audit())
	}
	if r := b.replay(order{"confirm": true, "force": true}); r.Done != 1 {
		t.Errorf("forced, it answers %+v", r)
	}
}

func TestNoOtherQueueIsSentTo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	secret, err := b.ch.QueueDeclare("payroll", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	forge := func(queue, exchange, key any) func(amqp.Table) {
		return func(h amqp.Table) {
			h[messaging.HeaderOriginQueue], h[messaging.HeaderOriginExchange], h[messaging.HeaderOriginRoutingKey] = queue, exchange, key
		}
	}
	died := parkedEvent("died", func(h amqp.Table) {
		forge(nil, nil, nil)(h)
		h["x-death"] = []any{amqp.Table{"queue": "payroll", "reason": "expired", "count": int64(1), "exchange": "", "routing-keys": []any{"payroll"}}}
	})
	b.park(parkedEvent("q", forge(secret.Name, "", secret.Name)), parkedEvent("lot", forge(lot, "banking.dlx", "x")), parkedEvent("number", forge(int64(1), int64(2), nil)),
		parkedEvent("long", forge(strings.Repeat("q", 300), "", "")), died, amqp.Publishing{Body: []byte(event("bare"))})
	for _, to := range []string{"queue", "exchange"} {
		r := b.replay(order{"to": to, "confirm": true, "force": true})
		if r.Done != 0 || r.Refused != 6 || len(b.audit()) > 0 {
			t.Errorf("to the %s it answers %+v", to, r)
		}
		for _, item := range r.Items {
			if item.Detail == "" || item.Target != "" {
				t.Errorf("refused as %+v", item)
			}
		}
	}
	b.hasDepth(secret.Name, 0)
	b.hasDepth(lot, 6)
}

func TestUnroutable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.park(parkedEvent("tomorrow", func(h amqp.Table) {
		h[messaging.HeaderReplayedAt] = time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	}))
	if r := b.replay(order{"confirm": true}); r.Done != 1 {
		t.Errorf("a replay in the future hides a message: %+v", r)
	}
	b.park(parkedEvent("nowhere", func(h amqp.Table) { h[messaging.HeaderOriginQueue] = contract.TransferRequestedQueue }), parkedEvent("a"))
	r := b.replay(order{"confirm": true}) // account, which declares that queue, has never run here
	if r.Done != 1 || r.Failed != 1 || r.Items[0].Outcome != outcomeFailed || !strings.Contains(r.Items[0].Detail, "no queue") {
		t.Errorf("answered %+v", r)
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY DONE tomorrow", "REPLAY FAILED nowhere", "REPLAY DONE a"}) {
		t.Errorf("the audit has %q", rows)
	}
	b.hasDepth(lot, 1)
}

func TestCanary(t *testing.T) {
	t.Parallel()
	t.Run("comes back", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.consume(func(*messaging.Message) error { return retry.Errorf(retry.Invariant, "not this one") })
		b.parkAll(ids(0, 10)...)
		r := b.replay(order{"canary": 1, "confirm": true})
		if r.Done != 1 || !r.Items[0].Canary || !strings.Contains(r.Stopped, "m-000 came back with INVARIANT: not this one") {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 10)
		if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY DONE m-000"}) {
			t.Errorf("the audit has %q", rows)
		}
	})
	t.Run("is handled", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		handled := b.consume(func(*messaging.Message) error { return nil })
		b.parkAll(ids(0, 10)...)
		r := b.replay(order{"canary": 3, "confirm": true})
		if r.Done != 10 || r.Stopped != "" || !r.Items[2].Canary || r.Items[3].Canary {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 0)
		for range 10 {
			<-handled
		}
	})
	t.Run("goes elsewhere", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		if _, err := b.ch.QueueDeclare(contract.TransferRequestedQueue, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		away := func(h amqp.Table) { h[messaging.HeaderOriginQueue] = contract.TransferRequestedQueue }
		b.park(parkedEvent("a", away), parkedEvent("b", away))
		if r := b.replay(order{"canary": 1, "confirm": true}); r.Done != 1 || !strings.Contains(r.Stopped, "another service") {
			t.Errorf("answered %+v", r)
		}
		b.hasDepth(lot, 1)
	})
}

// What a run parks again stands behind what it set out to do, and is not its business.
func TestRunDoesNotChaseWhatItParksAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	handled := b.consume(func(*messaging.Message) error { return retry.Errorf(retry.Invariant, "never") })
	all := ids(0, 40)
	b.parkAll(all...)
	b.q.at = func(s step) error {
		if s == afterAck { // each batch is back in the parking lot before the next is sent
			b.eventually("the message to be parked again", func() error {
				if back := b.depth(lot); back < len(b.audit()) {
					return fmt.Errorf("%d are back", back)
				}
				return nil
			})
		}
		return nil
	}
	r := b.replay(order{"confirm": true, "limit": 1000, "rate": 20, "reason": "MAX_ATTEMPTS"})
	if r.Done != 40 || r.Matched != 40 {
		t.Errorf("answered %d of %d", r.Done, r.Matched)
	}
	b.hasDepth(lot, 40)
	if len(handled) != 40 {
		t.Errorf("handled %d times, want 40", len(handled))
	}
	if r := b.replay(order{"limit": 1000}); r.Matched != 40 {
		t.Errorf("the next run finds %d", r.Matched)
	}
}

// Rounds of a run: what stays is not looked at twice, what follows is not left out.
func TestRounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var messages []amqp.Publishing
	for _, id := range ids(0, 30) {
		messages = append(messages, parkedEvent(id, func(h amqp.Table) {
			if id[len(id)-1]%3 == 0 {
				h[messaging.HeaderOriginQueue] = "elsewhere"
			}
			if id[len(id)-1]%3 == 1 {
				h[messaging.HeaderErrorClass] = "TIMEOUT"
			}
		}))
	}
	b.park(messages...)
	b.q.window = 2
	r := b.replay(order{"confirm": true, "class": "NOT_FOUND", "rate": 1000, "limit": 3})
	if r.Matched != 3 || r.Done+r.Refused != 3 {
		t.Errorf("answered %+v", r)
	}
	first := r.Done
	r = b.replay(order{"confirm": true, "class": "NOT_FOUND", "canary": 2, "rate": 1000, "limit": 1000})
	if r.Stopped == "" { // nobody consumes: the canaries are neither handled nor back
		t.Errorf("answered %+v", r)
	}
	second := r.Done
	r = b.replay(order{"confirm": true, "class": "NOT_FOUND", "rate": 1000, "limit": 1000})
	wanted := 0
	for _, id := range ids(0, 30) {
		if id[len(id)-1]%3 == 2 {
			wanted++
		}
	}
	if first+second+r.Done != wanted {
		t.Errorf("%d and %d and %d were replayed, want %d in all", first, second, r.Done, wanted)
	}
	b.hasDepth(lot, 30-wanted)
}

func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.parkAll(ids(0, 30)...)
	ctx, leave := context.WithCancel(t.Context())
	body, err := json.Marshal(order{"confirm": true, "rate": 10})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, "POST", b.server+"/admin/quarantine/replay", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := response.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	leave()
	_ = response.Body.Close()
	// Who comes next waits for the run to end; it must not go on without its client.
	b.eventually("the run to end", func() error {
		if a := b.call("GET", "/admin/quarantine", nil); a.status != http.StatusOK {
			return fmt.Errorf("%d %s", a.status, a.body)
		}
		return nil
	})
	parked, sent, rows := b.depth(lot), b.depth(work0), b.audit()
	if parked+sent != 30 || sent == 0 || sent > 10 || len(rows) != sent {
		t.Errorf("%d parked, %d sent, %d audited of 30", parked, sent, len(rows))
	}
	for _, row := range rows {
		if !strings.HasPrefix(row, "REPLAY DONE") {
			t.Errorf("the audit has %q", row)
		}
	}
}

// Two replicas replay everything at the same time, while more is being parked: each message once, and none lost.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, second := b.serve(b.newSession(), b.connect(), func(c *Config) { c.LockWait = patience })
	all := ids(0, 60)
	b.parkAll(all...)
	b.q.LockWait = patience
	results := make(chan ran, 2)
	for _, server := range []string{b.server, second} {
		go func() {
			results <- decode[ran](b, b.callAt(server, "POST", "/admin/quarantine/replay", order{"confirm": true, "limit": 1000, "rate": 1000}))
		}()
	}
	b.parkAll(ids(60, 80)...)
	one, two := <-results, <-results
	rest := b.replay(order{"confirm": true, "limit": 1000, "rate": 1000})
	if one.Done+two.Done+rest.Done != 80 {
		t.Errorf("%d and %d and %d were replayed", one.Done, two.Done, rest.Done)
	}
	sent := keysOf(b.contents(work0))
	slices.Sort(sent)
	if !slices.Equal(sent, ids(0, 80)) {
		t.Errorf("sent were %q", sent)
	}
	b.hasDepth(lot, 0)
}

// Who cannot have the queue within LockWait is told so.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.LockWait = 50 * time.Millisecond })
	b.parkAll("a")
	h, err := b.q.hold(t.Context(), []string{lot})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []answer{
		b.call("GET", "/admin/quarantine", nil), b.call("GET", "/admin/quarantine/"+lot+"/a", nil), b.call("POST", "/admin/quarantine/replay", order{}),
		b.call("POST", "/admin/quarantine/discard", order{"because": "test"}),
	} {
		if call.status != http.StatusConflict || call.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", call.status, call.body)
		}
	}
	h.release()
	if got := b.list("").keys(); len(got) != 1 {
		t.Errorf("afterwards there are %q", got)
	}
}

func TestDiscardKeepsTheWholeMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	binary := amqp.Publishing{Body: []byte{0xff, 0, 1, 0x1b, '{'}, Headers: amqp.Table{"bytes": []byte{0, 1}, "nul": "a\x00b", "bad": "\xff"}, ReplyTo: "r"}
	b.park(parkedEvent("keep"), binary, amqp.Publishing{})
	garbage := b.list("").Items[1].Key
	r := decode[ran](b, b.call("POST", "/admin/quarantine/discard", order{"ids": []string{garbage}, "because": "not ours\u2026", "confirm": true},
		func(r *http.Request) { r.Header.Set("X-Operator", "eve") }))
	if r.Done != 1 || r.Items[0].Outcome != discarded {
		t.Errorf("answered %+v", r)
	}
	var body []byte
	var headers, properties, because, operator string
	if err := b.pool.QueryRow(t.Context(), `select body, headers::text, properties::text, because, operator from quarantine_audit`).
		Scan(&body, &headers, &properties, &because, &operator); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(body, binary.Body) || !strings.Contains(headers, `"nul":"a\u0000b"`) || !strings.Contains(properties, `"replyTo":"r"`) ||
		because != "not ours\u2026" || operator != "eve" {
		t.Errorf("the audit keeps %q %s %s %q %q", body, headers, properties, because, operator)
	}
	audit := decode[struct {
		Items []Entry `json:"items"`
	}](b, b.call("GET", "/admin/quarantine/audit", nil)).Items
	shown := decode[wholeEntry](b, b.call("GET", fmt.Sprintf("/admin/quarantine/audit/%d", audit[0].ID), nil))
	if shown.Body == nil || *shown.Body.Base64 != "/wABG3s=" || shown.Outcome != outcomeDone {
		t.Errorf("the audit shows %+v", shown)
	}
	for _, id := range []string{"0", "x", "9223372036854775808"} {
		if a := b.call("GET", "/admin/quarantine/audit/"+id, nil); a.status != http.StatusNotFound {
			t.Errorf("entry %s: %d", id, a.status)
		}
	}
	if r := b.discard(order{"because": "empty", "confirm": true}); r.Done != 2 { // an empty body is a body too
		t.Errorf("answered %+v", r)
	}
	b.hasDepth(lot, 0)
}

// Garbage has no id of its own; its digest names it, and it can be sent back all the same.
func TestGarbageIsReplayedByItsDigest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	garbage := parkedEvent("")
	garbage.Body = []byte{'{', 0xff}
	b.park(garbage, parkedEvent("a"))
	key := b.list("").Items[0].Key
	if len(key) != len(digestPrefix)+16 {
		t.Fatalf("its key is %q", key)
	}
	if r := b.replay(order{"ids": []string{key}, "confirm": true}); r.Done != 1 || r.Items[0].Forecast != WillBeInvalid {
		t.Errorf("answered %+v", r)
	}
	if d := b.contents(work0); !bytes.Equal(d[0].Body, garbage.Body) {
		t.Errorf("sent was %q", d[0].Body)
	}
}

// The parking lot is deleted under our hands: said, not spun on, and back by itself.
func TestQueueIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := b.ch.QueueDelete(lot, false, false, false); err != nil {
		t.Fatal(err)
	}
	for _, a := range []answer{b.call("GET", "/admin/quarantine", nil), b.call("POST", "/admin/quarantine/replay", order{"confirm": true})} {
		if a.status != http.StatusServiceUnavailable {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
}
