package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
)

// killed ends processes at the two instants that everybody worries about.
var killed = Exercise{
	Number: 9, Name: "kill", Title: "Kill -9 at the worst moment",
	Question: "A process is killed after its commit and before its ack, and another one after the broker has confirmed a message and before the outbox knows. Is money lost, or moved twice?",
	Needs:    []Need{Faults},
	Takes:    10 * time.Second,
	play: func(ctx context.Context, r *run) error {
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		ear, err := r.broker.listen()
		if err != nil {
			return err
		}
		defer ear.close()

		// Between commit and ack: the money has moved, and the broker does not know.
		id, err := r.killAt(ctx, r.account, "after-commit", payer, payee)
		if err != nil {
			return err
		}
		if err := r.awaitFault(ctx, "The broker has handed the request out again, and the new process has noticed that it was begun before.", func(ctx context.Context) (bool, error) {
			again, err := r.account.metric(ctx, "messaging_suspects_total")
			return again >= 1, err
		}); err != nil {
			return err
		}
		if err := r.movedOnce(ctx, id); err != nil {
			return err
		}

		// Between publish and mark: the broker has the message, and the outbox still holds it.
		if id, err = r.killAt(ctx, r.transfer, "after-publish", payer, payee); err != nil {
			return err
		}
		requested := messageID(id, contract.TransferRequested)
		if err := r.awaitFault(ctx, "The same request has passed the exchange twice.", func(context.Context) (bool, error) {
			return ear.copies(requested) >= 2, nil
		}); err != nil {
			return err
		}
		r.saw("bank transfer show "+id+" --life", "Two copies of one message, one id:", figure("messageId", requested), figure("copies", ear.copies(requested)))
		return r.movedOnce(ctx, id)
	},
}

// killAt orders the death of a service at a point, sends a transfer into it, and returns when another process runs.
func (r *run) killAt(ctx context.Context, s *service, point string, from, to customer) (id string, err error) {
	began, err := s.began(ctx)
	if err != nil {
		return "", err
	}
	fired, err := s.fired(ctx)
	if err != nil {
		return "", err
	}
	if err := r.inject(fmt.Sprintf("%s will end at once, as by kill -9, when it next comes to the point %s.", s.name, point), func() error {
		return r.arm(ctx, s, fault{Point: point, Action: "exit", Count: 1})
	}); err != nil {
		return "", err
	}
	if id, err = r.send(ctx, from, to); err != nil {
		return "", err
	}
	if err := r.awaitFault(ctx, s.name+" is dead.", func(ctx context.Context) (bool, error) {
		now, err := s.began(ctx)
		return err != nil || now != began, nil
	}); err != nil {
		return "", err
	}
	if err := r.revive(ctx, s, began); err != nil {
		return "", fmt.Errorf("%w: %s does not come back: %w", ErrNotRecovered, s.name, err)
	}
	now, err := s.fired(ctx)
	if err != nil {
		return "", err
	}
	return id, r.happened(now == fired+1, "It died exactly there, once, and was started again.", figure("point", point), figure("fired", now-fired))
}

// movedOnce demands that the transfer is complete with one debit and one credit.
func (r *run) movedOnce(ctx context.Context, id string) error {
	t, err := r.end(ctx, id)
	if err != nil {
		return err
	}
	if err := r.awaitRecovery(ctx, "Nothing moves any more.", r.calm); err != nil {
		return err
	}
	life, err := r.life(ctx, id)
	if err != nil {
		return err
	}
	return r.recovered(t.Status == "COMPLETED" && len(postings(life)) == 2, "The transfer is complete: one debit, one credit.",
		figure("status", t.Status), figure("postings", postings(life)))
}
