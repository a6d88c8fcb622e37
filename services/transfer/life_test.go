package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/life"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

// lifeLines are the events of an answer, skimmed: kind, type, what became of it.
func lifeLines(events []life.Event) (lines []string) {
	for _, e := range events {
		var words []string
		for _, text := range []string{string(e.Kind), strings.TrimPrefix(strings.TrimPrefix(e.Type, "Transfers.Transfer."), "Accounts.Account."), e.Class, e.Reason, e.By} {
			if text != "" {
				words = append(words, text)
			}
		}
		if e.Kind == life.Fact {
			words = append(words, e.Detail)
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

func sameLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the life is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What a transfer has said follows from its facts, in the order in which it learnt them.
func TestTellWhatWasSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		facts  []lifecycle.Fact
		reason string
		says   []string
		told   []string
	}{
		"just accepted": {nil, "", []string{contract.TransferRequested}, []string{"ACCEPTED"}},
		"completed": {[]lifecycle.Fact{lifecycle.Debited, lifecycle.Credited}, "",
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferCompleted},
			[]string{"ACCEPTED", "FACT Debited DEBITED", "FACT Credited CREDITED"}},
		"completed, told in the wrong order": {[]lifecycle.Fact{lifecycle.Credited, lifecycle.Debited}, "",
			[]string{contract.TransferRequested, contract.TransferCompleted},
			[]string{"ACCEPTED", "FACT Credited CREDITED", "FACT Debited DEBITED"}},
		"rejected": {[]lifecycle.Fact{lifecycle.DebitRejected}, "ACCOUNT_FROZEN",
			[]string{contract.TransferRequested, contract.TransferRejected},
			[]string{"ACCEPTED", "FACT DebitRejected ACCOUNT_FROZEN DEBIT_REJECTED"}},
		"refunded after the timeout": {[]lifecycle.Fact{lifecycle.Debited, lifecycle.TimedOut, lifecycle.CreditRejected, lifecycle.Refunded}, "TIMEOUT",
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested, contract.TransferRefunded},
			[]string{"ACCEPTED", "FACT Debited DEBITED", "FACT TIMEOUT TIMED_OUT", "FACT CreditRejected CREDIT_REJECTED", "FACT Refunded REFUNDED"}},
		"credited after the timeout": {[]lifecycle.Fact{lifecycle.Debited, lifecycle.TimedOut, lifecycle.Credited}, "",
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested, contract.TransferCompleted},
			[]string{"ACCEPTED", "FACT Debited DEBITED", "FACT TIMEOUT TIMED_OUT", "FACT Credited CREDITED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			of := transfer{ID: uuid.New(), Source: uuid.New(), Destination: uuid.New(), Money: contract.Money{Minor: 1, Currency: "EUR"}, CreatedAt: began,
				Timeline: []timelineEntry{{Fact: lifecycle.Requested, At: began, MessageID: "request"}}}
			if c.reason != "" {
				of.Reason = &c.reason
			}
			for i, fact := range c.facts {
				of.Timeline = append(of.Timeline, timelineEntry{Fact: fact, At: began.Add(time.Duration(i+1) * time.Second), MessageID: fact.String()})
			}
			told := tell(of)
			sameLines(t, lifeLines(told.Events), c.told)
			var says []string
			for _, s := range told.Said {
				says = append(says, s.Type)
			}
			if !slices.Equal(says, c.says) {
				t.Errorf("it says %v, want %v", says, c.says)
			}
			if first := told.Said[0]; !first.At.Equal(began) || !slices.IsSortedFunc(told.Said, func(a, b life.Said) int { return a.At.Compare(b.At) }) {
				t.Errorf("it was said at %v, and began at %s", told.Said, began)
			}
		})
	}
}

// The life shows poison with its attempts, its parking, its replay and its end, between the steps that the transfer took.
func TestLifeShowsFailures(t *testing.T) {
	t.Parallel()
	b := startBank(t, "ADMIN_TOKEN=secret", "RETRY_DELAY=200ms", "MAX_ATTEMPTS=100")
	lifeOf := func(id uuid.UUID) []life.Event {
		t.Helper()
		a := b.call(http.MethodGet, "/transfers/"+strings.ToUpper(id.String())+"/life", "")
		if a.StatusCode != http.StatusOK {
			t.Fatalf("answer %d %s", a.StatusCode, a.body)
		}
		var l life.Life
		b.decode(a.body, &l)
		if l.TransferID != id || l.Service != "transfer" {
			t.Errorf("the life of %s is %+v", id, l)
		}
		return l.Events
	}
	count := func(id uuid.UUID, kind life.Kind) (n int) {
		t.Helper()
		for _, e := range lifeOf(id) {
			if e.Kind == kind {
				n++
			}
		}
		return n
	}
	order := func(path, body string) {
		t.Helper()
		if a := b.call(http.MethodPost, path, body, authorization, "X-Operator: ann"); a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), `"done":1`) {
			t.Fatalf("answer %d %s", a.StatusCode, a.body)
		}
	}

	accepted := b.request(newOrder())
	poison := tells(accepted, contract.AccountDebited)
	poison.Data = strings.Replace(poison.Data, "2500", "2501", 1)
	b.publish(poison)
	parked := func(times int) {
		t.Helper()
		b.eventually("the poison is parked", func() bool {
			ready, _ := b.env.QueueDepth(t, contract.ParkingLot)
			return ready == 1 && count(accepted.ID, life.Parked) == times
		})
	}
	parked(1)
	order("/admin/quarantine/replay", fmt.Sprintf(`{"ids":[%q],"confirm":true}`, poison.MessageID))
	parked(2)
	order("/admin/quarantine/discard", fmt.Sprintf(`{"ids":[%q],"because":"a wrong amount","confirm":true}`, poison.MessageID))
	b.publish(tells(accepted, contract.AccountDebited))
	b.awaitSent(accepted.ID, 2)
	b.publish(tells(accepted, contract.AccountCredited))
	b.awaitStatus(accepted.ID, "COMPLETED")
	b.eventually("all is sent", func() bool { return count(accepted.ID, life.Waiting) == 0 })
	events := lifeOf(accepted.ID)
	sameLines(t, lifeLines(events), []string{
		"ACCEPTED", "SENT Requested",
		"FAILED Debited INVARIANT", "PARKED Debited INVARIANT INVARIANT", "REPLAYED Debited ann",
		"FAILED Debited INVARIANT", "PARKED Debited INVARIANT INVARIANT", "DISCARDED Debited a wrong amount ann",
		"HANDLED Debited", "FACT Debited DEBITED", "SENT CreditRequested", "HANDLED Credited", "FACT Credited CREDITED", "SENT Completed",
	})
	if e := events[2]; e.MessageID != poison.MessageID || e.Attempt != 1 || e.Queue != contract.AccountEventsQueue || !strings.Contains(e.Detail, "2501") || e.NextDelayMs != nil {
		t.Errorf("the first failure is %+v", e)
	}
	if e := events[0]; e.AmountMinor != 2500 {
		t.Errorf("accepted is %+v", e)
	}

	// An event that is ahead of its transfer fails, waits, and is handled once the transfer is there.
	asked := newTransfer{Source: uuid.New(), Destination: uuid.New(), Money: contract.Money{Minor: 2500, Currency: "EUR"}}
	later, err := newAccepted(t.Context(), asked, nil)
	b.must(err)
	early := transferView{ID: later.id, SourceAccountID: asked.Source, DestinationAccountID: asked.Destination, AmountMinor: 2500, Currency: "EUR"}
	b.publish(tells(early, contract.AccountDebited))
	b.eventually("a failed attempt", func() bool {
		return b.count(`select count(*) from attempts where transfer_id = $1 and class = 'NOT_FOUND'`, later.id) > 0
	})
	if a := b.call(http.MethodGet, "/transfers/"+later.id.String()+"/life", ""); a.StatusCode != http.StatusNotFound {
		t.Errorf("the life of a transfer that is not there: %d", a.StatusCode)
	}
	_, _, err = intakeOf(b.db).accept(t.Context(), later)
	b.must(err)
	b.awaitStatus(later.id, "DEBITED")
	events = lifeOf(later.id)
	failure := slices.IndexFunc(events, func(e life.Event) bool { return e.Kind == life.Failed })
	if e := events[failure]; e.Class != "NOT_FOUND" || e.Attempt != 1 || e.NextDelayMs == nil || *e.NextDelayMs != 200 {
		t.Errorf("the failure is %+v", e)
	}
	if handled := slices.IndexFunc(events, func(e life.Event) bool { return e.Kind == life.Handled }); handled < failure {
		t.Errorf("handled before it failed: %v", lifeLines(events))
	}
}
