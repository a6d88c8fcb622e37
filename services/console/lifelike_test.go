package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	bob      = "00000000-0000-4000-8000-000000000002"
	transfer = "01890000-0000-7000-8000-000000000001"
)

// document is some JSON.
type document = map[string]any

// items is a list's answer.
func items(all ...any) document { return document{"items": append([]any{}, all...), "next": nil} }

func account(id, owner, status string, minor int64) document {
	return document{"id": id, "owner": owner, "currency": "EUR", "status": status, "balanceMinor": minor, "createdAt": "2026-11-30T10:00:00Z"}
}

func aTransfer(status string, facts ...string) document {
	timeline := []document{}
	for i, fact := range facts {
		timeline = append(timeline, document{"fact": fact, "at": fmt.Sprintf("2026-11-30T10:00:00.%03dZ", i*20), "messageId": fmt.Sprintf("message-%d", i)})
	}
	return document{
		"id": transfer, "status": status, "sourceAccountId": alice, "destinationAccountId": bob, "amountMinor": 2500, "currency": "EUR",
		"reference": "lunch", "createdAt": "2026-11-30T10:00:00Z", "updatedAt": "2026-11-30T10:00:00.040Z", "timeline": timeline,
	}
}

func parked(queue, key, reason, class string) document {
	return document{
		"queue": queue, "key": key, "messageId": key, "type": "Accounts.Account.Debited", "transferId": "not-a-real-id", "reason": reason, "class": class,
		"attempts": 3, "error": `there is no transfer "not-a-real-id"`, "parkedAt": "2026-11-30T10:00:10Z", "firstFailedAt": "2026-11-30T10:00:00Z",
		"originQueue": "transfer.account-events", "originExchange": "banking.events", "originRoutingKey": "accounts.account.debited", "service": "transfer", "replayCount": 0,
	}
}

// queuesOf are the broker's queues, with so many messages in those that are named.
func queuesOf(depths map[string]int) []document {
	var all []document
	for _, name := range []string{"account.transfer-requested", "account.credit-requested", "account.refund-requested", "transfer.account-events"} {
		all = append(all, document{"name": name, "messages_ready": depths[name], "consumers": 1, "type": "quorum"})
	}
	for _, name := range []string{"account.transfer-requested_error", "account.credit-requested_error", "account.refund-requested_error", "banking.dead-letters"} {
		all = append(all, document{"name": name, "messages_ready": depths[name], "type": "quorum"})
	}
	return append(all, document{"name": "transfer.account-events.retry", "messages_ready": depths["transfer.account-events.retry"], "type": "quorum", "arguments": document{"x-message-ttl": 5000}})
}

// metricsText is what a service counts: so many messages done, its consumers' breakers in this state.
func metricsText(done, breaker int, queues ...string) string {
	var text strings.Builder
	for name, value := range map[string]int{"messaging_paused": 0, "messaging_breaker_state": breaker, "messaging_retry_budget_tokens": 100, "messaging_waiting": 0} {
		fmt.Fprintf(&text, "# TYPE %s gauge\n", name)
		for _, queue := range queues {
			fmt.Fprintf(&text, "%s{queue=%q} %d\n", name, queue, value)
		}
	}
	fmt.Fprint(&text, "# TYPE messaging_deliveries_total counter\n")
	for _, queue := range queues {
		fmt.Fprintf(&text, "messaging_deliveries_total{queue=%q,outcome=\"done\"} %d\n", queue, done)
	}
	fmt.Fprintf(&text, "# TYPE messaging_session_up gauge\nmessaging_session_up 1\n# TYPE outbox_published_total counter\noutbox_published_total{outcome=\"acked\"} %d\n", done)
	return text.String()
}

func (f *fake) metrics(text string) {
	f.on("GET /metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, text) })
}

var accountQueues = []string{"account.transfer-requested", "account.credit-requested", "account.refund-requested"}

// startLifelike starts a console over fakes that look like a bank in which little goes on.
func startLifelike(t *testing.T, settings ...string) *console {
	t.Helper()
	c := startConsole(t, settings...)
	c.account.say("GET /accounts", items(account(bob, "Bob", "OPEN", 52500), account(alice, "Alice", "OPEN", 97500)))
	c.account.say("GET /accounts/"+alice, account(alice, "Alice", "OPEN", 97500))
	c.account.say("GET /accounts/"+alice+"/entries", items(
		document{"id": "e2", "transferId": transfer, "kind": "DEBIT", "amountMinor": -2500, "postedAt": "2026-11-30T10:00:00Z"},
		document{"id": "e1", "transferId": nil, "kind": "OPENING", "amountMinor": 100000, "postedAt": "2026-11-30T09:00:00Z"}))
	c.account.say("GET /ledger", document{"ok": true, "currencies": []document{{"currency": "EUR", "customersMinor": 150000, "inTransitMinor": 0, "fundingMinor": -150000, "sumMinor": 0}}})
	c.account.say("GET /legs/"+transfer, document{"transferId": transfer, "state": "CREDITED"})
	c.transfer.say("GET /transfers", items(aTransfer("COMPLETED", "REQUESTED", "DEBITED", "CREDITED")))
	c.transfer.say("GET /transfers/"+transfer, aTransfer("COMPLETED", "REQUESTED", "DEBITED", "CREDITED"))
	c.transfer.say("GET /transfers/summary", document{"REQUESTED": 0, "DEBITED": 0, "COMPLETED": 1, "REJECTED": 0, "REFUNDING": 0, "REFUNDED": 0})
	c.account.metrics(metricsText(2, 0, accountQueues...))
	c.transfer.metrics(metricsText(2, 0, "transfer.account-events"))
	c.management.say("GET /api/queues/banking", queuesOf(nil))
	c.management.say("GET /api/exchanges/banking", []document{{"name": "banking.events", "type": "topic"}, {"name": "transfer.retry", "type": "headers"}, {"name": "banking.dlx", "type": "topic"}})
	c.management.say("GET /api/bindings/banking", []document{{"source": "banking.dlx", "destination": "banking.dead-letters", "destination_type": "queue", "routing_key": "#"}})
	for _, f := range []*fake{c.account, c.transfer} {
		f.say("GET /admin/quarantine", items())
		f.say("GET /admin/quarantine/audit", items())
	}
	return c
}

// park puts a message into the parking lot.
func (c *console) park(message document) {
	c.management.say("GET /api/queues/banking", queuesOf(map[string]int{"banking.dead-letters": 1}))
	c.transfer.say("GET /admin/quarantine", items(message))
	whole := document{"copies": 1, "headers": document{"x-last-error": message["error"], "x-attempts": 3}, "deaths": []any{}, "properties": document{"contentType": "application/json"},
		"exchange": "banking.dlx", "routingKey": "accounts.account.debited", "body": document{"size": 9, "text": `{"a":"b"}`}}
	for name, value := range message {
		whole[name] = value
	}
	c.transfer.say(fmt.Sprintf("GET /admin/quarantine/%s/%s", message["queue"], message["key"]), whole)
}
