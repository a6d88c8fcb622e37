package life

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"github.com/google/uuid"
)

// Told is what a service tells of a transfer from its own tables.
type Told struct {
	Events []Event
	Said   []Said
	Heard  []Heard
}

// Said is a message that the service has said about the transfer.
type Said struct {
	At      time.Time // zero: when Answers was handled
	Type    string
	Answers inbox.Key
}

// Heard is a message about the transfer that the service may have been told. A message that is here need not exist.
type Heard struct {
	inbox.Key
	Type string
}

// MessageID is the id under which a message of a type about a transfer is said by those who follow the contract.
func MessageID(transfer uuid.UUID, messageType string) string {
	return contract.Say(transfer, messageType, contract.Data{}).ID.String()
}

// Hears is that the message of a type comes to a consumer.
func Hears(transfer uuid.UUID, consumer, messageType string) Heard {
	return Heard{inbox.Key{Consumer: consumer, MessageID: MessageID(transfer, messageType)}, messageType}
}

// found is what the tables of the packages say about a transfer.
type found struct {
	attempts []messaging.Attempt
	received map[inbox.Key]time.Time
	waiting  []outbox.Waiting
	all      bool // of the outbox was seen
	audit    []quarantine.Entry
}

// heard is all that the service may have been told: what it says itself, and what attempts have failed on.
func (f *found) heard(told []Heard) []Heard {
	var all []Heard
	seen := map[inbox.Key]bool{}
	add := func(h Heard) {
		if h.MessageID != "" && !seen[h.Key] {
			seen[h.Key] = true
			all = append(all, h)
		}
	}
	for _, h := range told {
		add(h)
	}
	for _, a := range f.attempts {
		add(Heard{inbox.Key{Consumer: a.Queue, MessageID: a.MessageID}, a.Type})
	}
	return all
}

// assemble makes one list of everything.
func assemble(transfer uuid.UUID, told Told, f found) []Event {
	events := append([]Event{}, told.Events...) // never null
	for _, h := range f.heard(told.Heard) {
		if at, ok := f.received[h.Key]; ok {
			events = append(events, Event{At: at, Kind: Handled, MessageID: h.MessageID, Type: h.Type, Queue: h.Consumer})
		}
	}
	for _, a := range f.attempts {
		events = append(events, ofAttempt(a)...)
	}
	for _, e := range f.audit {
		events = append(events, ofAudit(e)...)
	}
	events = append(events, ofMessages(transfer, told.Said, f)...)
	for i := range events {
		events[i].At = events[i].At.UTC()
	}
	inOrder(events)
	return events
}

// ofAttempt is the failure, and what it led to when that was the end.
func ofAttempt(a messaging.Attempt) []Event {
	failed := Event{
		At: a.At, Kind: Failed, MessageID: a.MessageID, Type: a.Type, Queue: a.Queue, Attempt: a.Attempt, Class: string(a.Class), Detail: a.Error,
	}
	switch a.Outcome {
	case messaging.AttemptRetried:
		delay := a.Delay.Milliseconds()
		failed.NextDelayMs = &delay
	case messaging.AttemptSpared:
		failed.Reason = Spared
	case messaging.AttemptCancelled:
		failed.Reason = Cancelled
	case messaging.AttemptQuarantined:
		parked := failed
		parked.Kind, parked.Reason, parked.Detail = Parked, a.Reason, ""
		return []Event{failed, parked}
	}
	return []Event{failed}
}

// ofAudit is what an operator did with a message. Where that failed, nothing happened to it.
func ofAudit(e quarantine.Entry) []Event {
	event := Event{At: e.StartedAt, Kind: Replayed, MessageID: e.MessageID, Type: e.Type, Queue: e.Queue, By: e.Operator, Detail: "to the " + e.Target}
	if e.Action == quarantine.ActionDiscard {
		event.Kind, event.Reason, event.Detail = Discarded, e.Because, ""
	}
	switch e.Outcome {
	case quarantine.OutcomeFailed:
		return nil
	case quarantine.OutcomeDone:
	case quarantine.OutcomeStarted:
		event.Detail = note(event.Detail, "under way, or its end is not known")
	default:
		event.Detail = note(event.Detail, "its end is not known")
	}
	return []Event{event}
}

func note(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// ofMessages are the messages that were said: those in the outbox wait, the others have been sent.
func ofMessages(transfer uuid.UUID, said []Said, f found) (events []Event) {
	saidAt := map[string]time.Time{}
	for _, s := range said {
		if s.At.IsZero() {
			s.At = f.received[s.Answers] // zero still when that is forgotten: then nobody knows any more when
		}
		saidAt[MessageID(transfer, s.Type)] = s.At
	}
	waits := map[string]bool{}
	for _, w := range f.waiting {
		waits[w.MessageID] = true
		event := Event{At: w.OccurredAt, Kind: Waiting, MessageID: w.MessageID, Type: w.Type}
		if at := saidAt[w.MessageID]; at.After(event.At) {
			event.At = at // which the message itself rounds down to milliseconds, to before its cause
		}
		if w.Attempts > 0 {
			event.Detail = fmt.Sprintf("%d publishings failed: %s", w.Attempts, w.Error)
		}
		if w.SetAside {
			event.Detail = note("set aside", event.Detail)
		}
		events = append(events, event)
	}
	for _, s := range said {
		event := Event{Kind: Sent, MessageID: MessageID(transfer, s.Type), Type: s.Type}
		if event.At = saidAt[event.MessageID]; event.At.IsZero() || waits[event.MessageID] {
			continue
		}
		if !f.all {
			event.Detail = "unless it is in the outbox, which holds too many messages to look at all of them"
		}
		events = append(events, event)
	}
	return events
}
