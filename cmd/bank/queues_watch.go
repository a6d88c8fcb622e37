package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// queueWatch prints a line whenever what waits in a queue changes. How many are ready it asks the broker itself and not the statistics, so that a
// message shows for as long as it really waits; what is dead and still on its way out of the queue only the statistics count, a few seconds late.
//
// People keep it open beside what they break: queues come and go, the broker stops and starts, the statistics answer with 500 while a queue is
// being deleted. None of that ends it.
type queueWatch struct {
	broker *broker
	out    *output
	every  time.Duration
	// statistics is how often they are asked: they are no newer, and cost the broker something.
	statistics time.Duration

	start   time.Time
	conn    *amqp.Connection
	channel *amqp.Channel
	known   map[string]queueDepth
	shown   map[string]queueDepth
	away    bool // the broker does not answer, and that was said
}

// queueDepth is what is shown of one queue.
type queueDepth struct{ ready, dead int64 }

// queueChange is one line of a watch.
type queueChange struct {
	At    time.Time `json:"at"`
	Queue string    `json:"queue"`
	Ready int64     `json:"ready"`
	Dead  int64     `json:"deadLettering"`
	Gone  bool      `json:"gone,omitzero"` // the queue has been deleted
}

func newQueueWatch(b *broker, out *output, every time.Duration) *queueWatch {
	return &queueWatch{broker: b, out: out, every: every, statistics: 2 * time.Second, known: map[string]queueDepth{}, shown: map[string]queueDepth{}}
}

// run watches until ctx ends. It fails only when the first look does.
func (w *queueWatch) run(ctx context.Context) error {
	defer w.close()
	w.start = time.Now()
	listed, err := w.broker.managed(ctx)
	if err != nil {
		return err
	}
	w.learn(listed)
	if !w.out.json {
		fmt.Fprintln(w.out, "      TIME  READY  DEAD-LETTERING  QUEUE")
	}
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	statistics := time.NewTicker(w.statistics)
	defer statistics.Stop()
	answers, asking := make(chan []queue, 1), false
	for {
		if err := w.look(ctx); ctx.Err() != nil {
			return nil
		} else if err := w.tell(err); err != nil {
			return err
		}
		for looking := false; !looking; {
			select {
			case <-tick.C:
				looking = true
			case <-statistics.C:
				if asking {
					continue
				}
				asking = true
				go func() { // they may take long, or have to be asked again, and messages do not wait for that
					listed, _ := w.broker.managed(ctx) // what is known of them stays until they answer again
					answers <- listed
				}()
			case listed := <-answers:
				if asking = false; listed != nil {
					w.learn(listed)
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
}

// learn takes in what the statistics tell: which queues there are, and what is dead in them.
func (w *queueWatch) learn(listed []queue) {
	known := map[string]queueDepth{}
	for _, q := range listed {
		known[q.Name] = queueDepth{ready: w.known[q.Name].ready, dead: q.Dead}
	}
	w.known = known
}

// look counts what is ready.
func (w *queueWatch) look(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		if err := w.open(ctx); err != nil {
			return err
		}
		ready, err := w.broker.depth(w.channel, name)
		if refusal, ok := errors.AsType[*amqp.Error](err); ok && refusal.Code == amqp.NotFound {
			w.channel = nil // the broker has closed it; the statistics may still list the queue
			delete(w.known, name)
			continue
		}
		if err != nil {
			w.close()
			return fmt.Errorf("counting queue %s: %w", name, err)
		}
		w.known[name] = queueDepth{ready, w.known[name].dead}
	}
	return nil
}

func (w *queueWatch) open(ctx context.Context) (err error) {
	if w.conn == nil {
		if w.conn, err = w.broker.dial(ctx); err != nil {
			return err
		}
	}
	if w.channel == nil {
		if w.channel, err = w.conn.Channel(); err != nil {
			w.close() // the next look gets another connection
		}
	}
	return err
}

func (w *queueWatch) close() {
	if w.conn != nil {
		_ = w.conn.Close() // which may have broken
	}
	w.conn, w.channel = nil, nil
}

// tell prints what has changed, or that the broker is away: failed is why the last look failed.
func (w *queueWatch) tell(failed error) error {
	if away := failed != nil; away != w.away {
		w.away = away
		if !w.out.json {
			text := "the broker answers again"
			if away {
				text = failed.Error() + "; trying again"
			}
			if _, err := fmt.Fprintf(w.out, "  %6.1f s  %s\n", time.Since(w.start).Seconds(), w.out.faint(text)); err != nil {
				return err
			}
		}
	}
	if failed != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.known)) {
		now, before := w.known[name], w.shown[name] // of a new one nothing was shown, and nothing in it is no news
		if now == before {
			continue
		}
		w.shown[name] = now
		if err := w.print(queueChange{Queue: name, Ready: now.ready, Dead: now.dead}); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.shown)) {
		if _, there := w.known[name]; there {
			continue
		}
		delete(w.shown, name)
		if err := w.print(queueChange{Queue: name, Gone: true}); err != nil {
			return err
		}
	}
	return nil
}

func (w *queueWatch) print(change queueChange) error {
	change.At = time.Now().UTC()
	if w.out.json {
		return w.out.line(change)
	}
	dead := ""
	if change.Dead > 0 {
		dead = fmt.Sprint(change.Dead)
	}
	name := change.Queue
	if change.Gone {
		name += " (deleted)"
	}
	_, err := fmt.Fprintf(w.out, "  %6.1f s  %5d  %14s  %s\n", change.At.Sub(w.start).Seconds(), change.Ready, dead, name)
	return err
}
