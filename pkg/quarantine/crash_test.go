package quarantine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"
	amqp "github.com/rabbitmq/amqp091-go"
)

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
	if r.Stopped == "" || r.Done > 0 || r.Failed != 2 || r.Items[0].Outcome != OutcomeUnknown {
		t.Errorf("answered %+v", r)
	}
	if rows := b.audit(); !slices.Equal(rows, []string{"REPLAY UNKNOWN a", "REPLAY UNKNOWN b"}) {
		t.Errorf("the audit has %q", rows)
	}
	b.hasDepth(lot, 2)
	b.hasDepth(work0, 2)
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

// A database that takes connections and says nothing, as a frozen one does, must not keep a client for longer than 10 s.
func TestASilentDatabaseIsAnsweredForInTime(t *testing.T) {
	t.Parallel()
	if defaultLockWait+lockMargin+time.Second > 10*time.Second { // a second to let go
		t.Errorf("the queues are waited for %s and %s", defaultLockWait, lockMargin)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	pool, err := pgxpool.New(t.Context(), "postgres://u@"+silent.Addr().String()+"/db?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b := newBench(t, func(c *Config) { c.Pool, c.LockWait = pool, 50*time.Millisecond })
	began := time.Now()
	if answer := b.call("GET", "/admin/quarantine", nil); answer.status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", answer.status, answer.body)
	}
	if took := time.Since(began); took > sqlTime {
		t.Errorf("answered after %s", took)
	}
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
