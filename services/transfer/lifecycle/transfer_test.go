package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
)

var (
	transferID    = uuid.MustParse("00000000-0000-7000-8000-000000000001")
	sourceID      = uuid.MustParse("00000000-0000-7000-8000-00000000000a")
	destinationID = uuid.MustParse("00000000-0000-7000-8000-00000000000b")
)

func newTransfer() (lifecycle.Transfer, contract.Message) {
	return lifecycle.Request(transferID, sourceID, destinationID, contract.Money{Minor: 30, Currency: "EUR"})
}

// event is the data of an account event that fits the transfer.
func event(account uuid.UUID, reason string) contract.Data {
	data := contract.Data{TransferID: contract.Some(transferID.String()), AccountID: contract.Some(account.String())}
	if reason != "" {
		data.Reason = contract.Some(reason)
		return data
	}
	data.AmountMinor, data.Currency = 30, contract.Some("EUR")
	return data
}

func TestWhatIsSaid(t *testing.T) {
	t.Parallel()
	order := contract.Data{SourceAccountID: contract.Some(sourceID.String()), DestinationAccountID: contract.Some(destinationID.String()),
		AmountMinor: 30, Currency: contract.Some("EUR")}
	refund := order
	refund.Reason = contract.Some(contract.AccountFrozen)
	end := func(status, reason string) contract.Data {
		data := contract.Data{Status: contract.Some(status)}
		if reason != "" {
			data.Reason = contract.Some(reason)
		}
		return data
	}
	type heard struct {
		messageType string
		data        contract.Data
		says        string
		with        contract.Data
	}
	debited := heard{contract.AccountDebited, event(sourceID, ""), contract.TransferCreditRequested, order}
	for name, conversation := range map[string][]heard{
		"completed": {debited,
			{contract.AccountCredited, event(destinationID, ""), contract.TransferCompleted, end("COMPLETED", "")}},
		"rejected": {
			{contract.AccountDebitRejected, event(sourceID, contract.InsufficientFunds), contract.TransferRejected, end("REJECTED", contract.InsufficientFunds)}},
		"refunded": {debited,
			{contract.AccountCreditRejected, event(destinationID, contract.AccountFrozen), contract.TransferRefundRequested, refund},
			{contract.AccountRefunded, event(sourceID, ""), contract.TransferRefunded, end("REFUNDED", contract.AccountFrozen)}},
	} {
		transfer, first := newTransfer()
		if first != contract.Say(transferID, contract.TransferRequested, order) {
			t.Errorf("%s: begins with %+v", name, first)
		}
		for _, h := range conversation {
			step, err := transfer.Hear(h.messageType, h.data)
			if err != nil || step.Message == nil || *step.Message != contract.Say(transferID, h.says, h.with) {
				t.Errorf("%s: %s is answered by %+v, %v", name, h.messageType, step.Message, err)
			}
		}
	}
}

func TestTheReasonIsThatOfTheFirstFactThatTurnedIt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		facts []lifecycle.Fact // each with its own name as the reason
		want  string
	}{
		{[]lifecycle.Fact{lifecycle.Debited}, ""},
		{[]lifecycle.Fact{lifecycle.DebitRejected}, "DEBIT_REJECTED"},
		{[]lifecycle.Fact{lifecycle.TimedOut, lifecycle.DebitRejected}, "TIMED_OUT"},
		{[]lifecycle.Fact{lifecycle.DebitRejected, lifecycle.TimedOut}, "DEBIT_REJECTED"},
		{[]lifecycle.Fact{lifecycle.Debited, lifecycle.CreditRejected, lifecycle.TimedOut, lifecycle.Refunded}, "CREDIT_REJECTED"},
		{[]lifecycle.Fact{lifecycle.Debited, lifecycle.TimedOut, lifecycle.CreditRejected, lifecycle.Refunded}, "TIMED_OUT"},
		{[]lifecycle.Fact{lifecycle.Refunded, lifecycle.CreditRejected}, "CREDIT_REJECTED"},
		{[]lifecycle.Fact{lifecycle.TimedOut, lifecycle.Credited}, ""},
		{[]lifecycle.Fact{lifecycle.Credited, lifecycle.TimedOut}, ""},
	} {
		transfer, _ := newTransfer()
		for _, fact := range test.facts {
			if _, err := transfer.Learn(fact, fact.String()); err != nil {
				t.Fatal(err)
			}
		}
		if transfer.Reason != test.want {
			t.Errorf("%v: reason %q, want %q", test.facts, transfer.Reason, test.want)
		}
	}
}

// An account that is not ours may refuse without a reason. The refund that follows has one, as account demands, and the timeout that
// comes later was not what turned the transfer.
func TestARefusalWithoutAReason(t *testing.T) {
	t.Parallel()
	for _, data := range []contract.Data{
		{TransferID: contract.Some(transferID.String()), AccountID: contract.Some(destinationID.String())},
		{TransferID: contract.Some(transferID.String()), AccountID: contract.Some(destinationID.String()), Reason: contract.Some("")},
	} {
		transfer, _ := newTransfer()
		step, err := transfer.Hear(contract.AccountCreditRejected, data)
		if err != nil || step.Message == nil || step.Message.Type != contract.TransferRefundRequested {
			t.Fatalf("%+v, %v", step, err)
		}
		if refund, err := step.Message.Data.Refund(); err != nil || refund.Reason != "UNSPECIFIED" {
			t.Errorf("the refund is asked for with %+v, %v", refund, err)
		}
		if _, err := transfer.TimeOut(); err != nil || transfer.Reason != "UNSPECIFIED" {
			t.Errorf("after the timeout the reason is %s, %v", transfer.Reason, err)
		}
	}
	rejected, _ := newTransfer()
	step, err := rejected.Hear(contract.AccountDebitRejected, contract.Data{TransferID: contract.Some(transferID.String()), AccountID: contract.Some(sourceID.String())})
	if err != nil || step.To != lifecycle.StatusRejected || step.Message.Data.Reason != contract.Some("UNSPECIFIED") {
		t.Errorf("%+v, %v", step, err)
	}
}

func TestATimeoutAsksForTheMoneyAndMayLose(t *testing.T) {
	t.Parallel()
	transfer, _ := newTransfer()
	step, err := transfer.TimeOut()
	if err != nil || step.Message == nil || step.Message.Type != contract.TransferRefundRequested || step.Message.Data.Reason != contract.Some("TIMEOUT") {
		t.Fatalf("%+v, %v", step, err)
	}
	if step, err = transfer.TimeOut(); err != nil || step.New || step.Message != nil {
		t.Errorf("a second timeout: %+v, %v", step, err)
	}
	if step, err = transfer.Hear(contract.AccountCredited, event(destinationID, "")); err != nil || step.To != lifecycle.StatusCompleted {
		t.Errorf("the credit wins: %+v, %v", step, err)
	}
	if _, err = transfer.Hear(contract.AccountRefunded, event(sourceID, "")); class(err) != retry.Invariant {
		t.Errorf("and a refund is impossible then: %v", err)
	}
}

func TestAnEventThatContradictsTheTransferIsAnInvariant(t *testing.T) {
	t.Parallel()
	events := map[string]contract.Data{
		contract.AccountDebited:        event(sourceID, ""),
		contract.AccountDebitRejected:  event(sourceID, contract.AccountFrozen),
		contract.AccountCredited:       event(destinationID, ""),
		contract.AccountCreditRejected: event(destinationID, contract.AccountFrozen),
		contract.AccountRefunded:       event(sourceID, ""),
	}
	spoiled := map[string]func(*contract.Data){
		"no account":      func(d *contract.Data) { d.AccountID = contract.Text{} },
		"another account": func(d *contract.Data) { d.AccountID = contract.Some(uuid.NewString()) },
		"the other account": func(d *contract.Data) {
			if d.AccountID.Value == sourceID.String() {
				d.AccountID = contract.Some(destinationID.String())
			} else {
				d.AccountID = contract.Some(sourceID.String())
			}
		},
		"no id at all":     func(d *contract.Data) { d.AccountID = contract.Some("somebody") },
		"no amount":        func(d *contract.Data) { d.AmountMinor = 0 },
		"another amount":   func(d *contract.Data) { d.AmountMinor = 31 },
		"no currency":      func(d *contract.Data) { d.Currency = contract.Text{} },
		"another currency": func(d *contract.Data) { d.Currency = contract.Some("USD") },
	}
	for messageType, data := range events {
		rejection := data.Reason.Present
		for what, spoil := range spoiled {
			if rejection && (strings.Contains(what, "amount") || strings.Contains(what, "currency")) {
				continue // a rejection carries neither
			}
			transfer, _ := newTransfer()
			before, told := transfer, data
			spoil(&told)
			if _, err := transfer.Hear(messageType, told); class(err) != retry.Invariant || transfer != before {
				t.Errorf("%s with %s: %v", messageType, what, err)
			}
		}
		transfer, _ := newTransfer()
		data.AccountID.Value = strings.ToUpper(data.AccountID.Value)
		if step, err := transfer.Hear(messageType, data); err != nil || !step.New {
			t.Errorf("%s that fits, in capital letters: %+v, %v", messageType, step, err)
		}
	}
}

// What a message says may be as long as a message, and ends up in a line of log and a header.
func TestAnErrorQuotesOnlyTheBeginningOfALongText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	stranger, currency := event(sourceID, ""), event(sourceID, "")
	stranger.AccountID, currency.Currency = contract.Some(long), contract.Some(long)
	for name, hear := range map[string]func(*lifecycle.Transfer) (lifecycle.Step, error){
		"account":  func(t *lifecycle.Transfer) (lifecycle.Step, error) { return t.Hear(contract.AccountDebited, stranger) },
		"currency": func(t *lifecycle.Transfer) (lifecycle.Step, error) { return t.Hear(contract.AccountDebited, currency) },
		"type":     func(t *lifecycle.Transfer) (lifecycle.Step, error) { return t.Hear(long, event(sourceID, "")) },
	} {
		transfer, _ := newTransfer()
		if _, err := hear(&transfer); err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "xxxxx") {
			t.Errorf("%s: an error of %d characters", name, len(fmt.Sprint(err)))
		}
	}
}

func TestOnlyAccountEventsAreHeard(t *testing.T) {
	t.Parallel()
	for _, messageType := range []string{"", contract.TransferRequested, contract.TransferCompleted, "accounts.account.debited"} {
		transfer, _ := newTransfer()
		if _, err := transfer.Hear(messageType, event(sourceID, "")); class(err) != retry.Validation {
			t.Errorf("%q: %v", messageType, err)
		}
	}
}

func TestFactsByName(t *testing.T) {
	t.Parallel()
	for fact := range lifecycle.Rules().Facts.All() {
		if read, ok := lifecycle.ParseFact(fact.String()); !ok || read != fact {
			t.Errorf("%s is read as %s", fact, read)
		}
	}
	if _, ok := lifecycle.ParseFact("debited"); ok {
		t.Error("a fact in small letters was accepted")
	}
}

func class(err error) retry.Class {
	var classed *retry.Error
	if errors.As(err, &classed) {
		return classed.Class
	}
	return ""
}
