package drill

import (
	"context"
	"fmt"

	"example.com/banking/exercises/variants/toybank"
)

// Variant is one of the wrong programs, with the story in which it goes wrong.
type Variant struct {
	Name    string
	Mistake string // what it does
	Moral   string // what its right form does instead
	AtStake int64  // the drift of the wrong form, in cents: below zero is money that is gone

	// The points at which the two forms stop to be killed: the same moment in both.
	wrongStop, rightStop string
	// traffic is what the bank has to do. fault says whether what makes the program fail is part of it.
	traffic func(ctx context.Context, b *toybank.Bank, fault bool) error
	// meanwhile happens while the killed program is not there; nil is nothing.
	meanwhile func(ctx context.Context, b *toybank.Bank) error
	// spins says that the wrong form never comes to rest.
	spins bool
}

const (
	payment  = 25_00
	payments = 5
	// poison is a payment that the statement has no room for.
	poison = 1000_00
	// laps is how often the spinning message is watched coming back.
	laps = 1000
)

// variants in the order of the page.
var variants = []Variant{{
	Name:      "ackbeforecommit",
	Mistake:   "acks, then commits",
	Moral:     "commits, then acks; the inbox absorbs the second delivery",
	wrongStop: "between", rightStop: "between",
	traffic: pay,
	AtStake: -payment,
}, {
	Name:      "dedupeinmemory",
	Mistake:   "remembers in a map what it has handled",
	Moral:     "remembers in a row, in the transaction of the effect",
	wrongStop: "between", rightStop: "between",
	traffic: pay,
	AtStake: payment,
}, {
	Name:      "publishbeforecommit",
	Mistake:   "says what it did, then commits it",
	Moral:     "commits what it did together with what it has to say, then says it: the outbox",
	wrongStop: "between", rightStop: "between",
	traffic: func(ctx context.Context, b *toybank.Bank, _ bool) error {
		for range payments {
			if err := b.Ask(ctx, payment); err != nil {
				return err
			}
		}
		return nil
	},
	meanwhile: func(ctx context.Context, b *toybank.Bank) error { return b.Freeze(ctx, toybank.Alice) },
	AtStake:   payment,
}, {
	Name:      "requeue",
	Mistake:   "gives what fails back to the queue, at once and for ever",
	Moral:     "undoes what failed, tries a few times with pauses, then parks the message by a confirmed publish",
	wrongStop: fmt.Sprintf("failure %d", laps), rightStop: "failure 3",
	traffic: func(ctx context.Context, b *toybank.Bank, fault bool) error {
		if fault {
			if err := b.Pay(ctx, poison); err != nil {
				return err
			}
		}
		return pay(ctx, b, fault)
	},
	AtStake: laps * poison,
	spins:   true,
}}

// garbage has a message in front that is none.
func garbage(ctx context.Context, b *toybank.Bank, fault bool) error {
	if err := b.Publish(ctx, toybank.Credits, []byte("no message at all")); err != nil {
		return err
	}
	return pay(ctx, b, fault)
}

func pay(ctx context.Context, b *toybank.Bank, _ bool) error {
	for range payments {
		if err := b.Pay(ctx, payment); err != nil {
			return err
		}
	}
	return nil
}
