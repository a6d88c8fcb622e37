package exercises

import (
	"context"
	"slices"
	"time"
)

// refund pays into an account that takes nothing.
var refund = Exercise{
	Number: 6, Name: "refund", Title: "The refund",
	Question: "The receiver's account is frozen, and the sender has been debited and committed. Nothing can be rolled back. How does the money get home?",
	Takes:    5 * time.Second,
	play: func(ctx context.Context, r *run) error {
		both, err := r.open(ctx, "Ada", "Eve")
		if err != nil {
			return err
		}
		ada, eve := both[0], both[1]
		before, err := r.balances(ctx, ada, eve)
		if err != nil {
			return err
		}
		r.onReset(rest, "Eve's account is thawed.", func(ctx context.Context) error { return r.thaw(ctx, eve) })
		if err := r.inject("Freeze Eve's account.", func() error { return r.freeze(ctx, eve) }); err != nil {
			return err
		}
		id, err := r.send(ctx, ada, eve)
		if err != nil {
			return err
		}
		t, err := r.end(ctx, id)
		if err != nil {
			return err
		}
		r.saw("bank transfer show "+id+" · console: Transfers", "The transfer has ended.", figure("status", t.Status), figure("reason", t.Reason), figure("facts", t.facts()))
		if err := r.happened(t.has("DEBITED") && t.has("CREDIT_REJECTED"), "Ada was debited, and then Eve's account refused.", figure("facts", t.facts())); err != nil {
			return err
		}
		life, err := r.life(ctx, id)
		if err != nil {
			return err
		}
		if err := r.recovered(t.Status == "REFUNDED" && t.Reason == "ACCOUNT_FROZEN" && slices.Equal(postings(life), []int64{-payment, payment}),
			"A third transaction brings it back: a debit and a refund in Ada's statement, nothing in Eve's.", figure("postings", postings(life))); err != nil {
			return err
		}
		after, err := r.balances(ctx, ada, eve)
		if err != nil {
			return err
		}
		return r.recovered(slices.Equal(before, after), "Both have what they had.", figure("before", before), figure("after", after))
	},
}
