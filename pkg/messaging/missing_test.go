package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/management"
	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// An acked message whose copy went nowhere is gone, and the broker's confirm says nothing: it only means that the exchange had no queue
// for it. So the copy is mandatory, and the original stays until the copy is in a queue.
func TestDeletedQuarantineLosesNothing(t *testing.T) {
	t.Parallel()
	for road, c := range map[string]struct {
		service                func() (messaging.SessionConfig, messaging.ConsumerConfig)
		key, queue, quarantine string
		body                   string
		attempts               int
	}{
		"parking lot": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return transfer(unknownTransfer) },
			debited, contract.AccountEventsQueue, contract.ParkingLot, poisonBody, 3},
		"error queue": {func() (messaging.SessionConfig, messaging.ConsumerConfig) {
			return account(unknownTransfer, 10*time.Millisecond)
		},
			requested, requestQueue, errorQueue, body("m"), 2},
	} {
		t.Run(road, func(t *testing.T) {
			t.Parallel()
			s, consumer := c.service()
			s.CheckInterval = time.Hour // nobody looks; the return alone must bring it back
			f := start(t, s, consumer)
			if _, err := f.client.QueueDelete(c.quarantine, false, false, false); err != nil {
				t.Fatal(err)
			}
			f.publishBody(c.key, c.body)
			f.notReady(c.quarantine)
			f.eventually("the queue to be back", func() error { // asked of the statistics: asking for a missing queue ends the channel
				if !slices.ContainsFunc(f.env.Queues(t), func(q testenv.Queue) bool { return q.Name == c.quarantine }) {
					return errors.New("it is not")
				}
				return nil
			})
			d := f.take(c.quarantine)
			f.checkQuarantined(d, s.Name, c.queue, c.attempts, retry.ReasonMaxAttempts, retry.NotFound)
			if string(d.Body) != c.body {
				t.Errorf("quarantined %s", d.Body)
			}
			f.becomesReady()
			f.empty(c.queue, c.quarantine)
		})
	}
}

// What should be dead-lettered to an exchange that somebody deleted waits where nobody sees it. So readiness asks for exchanges too.
func TestDeletedExchangesAreReportedAndComeBack(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	s.CheckInterval = 200 * time.Millisecond
	f := start(t, s, c)
	for _, exchange := range []string{contract.RetryExchange, contract.DeadLetterExchange, contract.EventsExchange} {
		if err := f.client.ExchangeDelete(exchange, false, false); err != nil {
			t.Fatal(err)
		}
		f.notReady("exchange " + exchange)
		f.becomesReady()
	}
	f.publishBody(debited, poisonBody)
	f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound)
}

// A quarantine that takes no more is the same as one that is gone: the broker's refusal is seen, the message stays.
func TestFullQuarantineHoldsTheMessage(t *testing.T) {
	t.Parallel()
	s, c := transfer(func(context.Context, *messaging.Message) error { return retry.Errorf(retry.Invariant, "no") })
	var failures failureLines
	s.Logger = failures.logger()
	f := start(t, s, c)
	policy := map[string]any{"pattern": "^banking.dead-letters$", "apply-to": "queues", "definition": map[string]any{"max-length": 1, "overflow": "reject-publish"}}
	if err := management.New(f.env.ManagementURL).Put(t.Context(), "/api/policies/"+f.env.VHost+"/full", policy); err != nil {
		t.Fatal(err)
	}
	kept := 0 // a queue takes some more until it has heard of the policy
	f.eventually("a refusal", func() error {
		f.publishBody(debited, body(fmt.Sprint("m-", kept)))
		kept++
		if err := f.session.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "nacked") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	parked := map[string]bool{}
	for range kept {
		parked[string(f.take(contract.ParkingLot).Body)] = true
	}
	if len(parked) != kept {
		t.Errorf("%d of %d messages were parked", len(parked), kept)
	}
	f.becomesReady()
	f.empty(contract.AccountEventsQueue, contract.ParkingLot)
	held := 0
	for _, line := range failures.take() {
		if line["outcome"] != "nacked" {
			continue
		}
		held++
		if text, _ := line["error"].(string); !strings.HasPrefix(text, "publishing to") || !strings.HasSuffix(text, ": nacked") {
			t.Errorf("why it could not leave is logged as %q", text)
		}
	}
	if held == 0 {
		t.Error("nothing was logged of the copies that were refused")
	}
}

func TestDeletedQueuesComeBackByThemselves(t *testing.T) {
	t.Parallel()
	s, c := transfer(unknownTransfer)
	s.CheckInterval = 300 * time.Millisecond
	f := start(t, s, c)
	for _, queue := range []string{contract.AccountEventsRetry, contract.AccountEventsQueue, contract.ParkingLot} {
		if _, err := f.client.QueueDelete(queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.client.ExchangeDelete(contract.RetryExchange, false, false); err != nil {
		t.Fatal(err)
	}
	f.eventually("the queues", func() error {
		if queues := f.env.Queues(t); len(queues) != 3 {
			return fmt.Errorf("there are %d", len(queues))
		}
		return nil
	})
	f.becomesReady()
	f.publishBody(debited, poisonBody)
	f.parkedAfter(3, retry.ReasonMaxAttempts, retry.NotFound)
}

// With so many messages waiting that no more are taken, a consumer must still hear that its queue is gone.
func TestDeletedQueueIsNoticedWhileWaiting(t *testing.T) {
	t.Parallel()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "waiting" {
			return errors.New("later")
		}
		return nil
	}, time.Hour)
	c.Prefetch = 1
	f := start(t, s, c)
	f.publishBody(requested, body("waiting"))
	f.next()
	f.heldOne(requestQueue)
	if _, err := f.client.QueueDelete(requestQueue, false, false, false); err != nil {
		t.Fatal(err)
	}
	f.eventually("a message through the new queue", func() error {
		f.publishBody(requested, body("new"))
		select {
		case <-f.handled:
			return nil
		case <-time.After(100 * time.Millisecond):
			return errors.New("the handler is not called")
		}
	})
}

// The same with every worker busy and the next batch complete: nobody waits for the handler.
func TestDeletedQueueIsNoticedWhileWorking(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	s, c := account(func(context.Context, *messaging.Message) error {
		<-over
		return nil
	}, time.Millisecond)
	s.CheckInterval = time.Hour // nobody else declares the queue again
	c.Concurrency, c.BatchSize = 1, 1
	f := start(t, s, c)
	defer close(over)
	f.publishBody(requested, body("busy"))
	f.publishBody(requested, body("next"))
	f.next()
	f.eventually("both messages to be taken", func() error {
		if _, unacked := f.env.QueueDepth(t, requestQueue); unacked != 2 {
			return fmt.Errorf("%d are", unacked)
		}
		return nil
	})
	if _, err := f.client.QueueDelete(requestQueue, false, false, false); err != nil {
		t.Fatal(err)
	}
	f.eventually("the queue to be back", func() error {
		if queues := f.env.Queues(t); !slices.ContainsFunc(queues, func(q testenv.Queue) bool { return q.Name == requestQueue }) {
			return fmt.Errorf("there are %v", queues)
		}
		return nil
	})
}

// heldOne waits until the one message of a queue is held by its consumer.
func (f *fixture) heldOne(queue string) {
	f.Helper()
	f.eventually("the message to be held", func() error {
		if ready, unacked := f.env.QueueDepth(f, queue); ready != 0 || unacked != 1 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
}

func TestQueueWithOtherArgumentsIsFatal(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	f := startOn(t, env, messaging.SessionConfig{Name: "first", Topology: topology.Transfer(messaging.Quorum, lapDelay)}, messaging.ConsumerConfig{})
	f.stop()
	second := messaging.NewSession(messaging.SessionConfig{
		URLs: []string{env.AMQPURL}, Name: "second", Topology: topology.Transfer(messaging.Quorum, 2*lapDelay),
	})
	var conflict *messaging.TopologyConflict
	if err := second.Run(t.Context()); !errors.As(err, &conflict) {
		t.Fatalf("Run: %v", err)
	}
	if conflict.Kind != "queue" || conflict.Name != contract.AccountEventsRetry || conflict.Argument != "x-message-ttl" ||
		!strings.Contains(conflict.Found, "200") || !strings.Contains(conflict.Wanted, "400") {
		t.Errorf("got %+v", conflict)
	}
}
