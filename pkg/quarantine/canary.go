package quarantine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// canaryMargin is what a canary gets beyond the longest road, for a busy consumer.
const canaryMargin = 30 * time.Second

// LongestRoad is how long a message can be under way, waits only, through all of its attempts.
func LongestRoad(p retry.Policy) (road time.Duration) {
	if len(p.Delays) == 0 {
		return 0
	}
	for n := range p.MaxAttempts - 1 {
		road += time.Duration(float64(p.Delays[min(n, len(p.Delays)-1)]) * (1 + p.Jitter))
	}
	return road
}

// checked waits after a round of canaries until each has been handled, and ends the run when one came back.
func (r *replaying) checked(ctx context.Context, queue string, watched []*task) error {
	if !r.confirm || r.canary == 0 {
		return nil
	}
	r.canary -= len(watched)
	if err := r.flush(); err != nil {
		return err
	}
	if err := r.await(ctx, queue, watched); err != nil {
		return err
	}
	r.size = r.canary
	return nil
}

func (r *replaying) await(ctx context.Context, queue string, watched []*task) error {
	for _, t := range watched {
		if !slices.Contains(r.Consumed, t.queue) {
			return &stopped{fmt.Sprintf("the canary went to %s, which another service takes: see there how it fared, then replay the others", t.queue)}
		}
	}
	patience := r.LongestRoad + r.margin
	over := time.NewTimer(patience)
	defer over.Stop()
	for pause := r.poll; ; pause = min(2*pause, 8*r.poll) {
		done, err := r.hold.inInbox(ctx, watched)
		if err != nil {
			return err
		}
		open := watched[:0:0]
		for i, t := range watched {
			if done[i] != 1 {
				open = append(open, t)
			}
		}
		if watched = open; len(watched) == 0 {
			return nil
		}
		if err := r.cameBack(ctx, queue, watched); err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-over.C:
			return &stopped{fmt.Sprintf("%d of the canaries were neither handled nor did they come back within %s", len(watched), patience)}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// cameBack ends the run when one of the canaries is in the quarantine again.
func (r *replaying) cameBack(ctx context.Context, queue string, watched []*task) error {
	l, err := r.look(ctx, queue)
	if err != nil {
		return err
	}
	defer l.close()
	var back *parked
	err = l.each(ctx, func(d *amqp.Delivery) (bool, error) {
		p := read(queue, d)
		if p.replayedSince(r.began) && slices.ContainsFunc(watched, func(t *task) bool { return t.Key == p.Key }) {
			back = p
		}
		return back == nil, nil
	})
	if err != nil || back == nil {
		return err
	}
	return &stopped{fmt.Sprintf("the canary %s came back with %s: %s", back.Key, back.Reason, back.Error)}
}
