package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The poison message of the first exercise: three attempts, a lap between each, then the parking lot with the reason.
func TestPoisonMessageIsParkedAfterThreeAttempts(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	b := startBank(t, "RETRY_DELAY="+delay.String())
	body := []byte(`{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`)
	for range 2 {
		published := time.Now()
		b.publishRaw(contract.EventsExchange, "accounts.account.debited", amqp.Publishing{MessageId: "poison-1", Body: body})
		d := b.parked()
		if took := time.Since(published); took < 2*delay {
			t.Errorf("parked after %s, before two laps of %s", took, delay)
		}
		if !bytes.Equal(d.Body, body) || d.RoutingKey != "accounts.account.debited" {
			t.Errorf("parked under %q: %s", d.RoutingKey, d.Body)
		}
		checkHeaders(t, d, map[string]string{
			"x-attempts": "3", "x-park-reason": "MAX_ATTEMPTS", "x-error-class": "NOT_FOUND", "x-service": "transfer",
			"x-origin-queue": contract.AccountEventsQueue, "x-origin-exchange": contract.EventsExchange, "x-origin-routing-key": "accounts.account.debited",
		})
		if text, _ := d.Headers["x-last-error"].(string); !strings.Contains(text, "not-a-real-id") {
			t.Errorf("x-last-error is %q", text)
		}
		b.settled()
	}
	b.nothingParked()
}

// The same in the tiered profile: five attempts, each wait longer than the one before.
func TestPoisonMessageIsParkedAfterFiveAttemptsInTheTieredProfile(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_PROFILE=tiered", "RETRY_TIERS=100ms,200ms,300ms", "RETRY_JITTER=0")
	body := []byte(`{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`)
	for range 2 {
		published := time.Now()
		b.publishRaw(contract.EventsExchange, "accounts.account.debited", amqp.Publishing{MessageId: "poison-1", Body: body})
		d := b.parked()
		if took := time.Since(published); took < 900*time.Millisecond {
			t.Errorf("parked after %s, before waits of 100, 200, 300 and 300 ms", took)
		}
		if !bytes.Equal(d.Body, body) || d.RoutingKey != "accounts.account.debited" {
			t.Errorf("parked under %q: %s", d.RoutingKey, d.Body)
		}
		checkHeaders(t, d, map[string]string{
			"x-attempts": "5", "x-park-reason": "MAX_ATTEMPTS", "x-error-class": "NOT_FOUND", "x-service": "transfer",
			"x-origin-queue": contract.AccountEventsQueue, "x-origin-exchange": contract.EventsExchange, "x-origin-routing-key": "accounts.account.debited",
		})
		b.settled()
	}
	b.nothingParked()
}

func checkHeaders(t *testing.T, d amqp.Delivery, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := fmt.Sprint(d.Headers[name]); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
}

// Attempts are the rejections of our own queue: neither another queue's, nor whatever stands first in x-death.
func TestAttemptsAreCountedFromTheOwnQueue(t *testing.T) {
	t.Parallel()
	const delay = 500 * time.Millisecond
	b := startBank(t, "RETRY_DELAY="+delay.String())
	death := func(queue, reason string, count int64) amqp.Table {
		return amqp.Table{"queue": queue, "reason": reason, "count": count, "exchange": "", "time": time.Now(), "routing-keys": []any{"k"}}
	}
	body := event{"poison-2", contract.AccountDebited, `{"transferId":"not-a-real-id"}`}.body()
	published := time.Now()
	b.publishRaw("", contract.AccountEventsQueue, amqp.Publishing{Body: body, Headers: amqp.Table{"x-death": []any{
		death("somebody.else", "rejected", 7),
		death(contract.AccountEventsRetry, "expired", 1),
		death(contract.AccountEventsQueue, "rejected", 1),
	}}})
	d := b.parked()
	took := time.Since(published)
	checkHeaders(t, d, map[string]string{"x-attempts": "3", "x-park-reason": "MAX_ATTEMPTS"})
	if took < delay {
		t.Errorf("parked after %s: without the lap between attempts 2 and 3", took)
	}
}

// What can never be handled is not tried again.
func TestMalformedMessagesAreParkedAtOnce(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_DELAY=24h") // a lap would never come back
	accepted := b.request(newOrder())
	good := tells(accepted, contract.AccountDebited)
	for name, c := range map[string]struct {
		body   []byte
		reason string
	}{
		"cut off":             {good.body()[:40], "VALIDATION"},
		"no JSON":             {[]byte{0xff, 0}, "VALIDATION"},
		"an unknown type":     {event{"m-1", "Accounts.Account.Merged", good.Data}.body(), "VALIDATION"},
		"another queue's":     {event{"m-2", contract.TransferRequested, good.Data}.body(), "VALIDATION"},
		"a text amount":       {event{"m-3", good.Type, strings.Replace(good.Data, "2500", `"2500"`, 1)}.body(), "VALIDATION"},
		"another amount":      {event{"m-4", good.Type, strings.Replace(good.Data, "2500", "2501", 1)}.body(), "INVARIANT"},
		"no messageId":        {event{"", good.Type, good.Data}.body(), "VALIDATION"},
		"an overlong id":      {event{strings.Repeat("m", 201), good.Type, good.Data}.body(), "VALIDATION"},
		"an id with U+0000":   {event{"m\x00", good.Type, good.Data}.body(), "VALIDATION"},
		"a reason with U+000": {event{"m-5", contract.AccountDebitRejected, fmt.Sprintf(`{"transferId":%q,"accountId":%q,"reason":"\u0000"}`, accepted.ID, accepted.SourceAccountID)}.body(), "VALIDATION"},
	} {
		for range 2 {
			b.publishRaw(contract.EventsExchange, "accounts.account.debited", amqp.Publishing{Body: c.body})
			d := b.parked()
			if !bytes.Equal(d.Body, c.body) {
				t.Errorf("%s: parked %q", name, d.Body)
			}
			checkHeaders(t, d, map[string]string{"x-attempts": "1", "x-park-reason": c.reason, "x-error-class": c.reason})
		}
	}
	if got := b.get(accepted.ID); got.Status != "REQUESTED" || len(got.Timeline) != 1 {
		t.Errorf("the transfer has become %s", got.Status)
	}
	b.twice(good)
	b.awaitStatus(accepted.ID, "DEBITED")
	b.nothingParked()
}

func TestSameMessageIDWithAnotherPayloadIsParked(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_DELAY=24h")
	first, second := b.request(newOrder()), b.request(newOrder())
	e := tells(first, contract.AccountDebited)
	b.twice(e)
	b.awaitStatus(first.ID, "DEBITED")
	forged := tells(second, contract.AccountDebited)
	forged.MessageID = e.MessageID
	for range 2 {
		b.publish(forged)
		checkHeaders(t, b.parked(), map[string]string{"x-park-reason": "INVARIANT", "x-attempts": "1"})
	}
	if got := b.get(second.ID).Status; got != "REQUESTED" {
		t.Errorf("the other transfer has become %s", got)
	}
}

// The answer may be there before the transfer can be seen: it waits for its next attempt, in either profile, and then applies.
func TestEventBeforeItsTransfer(t *testing.T) {
	t.Parallel()
	for profile, c := range map[string]struct{ delay, waitsIn string }{
		"lap":    {"RETRY_DELAY=300ms", contract.AccountEventsRetry},
		"tiered": {"RETRY_TIERS=300ms", contract.RetryTierQueue(300 * time.Millisecond)},
	} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			// The usual attempts would do for the two seconds of a late commit; these do on any machine.
			b := startBank(t, "RETRY_PROFILE="+profile, "RETRY_JITTER=0", "MAX_ATTEMPTS=100", c.delay)
			o := newOrder()
			asked := newTransfer{Source: o.source, Destination: o.destination, Money: contract.Money{Minor: 2500, Currency: "EUR"}}
			early, err := newAccepted(t.Context(), asked, nil)
			b.must(err)
			e := tells(transferView{ID: early.id, SourceAccountID: o.source, DestinationAccountID: o.destination, AmountMinor: 2500, Currency: "EUR"}, contract.AccountDebited)
			b.twice(e)
			b.eventually("the event waits", func() bool {
				ready, _ := b.env.QueueDepth(t, c.waitsIn)
				return ready > 0
			})
			_, _, err = intakeOf(b.db).accept(t.Context(), early)
			b.must(err)
			b.awaitStatus(early.id, "DEBITED")
			b.awaitSent(early.id, 2)
			b.eventually("nothing waits any more", func() bool {
				ready, _ := b.env.QueueDepth(t, c.waitsIn)
				return ready == 0
			})
			b.settled()
			b.nothingParked()
			if facts := b.get(early.id).facts(); !slices.Equal(facts, []string{"DEBITED", "REQUESTED"}) {
				t.Errorf("facts %v", facts)
			}
		})
	}
}

// Nobody asks forever: an answer about a transfer that never comes is given up when it is no longer young.
func TestEventWithoutItsTransferIsGivenUp(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_DELAY=100ms", "MAX_ATTEMPTS=100", "NOT_FOUND_MAX_AGE=1s")
	published := time.Now()
	body := fmt.Appendf(nil, `{"messageId":"early","type":"Accounts.Account.Debited","occurredAt":%q,"data":{"transferId":%q}}`, published.UTC().Format(time.RFC3339Nano), uuid.NewString())
	b.publishRaw(contract.EventsExchange, "accounts.account.debited", amqp.Publishing{Body: body})
	d := b.parked()
	if took := time.Since(published); took < time.Second {
		t.Errorf("given up after %s", took)
	}
	if attempts, _ := d.Headers["x-attempts"].(int64); attempts < 2 {
		t.Errorf("given up after %d attempts", attempts)
	}
	checkHeaders(t, d, map[string]string{"x-park-reason": "NOT_FOUND_AGED", "x-error-class": "NOT_FOUND"})
}

// Somebody deletes the parking lot. A message that belongs there is not lost: it is kept until the queue is back.
func TestDeletedParkingLotLosesNothing(t *testing.T) {
	t.Parallel()
	b := startBank(t, "RETRY_DELAY=100ms")
	_, err := b.broker.QueueDelete(contract.ParkingLot, false, false, false)
	b.must(err)
	b.publish(event{"poison-3", contract.AccountDebited, `{"transferId":"not-a-real-id"}`})
	// Asked of the statistics: a queue that is just being declared anew breaks the connection of who takes from it.
	b.eventually("the message is in a parking lot that was declared again", func() bool {
		return slices.ContainsFunc(b.env.Queues(t), func(q testenv.Queue) bool { return q.Name == contract.ParkingLot && q.Ready > 0 })
	})
	if d := b.parked(); !strings.Contains(string(d.Body), "poison-3") {
		t.Errorf("parked %s", d.Body)
	}
	b.awaitReady()
}
