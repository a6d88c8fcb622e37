package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/internal/invariants"
	"example.com/banking/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

const lot = "banking.dead-letters"

// lookThrough asks for what is in the parking lot.
func lookThrough(t *testing.T, to *endpoints) (ids []string, err error) {
	t.Helper()
	b, err := newBroker(to)
	if err != nil {
		t.Fatal(err)
	}
	err = newQuarantines(b, to).Parked(t.Context(), lot, func(p invariants.Parked) {
		if p.Reason != "MAX_ATTEMPTS" || p.Queue != lot || p.Type != "Accounts.Account.Debited" || p.TransferID != "t" {
			t.Errorf("visited %+v", p)
		}
		ids = append(ids, p.MessageID)
	})
	return ids, err
}

// declared is a channel to a broker that has a queue of this name.
func declared(t *testing.T, url, name string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err == nil {
		_, err = ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	}
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// The service that owns a quarantine is asked, and nobody else: the broker's address leads nowhere here.
func TestQuarantinesAreSeenThroughTheirServices(t *testing.T) {
	t.Parallel()
	answers := map[string]string{ // to the transfer service
		"":  `{"items":[` + item(lot, "a", "") + "," + item(lot, "b", "") + `],"next":"n","depth":3}`,
		"n": `{"items":[` + item(lot, "c", "") + `],"next":null,"depth":3}`,
	}
	serve := func(answer http.HandlerFunc) string {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		return server.URL
	}
	refuse := func(status int, text string) string {
		return serve(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(text))
		})
	}
	to := &endpoints{AMQPURL: "amqp://127.0.0.1:1/", AdminToken: "secret"}
	to.AccountURL = refuse(http.StatusBadRequest, `{"status":400,"errors":[{"field":"queue","message":"is not a quarantine queue of this service"}]}`)
	to.TransferURL = serve(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Query().Get("queue") != lot {
			t.Errorf("asked was %s", r.URL)
		}
		_, _ = w.Write([]byte(answers[r.URL.Query().Get("after")]))
	})
	if ids, err := lookThrough(t, to); err != nil || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("seen are %q, %v", ids, err)
	}
	answers["n"] = `{"items":[],"next":null,"depth":3,"incomplete":"the broker has failed"}`
	if _, err := lookThrough(t, to); err == nil || !strings.Contains(err.Error(), "the broker has failed") {
		t.Errorf("half of it is %v", err)
	}
	to.TransferURL = refuse(http.StatusConflict, `{"status":409}`)
	if _, err := lookThrough(t, to); !errors.Is(err, errOccupied) {
		t.Errorf("with somebody else at it: %v", err)
	}
	to.TransferURL = refuse(http.StatusServiceUnavailable, `{"status":503}`)
	if _, err := lookThrough(t, to); err == nil || !strings.Contains(err.Error(), "the broker does not answer") {
		t.Errorf("without a service the broker is asked, and is not there: %v", err)
	}
}

// Without a service bank looks itself: in chunks, at all of it, and takes nothing.
func TestQuarantineIsSeenWithoutItsService(t *testing.T) {
	t.Parallel()
	const n = 3*peekChunk + 1
	to := &endpoints{AMQPURL: testenv.New(t).AMQPURL}
	ch := declared(t, to.AMQPURL, lot)
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var wanted []string
	for i := range n {
		wanted = append(wanted, fmt.Sprint(i))
		confirm, err := ch.PublishWithDeferredConfirm("", lot, true, false, amqp.Publishing{
			Headers: amqp.Table{"x-park-reason": "MAX_ATTEMPTS"},
			Body:    fmt.Appendf(nil, `{"messageId":"%d","type":"Accounts.Account.Debited","data":{"transferId":"t"}}`, i),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := confirm.WaitContext(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := lookThrough(t, to); err != nil || !slices.Equal(ids, wanted) {
		t.Errorf("seen are %d, %v: %q", len(ids), err, ids)
	}
	// Each is there once more, in its order, as soon as the broker has taken it back.
	got := func(ctx context.Context) (ids []string) {
		deliveries, err := ch.ConsumeWithContext(ctx, lot, "test", true, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			select {
			case d := <-deliveries:
				ids = append(ids, strings.Split(string(d.Body), `"`)[3])
			case <-ctx.Done():
				t.Fatal("not all came back")
			}
		}
		return ids
	}(t.Context())
	if !slices.Equal(got, wanted) {
		t.Errorf("left are %q", got)
	}
}

// A paused service takes calls and says nothing. It is not waited for: the look ends, and says who does not answer. One that has much to
// do, and says that it lives, is waited for.
func TestASilentServiceEndsTheLookAtAQuarantine(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	hang := func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin/quarantine" {
			asked.Add(1)
		}
		<-r.Context().Done()
	}
	paused := httptest.NewServer(http.HandlerFunc(hang))
	t.Cleanup(paused.Close)
	lived := make(chan struct{})
	once := sync.OnceFunc(func() { close(lived) })
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/healthz":
			once()
		case r.URL.Query().Get("queue") == lot:
			<-lived
			_, _ = w.Write([]byte(`{"items":[` + item(lot, "a", "") + `],"next":null,"depth":1}`))
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(slow.Close)
	b, err := newBroker(&endpoints{AMQPURL: "amqp://127.0.0.1:1/"})
	if err != nil {
		t.Fatal(err)
	}
	q := newQuarantines(b, &endpoints{AdminToken: "secret", AccountURL: paused.URL, TransferURL: slow.URL})
	q.aliveEvery, q.aliveTime, q.silentTime = 10*time.Millisecond, 5*time.Second, time.Hour
	seen := 0
	if err := q.Parked(t.Context(), lot, func(invariants.Parked) { seen++ }); err != nil || seen != 1 {
		t.Errorf("what another service shows: %d, %v", seen, err)
	}
	for _, queue := range []string{"account.transfer-requests_error", "account.other_error"} {
		err := q.Parked(t.Context(), queue, func(invariants.Parked) { t.Error("there is nothing to see") })
		if err == nil || !strings.Contains(err.Error(), queue+": the account service does not answer") || strings.Contains(err.Error(), "broker") {
			t.Errorf("what only the silent one knows: %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the silent service was asked %d times: each costs a wait", n)
	}
}
