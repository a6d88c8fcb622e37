package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// branch is the whole service over a broker, with the test's own view of its database.
type branch struct {
	*bank
	*instance
	*wire
	env *testenv.Env
}

func newBranch(t *testing.T, variables ...string) *branch {
	t.Helper()
	env := testenv.New(t)
	b := bankAt(t, env.Database(t, "account"))
	i := startReady(t, env, b.url, variables...)
	return &branch{b, i, newWire(t, env), env}
}

func TestAnswersOverTheBroker(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	tr := newTransfer(from, to, 30)

	id := b.request(t, ledger.Requested, tr, 2)
	debited := b.take(t, b.events)
	envelope, err := messaging.Decode(debited.Body)
	if err != nil {
		t.Fatal(err)
	}
	if debited.RoutingKey != "accounts.account.debited" || debited.Exchange != contract.EventsExchange || debited.ContentType != "application/json" ||
		debited.DeliveryMode != amqp.Persistent || debited.AppId != "account" || debited.MessageId != envelope.MessageID ||
		debited.Type != envelope.Type || debited.CorrelationId != tr.id.String() || debited.Timestamp.IsZero() {
		t.Errorf("properties %+v", debited)
	}
	if traceparent, _ := debited.Headers["traceparent"].(string); len(traceparent) != 55 {
		t.Errorf("traceparent %q", debited.Headers["traceparent"])
	}
	if envelope.Type != contract.AccountDebited || envelope.CausationID != id || envelope.CorrelationID != tr.id.String() ||
		time.Since(envelope.OccurredAt).Abs() > patience {
		t.Errorf("envelope %+v", envelope)
	}
	want := fmt.Sprintf(`{"transferId":"%s","accountId":"%s","amountMinor":30,"currency":"EUR"}`, tr.id, from)
	if string(envelope.Data) != want {
		t.Errorf("data %s, want %s", envelope.Data, want)
	}

	b.request(t, ledger.CreditRequested, tr, 2)
	if credited := b.take(t, b.events); credited.Type != contract.AccountCredited {
		t.Errorf("then %s", credited.Type)
	}
	b.request(t, ledger.RefundRequested, tr, 2)
	if again := b.take(t, b.events); again.Type != contract.AccountCredited {
		t.Errorf("after a late refund %s", again.Type)
	}
	for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested} {
		await(t, "both copies to be acknowledged", func() bool { return b.handled(t, kind, "done") == 2 })
	}
	b.awaitSent(t)
	if rest := b.rest(t); len(rest) != 0 {
		t.Errorf("said more: %+v", rest)
	}
	b.expectEntries(t, tr, "DEBIT -30", "CREDIT 30")
	expectInvariants(t, b.pool)
}

// Twenty copies of a request at once, to two replicas: one effect, one answer, nineteen duplicates. Two copies that are handled at the
// same moment both find nothing seen yet; who comes second must wait for the first, not fail on its key.
func TestCopiesToTwoReplicas(t *testing.T) {
	t.Parallel()
	const prefetch = "CONSUMER_PREFETCH=10"
	one := newBranch(t, prefetch)
	other := startReady(t, one.env, one.bank.url, prefetch)
	both := func(series string) int { return one.metric(t, series) + other.metric(t, series) }
	from, to := one.open(t, "EUR", 10000), one.open(t, "EUR", 0)
	tr := newTransfer(from, to, 2500)
	for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested} {
		one.request(t, kind, tr, 20)
		await(t, "all copies to be acknowledged", func() bool { return one.handled(t, kind, "done")+other.handled(t, kind, "done") == 20 })
		series := func(result string) string {
			return fmt.Sprintf("inbox_messages_total{consumer=%q,result=%q}", queueOf[kind].name, result)
		}
		if done, duplicates := both(series("done")), both(series("duplicate")); done != 1 || duplicates != 19 {
			t.Errorf("%s: %d done and %d duplicates, want 1 and 19", kind, done, duplicates)
		}
		for _, class := range []string{"CONFLICT", "INVARIANT", "UNKNOWN", "TIMEOUT"} {
			if failed := both(fmt.Sprintf("messaging_failures_total{class=%q,queue=%q}", class, queueOf[kind].name)); failed != 0 {
				t.Errorf("%s: %d copies failed as %s", kind, failed, class)
			}
		}
		if ready, _ := one.env.QueueDepth(t, contract.ErrorQueue(queueOf[kind].name)); ready != 0 {
			t.Errorf("%s: %d copies in the error queue", kind, ready)
		}
	}
	one.awaitSent(t)
	expectSaid(t, one.rest(t), tr, contract.AccountDebited, contract.AccountCredited)
	one.expectEntries(t, tr, "DEBIT -2500", "CREDIT 2500")
	expectInvariants(t, one.pool)
}

// All requests of many transfers, three times each and in any order, while somebody looks at the ledger all the time. The credits come
// first, so that many of them find no debit yet.
func TestTrafficInAnyOrder(t *testing.T) {
	t.Parallel()
	b := newBranch(t, "RETRY_INTERVALS=100ms,200ms,500ms,1s,2s,5s,10s,20s,40s")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	accounts := []uuid.UUID{b.open(t, "EUR", 300), b.open(t, "EUR", 300), b.open(t, "EUR", 300)}
	var transfers []transfer
	requests := map[ledger.Kind][][]byte{}
	for n := range 40 {
		tr := newTransfer(accounts[n%3], accounts[(n+1)%3], 1+random.Int64N(60))
		transfers = append(transfers, tr)
		for _, kind := range []ledger.Kind{ledger.Requested, ledger.CreditRequested, ledger.RefundRequested} {
			body, err := tr.envelope(t, kind).Encode()
			if err != nil {
				t.Fatal(err)
			}
			requests[kind] = append(requests[kind], body, body, body)
		}
	}
	for _, kind := range []ledger.Kind{ledger.CreditRequested, ledger.Requested, ledger.RefundRequested} {
		bodies := requests[kind]
		random.Shuffle(len(bodies), func(i, j int) { bodies[i], bodies[j] = bodies[j], bodies[i] })
		b.publish(t, kind, bodies...)
	}
	await(t, "every delivery to be done", func() bool {
		got := answered[ledgerJSON](t, b.get(t, "/ledger"), http.StatusOK)
		if !got.OK || got.Currencies[0].FundingMinor.Int64() != -900 {
			t.Fatalf("ledger %+v", got)
		}
		done := 0
		for kind := range queueOf {
			done += b.handled(t, kind, "done")
		}
		return done == 3*3*len(transfers)
	})
	b.awaitSent(t)
	all := b.rest(t)
	for _, tr := range transfers {
		leg, _, err := b.leg(t.Context(), tr.id)
		if err != nil {
			t.Fatal(err)
		}
		answers := map[said]bool{}
		count := 0
		for _, s := range all {
			if s.Data.TransferID.Value == tr.id.String() {
				answers[s] = true
				count++
			}
		}
		// Three requests, three answers. Answers of one type are one message said again.
		types := map[string]bool{}
		for s := range answers {
			types[s.Type] = true
		}
		if count != 3 || len(types) != len(answers) {
			t.Errorf("transfer %s is %s after %d answers: %v", tr.id, leg.State, count, answers)
		}
		if leg.State == ledger.Debited || leg.State == ledger.CreditRejected {
			t.Errorf("transfer %s ends as %s", tr.id, leg.State)
		}
	}
	expectInvariants(t, b.pool)
}

// What can never be handled leaves at once, after one attempt, byte for byte, and takes nothing of its neighbours with it.
func TestBadRequestsGoToTheErrorQueue(t *testing.T) {
	t.Parallel()
	b := newBranch(t, "RETRY_INTERVALS=10m")
	from, to := b.open(t, "EUR", 1000), b.open(t, "EUR", 0)
	replaced := func(member, value string) string {
		tr := newTransfer(from, to, 1)
		body, err := tr.envelope(t, ledger.Requested).Encode()
		if err != nil {
			t.Fatal(err)
		}
		text := string(body)
		start := strings.Index(text, `"`+member+`":`) + len(member) + 3
		end := start + strings.IndexAny(text[start:], ",}")
		return text[:start] + value + text[end:]
	}
	bad := map[string]string{
		"not JSON":                `{"messageId": "x"`,
		"empty":                   ``,
		"no messageId":            strings.Replace(replaced("amountMinor", "1"), `"messageId"`, `"MessageID"`, 1),
		"unknown type":            replaced("type", `"Transfers.Transfer.Reversed"`),
		"known, but not here":     replaced("type", `"Transfers.Transfer.CreditRequested"`),
		"an event of ours":        replaced("type", `"Accounts.Account.Debited"`),
		"amount as text":          replaced("amountMinor", `"2500"`),
		"amount with a point":     replaced("amountMinor", `2500.0`),
		"amount with an exponent": replaced("amountMinor", `1e3`),
		"amount below one":        replaced("amountMinor", `0`),
		"negative amount":         replaced("amountMinor", `-1`),
		"amount null":             replaced("amountMinor", `null`),
		"amount beyond 64 bits":   replaced("amountMinor", `9223372036854775808`),
		"amount twice":            replaced("amountMinor", `1,"amountMinor":1`),
		"no amount":               strings.Replace(replaced("amountMinor", "1"), `"amountMinor"`, `"AmountMinor"`, 1),
		"source is no UUID":       replaced("sourceAccountId", `"savings"`),
		"destination is missing":  strings.Replace(replaced("amountMinor", "1"), `"destinationAccountId"`, `"to"`, 1),
		"to itself":               replaced("destinationAccountId", `"`+from.String()+`"`),
		"small currency":          replaced("currency", `"eur"`),
		"transfer is no UUID":     replaced("transferId", `"not-a-real-id"`),
	}
	var bodies [][]byte
	good := make([]transfer, 0, len(bad))
	wanted := map[string]string{}
	for name, body := range bad {
		tr := newTransfer(from, to, 1)
		neighbour, err := tr.envelope(t, ledger.Requested).Encode()
		if err != nil {
			t.Fatal(err)
		}
		good = append(good, tr)
		wanted[body] = name
		bodies = append(bodies, []byte(body), neighbour, []byte(body)) // each bad one twice
	}
	b.publish(t, ledger.Requested, bodies...)
	for range 2 * len(bad) {
		d := b.take(t, contract.ErrorQueue(contract.TransferRequestedQueue))
		name, known := wanted[string(d.Body)]
		if !known {
			t.Fatalf("in the error queue: %s", d.Body)
		}
		if d.Headers["x-error-class"] != "VALIDATION" || d.Headers["x-park-reason"] != "VALIDATION" || fmt.Sprint(d.Headers["x-attempts"]) != "1" ||
			d.Headers["x-last-error"] == "" || d.Headers["x-origin-queue"] != contract.TransferRequestedQueue || d.Headers["MT-Reason"] != "fault" {
			t.Errorf("%s: headers %v", name, d.Headers)
		}
	}
	await(t, "the neighbours to be done", func() bool { return b.handled(t, ledger.Requested, "done") == len(good) })
	if retried := b.handled(t, ledger.Requested, "retried"); retried != 0 {
		t.Errorf("%d deliveries were retried, want none", retried)
	}
	for _, tr := range good {
		b.expectLeg(t, tr, ledger.Debited, "")
	}
	b.awaitSent(t)
	if said := len(b.rest(t)); said != len(good) {
		t.Errorf("%d answers, want %d", said, len(good))
	}
	expectInvariants(t, b.pool)
}

// A credit without a debit may only be early: it is tried again after each interval, and then given up.
func TestCreditWithoutDebit(t *testing.T) {
	t.Parallel()
	b := newBranch(t, "RETRY_INTERVALS=50ms,100ms,150ms")
	from, to := b.open(t, "EUR", 100), b.open(t, "EUR", 0)
	lost := newTransfer(from, to, 30)
	began := time.Now()
	b.request(t, ledger.CreditRequested, lost, 1)
	d := b.take(t, contract.ErrorQueue(contract.CreditRequestedQueue))
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("given up after %v, before the intervals were over", took)
	}
	if d.Headers["x-error-class"] != "NOT_FOUND" || d.Headers["x-park-reason"] != "MAX_ATTEMPTS" || fmt.Sprint(d.Headers["x-attempts"]) != "4" {
		t.Errorf("headers %v", d.Headers)
	}
	b.expectBalance(t, to, 0)
	if got := b.rest(t); len(got) != 0 {
		t.Errorf("said %+v", got)
	}
	if failed := b.metric(t, fmt.Sprintf("messaging_failures_total{class=%q,queue=%q}", "NOT_FOUND", contract.CreditRequestedQueue)); failed != 4 {
		t.Errorf("%d failed attempts, want 4", failed)
	}
}

// Every queue of the contract is there, and its arguments are the contract's.
func TestQueues(t *testing.T) {
	t.Parallel()
	b := newBranch(t)
	var names []string
	for _, queue := range b.env.Queues(t) {
		if queue.Name == b.events {
			continue
		}
		names = append(names, queue.Name)
		if queue.Type != "quorum" || !queue.Durable {
			t.Errorf("%s is %s, durable %v", queue.Name, queue.Type, queue.Durable)
		}
	}
	want := []string{
		"account.credit-requested", "account.credit-requested_error", "account.refund-requested", "account.refund-requested_error",
		"account.transfer-requested", "account.transfer-requested_error", "banking.dead-letters",
	}
	if !slices.Equal(names, want) {
		t.Errorf("queues %q, want %q", names, want)
	}
}
