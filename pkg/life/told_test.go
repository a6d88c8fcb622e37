package life

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

var (
	transfer = uuid.MustParse("01890000-0000-7000-8000-000000000001")
	zero     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("elsewhere", 3600))
)

func at(seconds int) time.Time { return zero.Add(time.Duration(seconds) * time.Second) }

// lines renders events as a reader would skim them.
func lines(events []Event) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s", int(e.At.Sub(zero).Seconds()), e.Kind)
		for _, text := range []string{e.Type, e.Queue, e.Class, e.Reason, e.Detail, e.By} {
			if text != "" {
				fmt.Fprintf(&b, " %s", text)
			}
		}
		if e.Attempt > 0 {
			fmt.Fprintf(&b, " #%d", e.Attempt)
		}
		if e.NextDelayMs != nil {
			fmt.Fprintf(&b, " in %d", *e.NextDelayMs)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func expect(t *testing.T, told Told, f found, want string) {
	t.Helper()
	events := assemble(transfer, told, f)
	if got := lines(events); got != want {
		t.Errorf("told is\n%swant\n%s", got, want)
	}
	for _, e := range events {
		if e.At.Location() != time.UTC {
			t.Errorf("%s is at %s, not in UTC", e.Kind, e.At)
		}
	}
}

func TestNothingIsAnEmptyList(t *testing.T) {
	t.Parallel()
	if events := assemble(transfer, Told{}, found{all: true}); events == nil || len(events) != 0 {
		t.Errorf("%v, want a list without events", events)
	}
}

// Everything that happened at one instant is told in the order of cause and effect, whatever order it was found in.
func TestOneInstant(t *testing.T) {
	t.Parallel()
	heard := Hears(transfer, "q", contract.TransferRequested)
	expect(t, Told{
		Said:   []Said{{At: at(1), Type: contract.AccountDebited}},
		Events: []Event{{At: at(1), Kind: Fact, Detail: "DEBITED"}, {At: at(1), Kind: Posted}, {At: at(0), Kind: Accepted}},
		Heard:  []Heard{heard},
	}, found{received: map[inbox.Key]time.Time{heard.Key: at(1)}, all: true}, `0 ACCEPTED
1 HANDLED Transfers.Transfer.Requested q
1 POSTED
1 FACT DEBITED
1 SENT Accounts.Account.Debited
`)
}

// A poison message: three attempts, the quarantine, a replay, the same again, and then it was thrown away.
func TestFailuresReplaysAndTheEnd(t *testing.T) {
	t.Parallel()
	failed := func(n, second int, outcome messaging.AttemptOutcome) messaging.Attempt {
		a := messaging.Attempt{Queue: "q", MessageID: "poison", Type: "T", Attempt: n, Class: retry.NotFound, Error: "no", Outcome: outcome, At: at(second)}
		switch outcome {
		case messaging.AttemptRetried:
			a.Delay = 1500 * time.Millisecond
		case messaging.AttemptQuarantined:
			a.Reason = retry.ReasonMaxAttempts
		}
		return a
	}
	replayed := quarantine.Entry{Action: quarantine.ActionReplay, Outcome: quarantine.OutcomeDone, Queue: "lot", MessageID: "poison", Type: "T", Operator: "ann", Target: "queue q", StartedAt: at(10)}
	stuck, undone, discarded := replayed, replayed, replayed
	stuck.Outcome, stuck.StartedAt = quarantine.OutcomeStarted, at(20)
	undone.Outcome, undone.StartedAt = quarantine.OutcomeFailed, at(21)
	discarded.Action, discarded.Because, discarded.Outcome, discarded.StartedAt = quarantine.ActionDiscard, "no use", quarantine.OutcomeUnknown, at(30)
	expect(t, Told{}, found{
		attempts: []messaging.Attempt{
			failed(2, 2, messaging.AttemptQuarantined), failed(1, 1, messaging.AttemptRetried),
			failed(1, 12, messaging.AttemptSpared), failed(1, 13, messaging.AttemptCancelled),
		},
		received: map[inbox.Key]time.Time{{Consumer: "q", MessageID: "poison"}: at(14), {Consumer: "other", MessageID: "poison"}: at(3)},
		audit:    []quarantine.Entry{discarded, replayed, stuck, undone},
		all:      true,
	}, `1 FAILED T q NOT_FOUND no #1 in 1500
2 FAILED T q NOT_FOUND no #2
2 PARKED T q NOT_FOUND MAX_ATTEMPTS #2
10 REPLAYED T lot to the queue q ann
12 FAILED T q NOT_FOUND SPARED no #1
13 FAILED T q NOT_FOUND CANCELLED no #1
14 HANDLED T q
20 REPLAYED T lot to the queue q; under way, or its end is not known ann
30 DISCARDED T lot no use its end is not known ann
`)
}

func TestMessagesAreSentOrWait(t *testing.T) {
	t.Parallel()
	waiting := outbox.Waiting{MessageID: MessageID(transfer, contract.TransferCreditRequested), Type: contract.TransferCreditRequested, OccurredAt: at(2).Add(-time.Millisecond)}
	refused := outbox.Waiting{MessageID: "else", Type: "T", OccurredAt: at(3), Attempts: 5, Error: "too large", SetAside: true}
	answered := Hears(transfer, "q", contract.TransferCreditRequested)
	told := Told{Said: []Said{
		{At: at(1), Type: contract.TransferRequested}, {At: at(2), Type: contract.TransferCreditRequested},
		{Type: contract.AccountCreditRejected, Answers: answered.Key}, // said when the request was handled
		{Type: contract.AccountRefunded, Answers: inbox.Key{Consumer: "q", MessageID: "forgotten"}},
	}}
	f := found{waiting: []outbox.Waiting{waiting, refused}, received: map[inbox.Key]time.Time{answered.Key: at(4)}, all: true}
	expect(t, told, f, `1 SENT Transfers.Transfer.Requested
2 WAITING Transfers.Transfer.CreditRequested
3 WAITING T set aside; 5 publishings failed: too large
4 SENT Accounts.Account.CreditRejected
`)
	f.all = false
	const unless = "unless it is in the outbox, which holds too many messages to look at all of them"
	expect(t, told, f, `1 SENT Transfers.Transfer.Requested `+unless+`
2 WAITING Transfers.Transfer.CreditRequested
3 WAITING T set aside; 5 publishings failed: too large
4 SENT Accounts.Account.CreditRejected `+unless+`
`)
}

// A message that was heard under an id of its own and failed before is one message.
func TestMessagesAreHeardOnce(t *testing.T) {
	t.Parallel()
	key := inbox.Key{Consumer: "q", MessageID: "m"}
	f := found{attempts: []messaging.Attempt{{Queue: "q", MessageID: "m", Type: "T"}, {Queue: "q"}}}
	if heard := f.heard([]Heard{{key, "T"}, {key, "T"}}); len(heard) != 1 || heard[0].Key != key {
		t.Errorf("heard are %v", heard)
	}
}
