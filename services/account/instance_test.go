package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/service"
	"example.com/banking/pkg/service/openapitest"
	"example.com/banking/services/account/ledger"
	amqp "github.com/rabbitmq/amqp091-go"
)

// patience bounds every wait. It is far longer than anything takes on a quiet machine.
const patience = 90 * time.Second

// await waits until the condition holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

// instance is the whole service, running in this process.
type instance struct {
	url    string
	client *http.Client
	cancel context.CancelFunc
	ended  chan error
}

// start starts an instance without waiting for anything. Variables are NAME=value.
func start(t testing.TB, variables ...string) *instance {
	t.Helper()
	cfg, err := service.Load[config](append([]string{"HTTP_ADDR=127.0.0.1:0"}, variables...), defaults)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := newApp(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	i := &instance{
		url:    "http://" + a.server.Addr(),
		client: &http.Client{Transport: openapitest.New(t, documented(t), nil), Timeout: patience},
		cancel: cancel,
		ended:  make(chan error, 1),
	}
	go func() { i.ended <- a.run(ctx) }()
	t.Cleanup(func() { i.stop(t) })
	return i
}

// documented is the whole document that an instance serves.
func documented(t testing.TB) []byte {
	t.Helper()
	described, err := document()
	if err != nil {
		t.Fatal(err)
	}
	return described
}

// startReady starts an instance on the servers of env and waits until it is ready.
func startReady(t testing.TB, env *testenv.Env, database string, variables ...string) *instance {
	t.Helper()
	i := start(t, append([]string{"AMQP_URL=" + env.AMQPURL, "DATABASE_URL=" + database}, variables...)...)
	i.awaitReady(t)
	return i
}

func (i *instance) awaitReady(t testing.TB) {
	t.Helper()
	await(t, "the instance to be ready", func() bool { return i.get(t, "/readyz").status == http.StatusOK })
}

// stop stops the instance, which must end cleanly. A second time it does nothing.
func (i *instance) stop(t testing.TB) {
	t.Helper()
	i.cancel()
	select {
	case err, running := <-i.ended:
		if running && err != nil {
			t.Errorf("stopped with %v", err)
		}
		if running {
			close(i.ended)
		}
	case <-time.After(patience):
		t.Error("the instance does not stop")
	}
}

func (i *instance) get(t testing.TB, path string) answer {
	t.Helper()
	return call(t, i.client, http.MethodGet, i.url+path, "")
}

// metric is the value of one series, e.g. `inbox_messages_total{consumer="q",result="done"}`, 0 when there is none.
func (i *instance) metric(t testing.TB, series string) int {
	t.Helper()
	for line := range strings.Lines(string(i.get(t, "/metrics").body)) {
		if text, ok := strings.CutPrefix(line, series+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				t.Fatalf("metric %s: %v", series, err)
			}
			return int(value)
		}
	}
	return 0
}

// handled is how many deliveries of a queue the instance has ended in the given way.
func (i *instance) handled(t testing.TB, kind ledger.Kind, outcome string) int {
	t.Helper()
	return i.metric(t, fmt.Sprintf("messaging_deliveries_total{outcome=%q,queue=%q}", outcome, queueOf[kind].name))
}

// wire is the test's own line to the broker: it speaks as transfer does and listens to what account says.
type wire struct {
	channel *amqp.Channel
	events  string
}

// newWire needs the exchange, so an instance has to be ready.
func newWire(t testing.TB, env *testenv.Env) *wire {
	t.Helper()
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return wireOn(t, conn)
}

func wireOn(t testing.TB, conn *amqp.Connection) *wire {
	t.Helper()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.Confirm(false); err != nil {
		t.Fatal(err)
	}
	queue, err := channel.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := channel.QueueBind(queue.Name, contract.AccountEventsPattern, contract.EventsExchange, false, nil); err != nil {
		t.Fatal(err)
	}
	return &wire{channel, queue.Name}
}

// publish sends bodies under the routing key of a kind and waits for the confirms.
func (w *wire) publish(t testing.TB, kind ledger.Kind, bodies ...[]byte) {
	t.Helper()
	var confirms []*amqp.DeferredConfirmation
	for _, body := range bodies {
		confirm, err := w.channel.PublishWithDeferredConfirm(contract.EventsExchange, contract.RoutingKey(string(kind)), true, false,
			amqp.Publishing{ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		confirms = append(confirms, confirm)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, confirm := range confirms {
		if acked, err := confirm.WaitContext(ctx); err != nil || !acked {
			t.Fatalf("publish: acked %v, %v", acked, err)
		}
	}
}

// request sends one request of a transfer in so many copies, and answers its envelope's id.
func (w *wire) request(t testing.TB, kind ledger.Kind, tr transfer, copies int) string {
	t.Helper()
	envelope := tr.envelope(t, kind)
	body, err := envelope.Encode()
	if err != nil {
		t.Fatal(err)
	}
	bodies := make([][]byte, copies)
	for i := range bodies {
		bodies[i] = body
	}
	w.publish(t, kind, bodies...)
	return envelope.MessageID
}

// take takes one message out of a queue, waiting for it.
func (w *wire) take(t testing.TB, queue string) amqp.Delivery {
	t.Helper()
	var delivery amqp.Delivery
	await(t, "a message in "+queue, func() bool {
		var ok bool
		var err error
		if delivery, ok, err = w.channel.Get(queue, true); err != nil {
			t.Fatal(err)
		}
		return ok
	})
	return delivery
}

// rest takes everything account has said and nobody took yet. What is still in the outbox is not among it.
func (w *wire) rest(t testing.TB) (all []said) {
	t.Helper()
	for {
		delivery, ok, err := w.channel.Get(w.events, true)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return all
		}
		s, err := decodeSaid(delivery.Body)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
}

// awaitSent waits until the relay has sent everything.
func (b *bank) awaitSent(t testing.TB) {
	t.Helper()
	await(t, "an empty outbox", func() bool {
		var waiting int
		if err := b.pool.QueryRow(context.Background(), `select count(*) from outbox`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
		return waiting == 0
	})
}

// awaitLeg waits until the transfer is known.
func (b *bank) awaitLeg(t testing.TB, tr transfer) {
	t.Helper()
	await(t, "a leg", func() bool {
		_, _, err := b.leg(context.Background(), tr.id)
		return err == nil
	})
}
