package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	amqp "github.com/rabbitmq/amqp091-go"
)

var tooLarge = &messaging.Refused{Exception: &amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - message size 20 is larger than configured max size 10", Server: true}}

// limited behaves as RabbitMQ does with a body above its size limit: the channel is closed, and nobody whose confirm was
// outstanding gets one.
func limited(batch []messaging.Publishing) ([]messaging.Outcome, error) {
	for _, p := range batch {
		if strings.Contains(string(p.Body), "huge") {
			return make([]messaging.Outcome, len(batch)), fmt.Errorf("publish: %w", tooLarge)
		}
	}
	return ackAll(batch)
}

func hugeMessage(t *testing.T, id string) Message {
	t.Helper()
	d := draft(id)
	d.Data = []byte(`{"reason":"huge"}`)
	m, err := NewMessage(d)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// One bad row at the head of the table must not keep its neighbours from being sent, and must not be tried for ever.
func TestRefusedMessageIsSetAsideAndItsNeighboursAreSent(t *testing.T) {
	t.Parallel()
	pool, b, registry := newPool(t), &broker{}, prometheus.NewRegistry()
	b.set(limited)
	config := Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, MaxAttempts: 3, Registerer: registry}
	first := newOutbox(config)
	config.Registerer = nil
	second := newOutbox(config)
	insert(t, first, hugeMessage(t, "huge"))
	insert(t, first, newMessages(t, 5)...)
	run(t, first)
	run(t, second)

	eventually(t, "the bad row is set aside", func() bool { return rowCount(t, pool, "set_aside_at is not null") == 1 })
	awaitNothingToSend := func() bool { return rowCount(t, pool, "set_aside_at is null") == 0 }
	eventually(t, "the others are sent", awaitNothingToSend)
	list, err := ListSetAside(t.Context(), pool, 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].MessageID != "huge" || list[0].Attempts != 3 || !strings.Contains(list[0].Error, "larger than configured max size") {
		t.Errorf("set aside: %+v", list)
	}
	// Handed over once in the batch that failed, and then alone; afterwards never again.
	if n := b.times("huge"); n < 3 || n > 5 {
		t.Errorf("the bad row was handed over %d times", n)
	}
	eventually(t, "the gauge shows it", func() bool { return metric(t, registry, "outbox_set_aside_messages") == 1 })

	b.set(nil) // the broker's limit was raised
	n, err := RetrySetAside(t.Context(), pool, "huge")
	if err != nil || n != 1 {
		t.Fatalf("RetrySetAside: %d, %v", n, err)
	}
	awaitEmpty(t, pool)
	eventually(t, "the gauge shows that too", func() bool { return metric(t, registry, "outbox_set_aside_messages") == 0 })
}

func TestNeighboursOfARefusedMessageAreSentOnce(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	b.set(limited)
	acked := map[string]int{} // only written by the one relay batch at a time
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		outcomes, err := limited(batch)
		for i, p := range batch {
			if outcomes[i] == messaging.Acked {
				acked[p.MessageId]++
			}
		}
		return outcomes, err
	})
	o := newOutbox(Config{Pool: pool, Publisher: b, MaxAttempts: 1})
	insert(t, o, hugeMessage(t, "huge"))
	insert(t, o, newMessages(t, 5)...)
	if _, err := o.relayBatch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if len(acked) != 5 {
		t.Errorf("acked: %v", acked)
	}
	for id, n := range acked {
		if n != 1 {
			t.Errorf("%s was acked %d times", id, n)
		}
	}
	if n := rowCount(t, pool, "set_aside_at is not null and message_id = 'huge'"); n != 1 || rowCount(t, pool, "true") != 1 {
		t.Error("the bad row is not the only one left")
	}
}

// What cannot be put on the wire at all, or could not be read by anyone, does not become better by trying.
func TestUnsendableMessageIsSetAsideAtOnce(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	b.set(func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		outcomes, _ := ackAll(batch)
		var err error
		for i, p := range batch {
			if p.MessageId == "long" {
				outcomes[i], err = messaging.Unknown, &messaging.Unpublishable{Index: i, Err: errors.New("message id over 255 bytes")}
			}
		}
		return outcomes, err
	})
	o := newOutbox(Config{Pool: pool, Publisher: b})
	garbage := newMessage(t, "garbage")
	garbage.Body = []byte(`{"messageId":`)
	insert(t, o, newMessage(t, "long"), garbage, newMessage(t, "good"))
	if _, err := o.relayBatch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, pool, "set_aside_at is not null and attempts = 1 and message_id in ('long', 'garbage')"); n != 2 {
		t.Errorf("%d rows are set aside", n)
	}
	if b.times("garbage") != 0 || b.times("good") != 1 || rowCount(t, pool, "true") != 2 {
		t.Errorf("garbage was published %d times, good %d times", b.times("garbage"), b.times("good"))
	}
}

// None of these says anything about the row.
func TestNobodysFaultCountsNoAttempt(t *testing.T) {
	t.Parallel()
	missingExchange := &amqp.Error{Code: amqp.NotFound, Reason: "NOT_FOUND - no exchange"}
	forced := &amqp.Error{Code: amqp.ConnectionForced, Reason: "CONNECTION_FORCED - broker forced connection closure", Server: true}
	reset := &amqp.Error{Code: amqp.FrameError, Reason: "read: connection reset by peer"} // as the client library reports it
	consumerTimeout := &amqp.Error{Code: amqp.PreconditionFailed, Reason: "PRECONDITION_FAILED - delivery acknowledgement timed out", Server: true}
	for name, test := range map[string]struct {
		answer func([]messaging.Publishing) ([]messaging.Outcome, error)
		fails  bool // the whole attempt: the relay waits before the next one
	}{
		"returned":         {answers(func(messaging.Publishing) messaging.Outcome { return messaging.Returned }), false},
		"nacked":           {answers(func(messaging.Publishing) messaging.Outcome { return messaging.Nacked }), false},
		"not connected":    {unknownAll(errNotConnected), true},
		"connection lost":  {unknownAll(forced), true},
		"connection reset": {unknownAll(fmt.Errorf("not connected to the broker: %w", reset)), true},
		"another channel":  {unknownAll(fmt.Errorf("not connected to the broker: %w", consumerTimeout)), true},
		"timeout":          {unknownAll(context.DeadlineExceeded), true},
		"exchange missing": {unknownAll(missingExchange), true},
		"no answer at all": {func([]messaging.Publishing) ([]messaging.Outcome, error) { return nil, errNotConnected }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, b := newPool(t), &broker{}
			b.set(test.answer)
			o := newOutbox(Config{Pool: pool, Publisher: b, MaxAttempts: 1})
			insert(t, o, newMessages(t, 3)...)
			_, err := o.relayBatch(t.Context(), 0)
			if (err != nil) != test.fails {
				t.Errorf("error: %v", err)
			}
			if n := rowCount(t, pool, "attempts = 0 and set_aside_at is null and last_error is not null and next_attempt_at > now()"); n != 3 {
				t.Errorf("%d of 3 rows wait for their next attempt", n)
			}
			if b.callCount() != 1 {
				t.Errorf("published %d times", b.callCount())
			}
		})
	}
}

// When the time for going one by one is over, the rows whose turn did not come have done nothing wrong.
func TestOneRowThatTakesAllTheTimeBlamesNoOther(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	publisher := publisherFunc(func(ctx context.Context, batch []messaging.Publishing) ([]messaging.Outcome, error) {
		if len(batch) == 1 {
			<-ctx.Done()
		}
		return make([]messaging.Outcome, len(batch)), tooLarge
	})
	o := newOutbox(Config{Pool: pool, Publisher: publisher, MaxAttempts: 1, PublishTimeout: 50 * time.Millisecond})
	insert(t, o, newMessages(t, 5)...)
	if _, err := o.relayBatch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if n := rowCount(t, pool, "attempts = 0 and set_aside_at is null and last_error is null"); n != 4 {
		t.Errorf("%d of 4 rows are untouched", n)
	}
}

func unknownAll(err error) func([]messaging.Publishing) ([]messaging.Outcome, error) {
	return func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		return make([]messaging.Outcome, len(batch)), err
	}
}

func TestReturnedMessageWaitsWhileOthersFlow(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	b.set(answers(func(p messaging.Publishing) messaging.Outcome {
		if p.MessageId == "no-reader" {
			return messaging.Returned
		}
		return messaging.Acked
	}))
	o := start(t, Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, MaxAttempts: 1})
	send(t, o, newMessage(t, "no-reader"))
	send(t, o, newMessages(t, 20)...)
	eventually(t, "only one is left", func() bool {
		return rowCount(t, pool, "true") == 1 && rowCount(t, pool, "message_id = 'no-reader'") == 1
	})
	b.set(nil) // the queue is back
	awaitEmpty(t, pool)
}

// An outage blames no row, costs no spinning, and when it ends everything goes by itself.
func TestBrokerOutage(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	b.set(unknownAll(errNotConnected))
	o := start(t, Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, MaxAttempts: 1, BatchSize: 10})
	messages := newMessages(t, 50)
	for _, m := range messages {
		send(t, o, m) // an impatient service
	}
	eventually(t, "the relay has failed several times", func() bool { return b.callCount() >= 8 })
	// Three loops that start at 100 ms and double: eight failures take at least the 300 ms of the first pauses, less jitter.
	if took := b.between(0, 7); took < 150*time.Millisecond {
		t.Errorf("8 failures within %s: the relay does not wait", took)
	}
	if n := rowCount(t, pool, "attempts = 0 and set_aside_at is null"); n != 50 {
		t.Errorf("%d of 50 rows are waiting", n)
	}
	eventually(t, "the gauge shows what piles up", func() bool { return testutil.ToFloat64(o.metrics.waiting) == 50 })
	b.set(nil)
	awaitEmpty(t, pool)
}

// The relay dies after the broker has taken the messages and before the rows are gone: they are sent again, under the same ids.
func TestRelayKilledBetweenPublishAndDelete(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	kill := func(batch []messaging.Publishing) ([]messaging.Outcome, error) {
		b.set(nil) // once
		const relays = `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and state = 'idle in transaction' and pid <> pg_backend_pid()`
		tag, err := pool.Exec(context.Background(), relays)
		if err != nil || tag.RowsAffected() != 1 {
			return nil, fmt.Errorf("killed %d relays: %w", tag.RowsAffected(), err)
		}
		return ackAll(batch)
	}
	b.set(kill)
	o := newOutbox(Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond})
	messages := newMessages(t, 10)
	insert(t, o, messages...)
	run(t, o)
	awaitEmpty(t, pool)
	for _, m := range messages {
		if n := b.times(m.ID); n != 2 {
			t.Errorf("%s published %d times, want twice", m.ID, n)
		}
	}
}

// A relay in another process that hangs with its rows locked must not hold up the rest, and its rows are free when it is gone.
func TestRowsOfAStuckRelay(t *testing.T) {
	t.Parallel()
	pool, b := newPool(t), &broker{}
	o := newOutbox(Config{Pool: pool, Publisher: b, Poll: 20 * time.Millisecond, BatchSize: 3})
	insert(t, o, newMessages(t, 6)...)
	stuck, rows, err := o.claim(t.Context(), 0)
	if err != nil || len(rows) != 3 {
		t.Fatalf("claimed %d rows: %v", len(rows), err)
	}
	run(t, o)
	eventually(t, "the free rows are sent", func() bool { return b.count() == 3 })
	stuck.Rollback()
	awaitEmpty(t, pool)
	if b.count() != 6 {
		t.Errorf("published %d of 6", b.count())
	}
}

func TestPublishedIsCountedByOutcome(t *testing.T) {
	t.Parallel()
	pool, b, registry := newPool(t), &broker{}, prometheus.NewRegistry()
	b.set(answers(func(p messaging.Publishing) messaging.Outcome {
		if p.MessageId == "no-reader" {
			return messaging.Returned
		}
		return messaging.Acked
	}))
	o := newOutbox(Config{Pool: pool, Publisher: b, Registerer: registry})
	insert(t, o, newMessage(t, "no-reader"), newMessage(t, "a"), newMessage(t, "b"))
	if _, err := o.relayBatch(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := o.measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"outbox_published_total acked": 2, "outbox_published_total returned": 1, "outbox_published_total nacked": 0,
		"outbox_waiting_messages": 1, "outbox_set_aside_messages": 0,
	}
	for name, value := range want {
		if got := metric(t, registry, name); got != value {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
}

// metric reads a counter or gauge by its name, or by its name and the value of its label.
func metric(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			full := family.GetName()
			for _, label := range m.GetLabel() {
				full += " " + label.GetValue()
			}
			if full == name {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
