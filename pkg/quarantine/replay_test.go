package quarantine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
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
		for _, counted := range []string{"x-delivery-count", "x-acquired-count"} { // by the broker, with each look
			delete(before[i].Headers, counted)
			delete(after[i].Headers, counted)
		}
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
	delete(d.Headers, "x-delivery-count") // the broker's own, for a quorum queue
	headers := slices.Sorted(maps.Keys(d.Headers))
	if want := []string{"foreign", "traceparent", "x-origin-exchange", "x-origin-queue", "x-origin-routing-key", "x-replay-count", "x-replayed-at"}; !slices.Equal(headers, want) {
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

// What the broker moved has no header of ours. A replay finds its way by the deaths, and where none is told the refusal says so.
func TestMovedByTheBrokerGoesBackToo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other, err := b.ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.ch.QueueBind(other.Name, "accounts.#", contract.EventsExchange, false, nil); err != nil {
		t.Fatal(err)
	}
	rejected := func(id, exchange string) amqp.Publishing {
		return amqp.Publishing{Body: []byte(event(id)), Headers: amqp.Table{"x-first-death-reason": "rejected", "x-first-death-queue": work0, "x-death": []any{amqp.Table{
			"queue": work0, "reason": "rejected", "count": int64(1), "exchange": exchange, "routing-keys": []any{"accounts.account.debited"}, "time": time.Now()}}}}
	}
	b.park(rejected("a", contract.EventsExchange), rejected("b", contract.EventsExchange), rejected("c", "elsewhere"), amqp.Publishing{Body: []byte(event("bare"))})
	listed := b.list("?reason=" + retry.ReasonRejected)
	if got := listed.keys(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Fatalf("listed are %q", got)
	}
	if i := listed.Items[0]; i.Attempts != 1 || i.OriginQueue != work0 || i.ParkedAt == nil {
		t.Errorf("listed as %+v", i)
	}
	r := b.replay(order{"to": "exchange", "confirm": true, "force": true, "ids": []string{"a", "c", "bare"}})
	if r.Done != 1 || r.Refused != 2 || !strings.HasSuffix(r.Items[1].Detail, "use --to queue") || !strings.Contains(r.Items[2].Detail, "first published") {
		t.Errorf("to the exchange it answers %+v", r)
	}
	b.hasDepth(other.Name, 1)
	r = b.replay(order{"confirm": true})
	if r.Done != 2 || r.Refused != 1 || strings.Contains(r.Items[2].Detail, "--to exchange") {
		t.Errorf("to the queue it answers %+v", r)
	}
	b.hasDepth(work0, 3)
	b.hasDepth(lot, 1)
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
	if r.Done != 1 || r.Failed != 1 || r.Items[0].Outcome != OutcomeFailed || !strings.Contains(r.Items[0].Detail, "no queue") {
		t.Errorf("answered %+v", r)
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY DONE tomorrow", "REPLAY FAILED nowhere", "REPLAY DONE a"}) {
		t.Errorf("the audit has %q", rows)
	}
	b.hasDepth(lot, 1)
}

// growing is a session that publishes some messages larger than they were parked: the broker's limit was another one then.
type growing struct{ *messaging.Session }

func (s growing) Publish(ctx context.Context, messages []messaging.Publishing) ([]messaging.Outcome, error) {
	messages = slices.Clone(messages)
	for i := range messages {
		if strings.HasPrefix(messages[i].MessageId, "large") {
			messages[i].Body = make([]byte, 17<<20)
		}
	}
	return s.Session.Publish(ctx, messages)
}

// A message that the broker refuses for itself fails alone, in its words, and the run goes on.
func TestRefusedForItself(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.Session = growing{c.Session.(*messaging.Session)} })
	b.parkAll("large 1", "a", "large 2", "b")
	for _, o := range []order{{"ids": []string{"large 1"}, "confirm": true}, {"confirm": true, "rate": 1000}} {
		r := b.replay(o)
		if r.Stopped != "" || r.Failed+r.Done != r.Matched {
			t.Errorf("answered %+v", r)
		}
		for _, item := range r.Items {
			large := strings.HasPrefix(item.Key, "large")
			if large && (item.Outcome != OutcomeFailed || !strings.Contains(item.Detail, "larger than")) || !large && item.Outcome != replayed {
				t.Errorf("%s: %s %s", item.Key, item.Outcome, item.Detail)
			}
		}
	}
	sent := keysOf(b.contents(work0))
	slices.Sort(sent)
	if sent = slices.Compact(sent); !slices.Equal(sent, []string{"a", "b"}) { // twice is possible: their neighbour took their confirms along
		t.Errorf("sent were %q", sent)
	}
	if got := b.list("").keys(); !slices.Equal(got, []string{"large 1", "large 2"}) {
		t.Errorf("parked are %q now", got)
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY FAILED large 1", "REPLAY FAILED large 1", "REPLAY DONE a", "REPLAY FAILED large 2", "REPLAY DONE b"}) {
		t.Errorf("the audit has %q", rows)
	}
}
