package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	// The poison message of the first exercise refers to a transfer that nobody knows; the second has its amount as a text.
	poisonEvent   = `{"messageId":"poison-1","type":"Accounts.Account.Debited","data":{"transferId":"not-a-real-id"}}`
	textAmount    = `{"messageId":"text-amount-1","type":"Transfers.Transfer.Requested","data":{"transferId":"0b6f1c52-9a52-4f0e-8f0c-0a4c5a0f2d11","sourceAccountId":"5a0d6a3e-7a94-4f9e-b1c2-4a4b8f6f0c01","destinationAccountId":"5a0d6a3e-7a94-4f9e-b1c2-4a4b8f6f0c02","amountMinor":"2500","currency":"EUR"}}`
	textAmountKey = "transfers.transfer.requested"
)

// The first two exercises over the real programs, with the delays that they have when nobody sets any. They run side by side: what
// takes time here is waiting.
func TestExercisesInTrueTime(t *testing.T) {
	t.Parallel()
	start := func(program string, settings map[string]string) (*replica, *line) {
		env := testenv.New(t)
		variables := map[string]string{"AMQP_URL": env.AMQPURL, "DATABASE_URL": env.Database(t, program)}
		for name, value := range settings {
			variables[name] = value
		}
		return startReplica(t, program, program, variables), newLine(t, env.AMQPURL)
	}
	transfer, atTransfer := start("transfer", nil)
	account, atAccount := start("account", nil)
	alike, atAlike := start("account", map[string]string{"RETRY_CLASSIFY": "off"})
	for _, r := range []*replica{transfer, account, alike} {
		r.awaitReady()
	}
	atAlike.publish(textAmountKey, textAmount)
	atTransfer.publish("accounts.account.debited", poisonEvent)
	published := time.Now()
	atAccount.publish(textAmountKey, textAmount)

	// The second exercise: a message that can never be handled is given up at once.
	d := atAccount.take("account.transfer-requested_error")
	expectHeaders(t, d, map[string]any{"x-attempts": int64(1), "x-park-reason": "VALIDATION", "MT-Fault-RetryCount": nil})
	expectGivenUp(t, d, textAmount, "account", "VALIDATION", "account.transfer-requested", textAmountKey)
	expectFault(t, d)
	expectIntervals(t, account.attempts("text-amount-1"), "VALIDATION")

	// The first exercise: two laps of five seconds, then the parking lot.
	d = atTransfer.take("banking.dead-letters")
	if took := time.Since(published); took < 10*time.Second {
		t.Errorf("parked after %s, before two laps of 5 s", took)
	}
	expectHeaders(t, d, map[string]any{"x-attempts": int64(3), "x-park-reason": "MAX_ATTEMPTS", "MT-Reason": nil})
	expectGivenUp(t, d, poisonEvent, "transfer", "NOT_FOUND", "transfer.account-events", "accounts.account.debited")
	expectHeaders(t, d, map[string]any{"x-last-error": func(v any) bool {
		text, _ := v.(string)
		return strings.Contains(text, "not-a-real-id")
	}})
	expectIntervals(t, transfer.attempts("poison-1"), "NOT_FOUND", 5*time.Second, 5*time.Second)
	if failures, quarantined := transfer.metric("messaging_failures_total", ""), transfer.metric("messaging_quarantined_total", ""); failures != 3 || quarantined != 1 {
		t.Errorf("transfer counts %v failed attempts and %v quarantined, want 3 and 1", failures, quarantined)
	}

	// The second one again, without classification: four executions, at 0, 1, 6 and 31 seconds.
	d = atAlike.take("account.transfer-requested_error")
	expectHeaders(t, d, map[string]any{"x-attempts": int64(4), "x-park-reason": "MAX_ATTEMPTS", "MT-Fault-RetryCount": int64(3)})
	expectGivenUp(t, d, textAmount, "account", "VALIDATION", "account.transfer-requested", textAmountKey)
	expectIntervals(t, alike.attempts("text-amount-1"), "VALIDATION", time.Second, 5*time.Second, 25*time.Second)

	for queue, l := range map[string]*line{"banking.dead-letters": atTransfer, "account.transfer-requested_error": atAccount} {
		if n := l.depth(queue); n != 0 {
			t.Errorf("%d more messages in %s", n, queue)
		}
	}
}

// expectIntervals demands one failed attempt and one more after each interval, the last of them the end.
func expectIntervals(t *testing.T, attempts []attempt, class string, intervals ...time.Duration) {
	t.Helper()
	if len(attempts) != len(intervals)+1 {
		t.Errorf("attempts %+v, want %d", attempts, len(intervals)+1)
		return
	}
	for i, a := range attempts {
		last := i == len(intervals)
		if a.Class != class || strings.Contains(a.Msg, "quarantined") != last || !strings.HasPrefix(a.Attempt, fmt.Sprint(i+1, "/")) {
			t.Errorf("attempt %d: %+v", i+1, a)
		}
		if i == 0 {
			continue
		}
		// Never early, and late by what a busy machine takes.
		if gap := a.Time.Sub(attempts[i-1].Time); gap < intervals[i-1]-10*time.Millisecond || gap > intervals[i-1]+4*time.Second {
			t.Errorf("attempt %d came %s after the one before, want %s", i+1, gap, intervals[i-1])
		}
	}
}

// expectGivenUp checks what every quarantined message has in common.
func expectGivenUp(t *testing.T, d amqp.Delivery, body, service, class, queue, key string) {
	t.Helper()
	if string(d.Body) != body || d.ContentType != "application/json" || d.DeliveryMode != amqp.Persistent || d.Expiration != "" {
		t.Errorf("quarantined %s as %s, delivery mode %d, expiration %q", d.Body, d.ContentType, d.DeliveryMode, d.Expiration)
	}
	times := map[string]time.Time{}
	for _, name := range []string{"x-first-failed-at", "x-parked-at"} {
		text, _ := d.Headers[name].(string)
		at, err := time.Parse(time.RFC3339, text)
		if err != nil || time.Since(at) > 5*time.Minute || time.Since(at) < 0 {
			t.Errorf("%s is %v", name, d.Headers[name])
		}
		times[name] = at
	}
	if times["x-parked-at"].Before(times["x-first-failed-at"].Truncate(time.Second)) {
		t.Errorf("parked at %s, first failed at %s", times["x-parked-at"], times["x-first-failed-at"])
	}
	expectHeaders(t, d, map[string]any{
		"x-error-class": class, "x-service": service, "x-origin-queue": queue, "x-origin-exchange": "banking.events", "x-origin-routing-key": key,
		"x-last-error": func(v any) bool {
			text, ok := v.(string)
			return ok && text != "" && len(text) <= 4<<10
		},
		"x-replay-count": nil, "x-replayed-at": nil, "x-death": nil, "x-first-death-queue": nil, "x-first-death-reason": nil, "x-last-death-queue": nil,
	})
}

// expectFault checks what MassTransit's tools read in an error queue.
func expectFault(t *testing.T, d amqp.Delivery) {
	t.Helper()
	said := func(v any) bool {
		text, ok := v.(string)
		return ok && text != "" && len(text) <= 2<<10
	}
	want := map[string]any{"MT-Reason": "fault", "MT-Fault-MessageType": "Transfers.Transfer.Requested"}
	for _, name := range []string{"MT-Fault-ExceptionType", "MT-Fault-Message", "MT-Fault-Timestamp", "MT-Fault-StackTrace", "MT-Fault-InputAddress",
		"MT-Fault-ConsumerType", "MT-Host-MachineName", "MT-Host-ProcessName", "MT-Host-ProcessId", "MT-Host-Assembly"} {
		want[name] = said
	}
	expectHeaders(t, d, want)
}
