package main

import (
	"context"
	"fmt"
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
		return newQueueWatch(b, out, c.Every).run(ctx)
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
