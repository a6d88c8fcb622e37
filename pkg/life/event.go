// Package life tells one transfer's life as one service knows it: what it did itself, what it said and was told, and every attempt at a
// message about it that went wrong, in one list from the oldest to the newest.
//
// Nothing is stored for it. It is put together from what is in the database anyway: the service's own tables, its inbox and outbox, the
// journal of failed attempts and the audit of the quarantine. So it is as complete as these are: the inbox forgets after its retention,
// the journal sooner, and nobody notes when a message left the outbox.
package life

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Kind is what an event is.
type Kind string

// The kinds, in the order in which events of the same instant are told: a message is handled, something becomes of it, the answer is sent.
const (
	Accepted  Kind = "ACCEPTED"  // the transfer was asked for
	Handled   Kind = "HANDLED"   // a message about it took effect, or had none to take
	Failed    Kind = "FAILED"    // an attempt at a message failed
	Parked    Kind = "PARKED"    // the message was given up, into the quarantine
	Replayed  Kind = "REPLAYED"  // an operator sent a quarantined message on its way again
	Discarded Kind = "DISCARDED" // an operator threw one away
	Posted    Kind = "POSTED"    // money moved on an account
	Fact      Kind = "FACT"      // something is known of the transfer from now on
	Sent      Kind = "SENT"      // a message was said, and is no longer in the outbox
	Waiting   Kind = "WAITING"   // a message was said, and is still in the outbox
)

var rank = map[Kind]int{
	Accepted: 0, Handled: 1, Failed: 2, Parked: 3, Replayed: 4, Discarded: 5, Posted: 6, Fact: 7, Sent: 8, Waiting: 9,
}

// What a FAILED event gives as reason when the attempt was not spent.
const (
	Spared    = "SPARED"    // what the handler depends on was down
	Cancelled = "CANCELLED" // the service stopped
)

// Event is one thing that happened. Members that say nothing about its kind are left out.
type Event struct {
	At          time.Time  `json:"at"`
	Kind        Kind       `json:"kind"`
	MessageID   string     `json:"messageId,omitzero"`
	Type        string     `json:"type,omitzero"` // of the message
	Queue       string     `json:"queue,omitzero"`
	Attempt     int        `json:"attempt,omitzero"`
	Class       string     `json:"class,omitzero"`
	Reason      string     `json:"reason,omitzero"`
	Detail      string     `json:"detail,omitzero"` // for people: the fact, the movement, the error
	NextDelayMs *int64     `json:"nextDelayMs,omitzero"`
	By          string     `json:"by,omitzero"` // the operator
	AmountMinor int64      `json:"amountMinor,omitzero"`
	AccountID   *uuid.UUID `json:"accountId,omitzero"`
}

// Life is what one service answers.
type Life struct {
	TransferID uuid.UUID `json:"transferId"`
	Service    string    `json:"service"`
	Events     []Event   `json:"events"`
}

// inOrder sorts events, oldest first. What is equal stays in the order in which it was told.
func inOrder(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(rank[a.Kind], rank[b.Kind]))
	})
}
