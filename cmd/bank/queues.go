package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/banking/internal/invariants"
)

// queuesCommand shows how deep the queues are.
type queuesCommand struct {
	Watch bool          `help:"Keep looking, and print a line for each change."`
	Every time.Duration `default:"500ms" help:"With --watch: how often to look."`
}

func (c *queuesCommand) Run(ctx context.Context, to *endpoints, out *output) error {
	b, err := newBroker(to)
	if err != nil {
		return err
	}
	queues, err := b.queues(ctx)
	if err != nil {
		return err
	}
	if c.Watch {
		return watchQueues(ctx, b, out, c.Every)
	}
	if out.json {
		return out.document(queues)
	}
	rows := make([][]string, 0, len(queues))
	for _, q := range queues {
		name := q.Name
		if invariants.Quarantine(name) && q.Ready > 0 {
			name = out.bad(name)
		}
		rows = append(rows, []string{fmt.Sprint(q.Ready), fmt.Sprint(q.Unacked), fmt.Sprint(q.Dead), fmt.Sprint(q.Consumers), name})
	}
	return out.table([]string{"READY", "UNACKED", "DEAD-LETTERING", "CONSUMERS", "QUEUE"}, rows)
}

// watchQueues prints a line whenever the number of waiting messages of a queue changes. It asks the broker itself and not the
// statistics, so that a message shows for as long as it really waits.
func watchQueues(ctx context.Context, b *broker, out *output, every time.Duration) error {
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	known, err := b.queues(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, q := range known {
		names = append(names, q.Name)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	start := time.Now()
	if !out.json {
		fmt.Fprintln(out, "      TIME  READY QUEUE")
	}
	var before []int64
	for {
		depths := make([]int64, len(names))
		for i, name := range names {
			if depths[i], err = b.depth(channel, name); err != nil {
				return fmt.Errorf("counting queue %s: %w", name, err)
			}
		}
		if !slices.Equal(before, depths) {
			for i, name := range names {
				if before == nil && depths[i] == 0 || before != nil && before[i] == depths[i] {
					continue
				}
				if err := printChange(out, queueChange{At: time.Now().UTC(), Queue: name, Ready: depths[i]}, start); err != nil {
					return err
				}
			}
			before = depths
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// queueChange is one line of a watch.
type queueChange struct {
	At    time.Time `json:"at"`
	Queue string    `json:"queue"`
	Ready int64     `json:"ready"`
}

func printChange(out *output, change queueChange, start time.Time) error {
	if out.json {
		return out.line(change)
	}
	_, err := fmt.Fprintf(out, "  %6.1f s  %4d  %s\n", change.At.Sub(start).Seconds(), change.Ready, change.Queue)
	return err
}
