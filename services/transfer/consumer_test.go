package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The three ways a transfer can end, each event delivered twice.
func TestTransferRunsItsCourse(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	for name, c := range map[string]struct {
		told   []string
		status string
		reason string
		facts  []string
		sent   []string
	}{
		"completed": {
			[]string{contract.AccountDebited, contract.AccountCredited}, "COMPLETED", "",
			[]string{"CREDITED", "DEBITED", "REQUESTED"},
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferCompleted},
		},
		"rejected": {
			[]string{contract.AccountDebitRejected}, "REJECTED", "INSUFFICIENT_FUNDS",
			[]string{"DEBIT_REJECTED", "REQUESTED"},
			[]string{contract.TransferRequested, contract.TransferRejected},
		},
		"refunded": {
			[]string{contract.AccountDebited, contract.AccountCreditRejected, contract.AccountRefunded}, "REFUNDED", "ACCOUNT_FROZEN",
			[]string{"CREDIT_REJECTED", "DEBITED", "REFUNDED", "REQUESTED"},
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested, contract.TransferRefunded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := b.request(newOrder())
			var events []event
			for i, messageType := range c.told {
				events = append(events, tells(accepted, messageType))
				b.twice(events[i])
				b.awaitSent(accepted.ID, i+2) // the real account answers only what it was asked
			}
			got := b.awaitStatus(accepted.ID, c.status)
			if !slices.Equal(got.facts(), c.facts) || pointee(got.Reason) != c.reason {
				t.Errorf("facts %v and reason %q, want %v and %q", got.facts(), pointee(got.Reason), c.facts, c.reason)
			}
			b.settled()
			messages := b.sent.about(accepted.ID)
			if types := b.sent.types(accepted.ID); !slices.Equal(types, c.sent) {
				t.Fatalf("sent %v, want %v", types, c.sent)
			}
			for i, m := range messages {
				cause := ""
				if i > 0 {
					cause = events[i-1].MessageID
				}
				checkMessage(t, m, cause)
			}
			last := string(messages[len(messages)-1].Data)
			want := fmt.Sprintf(`{"transferId":%q,`, got.ID)
			if c.reason != "" {
				want += fmt.Sprintf(`"reason":%q,`, c.reason)
			}
			if want += fmt.Sprintf(`"status":%q}`, c.status); last != want {
				t.Errorf("the end is announced as %s, want %s", last, want)
			}
		})
	}
	b.nothingParked()
}

// checkMessage checks everything about an outgoing message that does not depend on its type.
func checkMessage(t *testing.T, m message, cause string) {
	t.Helper()
	d := m.delivery
	if d.RoutingKey != contract.RoutingKey(m.Type) || d.Exchange != contract.EventsExchange {
		t.Errorf("%s was published to %q under %q", m.Type, d.Exchange, d.RoutingKey)
	}
	if d.MessageId != m.MessageID || d.Type != m.Type || d.CorrelationId != m.CorrelationID || d.AppId != "transfer" ||
		d.DeliveryMode != amqp.Persistent || d.ContentType != "application/json" || d.Timestamp.IsZero() {
		t.Errorf("properties of %s: %+v", m.Type, d)
	}
	if parent, _ := d.Headers["traceparent"].(string); len(parent) != 55 {
		t.Errorf("traceparent of %s is %q", m.Type, parent)
	}
	if _, err := uuid.Parse(m.MessageID); err != nil {
		t.Errorf("messageId of %s: %v", m.Type, err)
	}
	if m.CausationID != cause {
		t.Errorf("%s was caused by %q, want %q", m.Type, m.CausationID, cause)
	}
	if m.OccurredAt.Location() != time.UTC || time.Since(m.OccurredAt) > patience {
		t.Errorf("%s occurred at %s", m.Type, m.OccurredAt)
	}
}

// lock holds the row of a transfer, so that whoever handles an event about it waits, until the result is called.
func (b *bank) lock(id uuid.UUID) (release func()) {
	b.t.Helper()
	tx, err := b.db.Begin(b.t.Context())
	b.must(err)
	_, err = tx.Exec(b.t.Context(), `select from transfers where id = $1 for update`, id)
	b.must(err)
	return func() {
		b.t.Helper()
		b.must(tx.Rollback(b.t.Context()))
	}
}

func (b *bank) awaitHandlerWaiting() {
	b.t.Helper()
	b.eventually("the handler waits for the row", func() bool {
		return b.count(`select count(*) from pg_stat_activity where datname = current_database() and application_name = 'transfer' and wait_event_type = 'Lock'`) > 0
	})
}

// What is running when the service is told to stop is finished, and is not a failure.
func TestStoppingFinishesWhatIsRunning(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	accepted := b.request(newOrder())
	b.awaitSent(accepted.ID, 1)
	release := b.lock(accepted.ID)
	b.publish(tells(accepted, contract.AccountDebited))
	b.awaitHandlerWaiting()
	ended := make(chan error, 1)
	go func() { ended <- b.stop() }()
	b.eventually("the service takes no more requests", func() bool {
		_, err := http.Get(b.url + "/healthz")
		return err != nil
	})
	release()
	b.must(<-ended)
	if n := b.count(`select count(*) from transfers where id = $1 and status = 'DEBITED'`, accepted.ID); n != 1 {
		t.Error("the running event was not finished")
	}
	if n := b.count(`select count(*) from outbox`); n != 0 {
		t.Errorf("%d messages were not sent before the end", n)
	}
	b.settled()
	b.nothingParked()
	b.awaitSent(accepted.ID, 2) // the broker has both; this test's own consumer may be a moment behind
	if types := b.sent.types(accepted.ID); !slices.Equal(types, []string{contract.TransferRequested, contract.TransferCreditRequested}) {
		t.Errorf("sent %v", types)
	}
}

// What cannot be finished in time goes back to the queue, and the next replica takes it as if it had never been touched.
func TestStoppingGivesBackWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	b := startBank(t, "SHUTDOWN_GRACE=2s")
	accepted := b.request(newOrder())
	b.awaitSent(accepted.ID, 1)
	release := b.lock(accepted.ID)
	b.publish(tells(accepted, contract.AccountDebited))
	b.awaitHandlerWaiting()
	if err := b.stop(); err != nil {
		t.Logf("the service did not stop in time, as it says: %v", err)
	}
	if ready, _ := b.env.QueueDepth(t, contract.AccountEventsRetry); ready != 0 {
		t.Errorf("%d messages are on a lap", ready)
	}
	b.nothingParked()
	release()
	b.start("MAX_ATTEMPTS=1", "RETRY_DELAY=5s") // an attempt spent before would park it now
	b.awaitStatus(accepted.ID, "DEBITED")
	b.settled()
	b.nothingParked()
}

// An operator finds the broker as the contract describes it.
func TestTopologyIsTheContracts(t *testing.T) {
	t.Parallel()
	b := startBank(t)
	want := map[string]map[string]any{
		"transfer.account-events": {
			"x-queue-type": "quorum", "x-dead-letter-exchange": "transfer.retry", "x-dead-letter-strategy": "at-least-once",
			"x-overflow": "reject-publish", "x-delivery-limit": 2147483647.0,
		},
		"transfer.account-events.retry": {
			"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "transfer.account-events", "x-message-ttl": 5000.0,
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-delivery-limit": 2147483647.0,
		},
		"banking.dead-letters": {"x-queue-type": "quorum", "x-delivery-limit": 2147483647.0},
	}
	found := 0
	for _, q := range b.env.Queues(t) {
		args, ours := want[q.Name]
		if !ours {
			continue
		}
		found++
		if !q.Durable || q.Type != "quorum" || fmt.Sprint(q.Arguments) != fmt.Sprint(args) {
			t.Errorf("%s (%s, durable %v) has %v, want %v", q.Name, q.Type, q.Durable, q.Arguments, args)
		}
	}
	if found != len(want) {
		t.Errorf("%d of %d queues are there", found, len(want))
	}

	// A message that dies of anything but a rejection does not enter the lap, where the broker would drop it as a cycle.
	b.must(b.stop())
	b.publishRaw("", "transfer.account-events", amqp.Publishing{Expiration: "1", Body: []byte("expired")})
	if d := b.parked(); string(d.Body) != "expired" {
		t.Errorf("parked %s", d.Body)
	}
}

// An operator who sees the tiered profile finds one queue for each wait and what its jitter makes of it, and the lap's still there.
func TestTiersAreTheContracts(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_PROFILE=tiered")
	want := map[string]float64{
		"": 5000, ".4s": 4000, ".5s": 5000, ".6s": 6000, ".24s": 24000, ".30s": 30000, ".36s": 36000, ".4m": 240000, ".5m": 300000, ".6m": 360000,
	}
	for _, q := range b.env.Queues(t) {
		name, ours := strings.CutPrefix(q.Name, "transfer.account-events.retry")
		if !ours {
			continue
		}
		args := map[string]any{
			"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "transfer.account-events", "x-message-ttl": want[name],
			"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish", "x-delivery-limit": 2147483647.0,
		}
		if fmt.Sprint(q.Arguments) != fmt.Sprint(args) {
			t.Errorf("%s has %v, want %v", q.Name, q.Arguments, args)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
