package messaging

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// serve looks after the topology until the link breaks or ctx ends, and returns why it broke.
//
// A queue that somebody deletes takes its bindings and its consumers with it, and the broker tells nobody but the
// consumers. An exchange that is deleted takes bindings as well: what is published to it is refused, and what should be dead-lettered
// to it waits in its queue, in no figure of that. So existence is asked for now and then, and everything is declared again.
func (l *link) serve(ctx context.Context) error {
	tick := time.NewTicker(l.session.CheckInterval)
	defer tick.Stop()
	var last error
	var at time.Time
	check := func(repair bool) error {
		last = l.within(ctx, "look after the topology", func() error { return l.check(repair) })
		at = time.Now()
		var conflict *TopologyConflict
		if errors.As(last, &conflict) {
			l.fail(last)
		}
		return last
	}
	for {
		select {
		case <-tick.C:
			_ = check(true) // Ready reports it
		case answer := <-l.asks:
			if time.Since(at) >= checkAge {
				_ = check(false)
			}
			answer <- last
		case <-l.mended:
			if time.Since(at) >= time.Second {
				_ = check(true)
			}
		case <-l.broken:
			return l.why
		case <-ctx.Done():
			return nil
		}
	}
}

// checkAge is for how long the answer to "do the queues exist" is believed. A queue that was missing is reported for as
// long, although it has been declared again at once: what was in it is gone.
const checkAge = 5 * time.Second

// check says which queues and exchanges are missing, and then declares everything again; so it does anyway when repair is true, for
// the bindings, whose existence cannot be asked for.
func (l *link) check(repair bool) error {
	missing, err := l.missing()
	if err != nil {
		return fmt.Errorf("ask for the topology: %w", err)
	}
	if len(missing) > 0 || repair {
		if err := l.declare(); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		names := strings.Join(missing, ", ")
		l.session.Logger.Error("part of the topology was missing and is declared again", "missing", names)
		return fmt.Errorf("missing at the broker: %s", names)
	}
	return nil
}

// missing names the queues and exchanges that are not there.
func (l *link) missing() ([]string, error) {
	var ch *amqp.Channel
	var missing []string
	ask := func(what string, passively func() error) error {
		if ch == nil {
			var err error
			if ch, err = l.consuming.Channel(); err != nil {
				return err
			}
		}
		err := passively()
		var refused *amqp.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && refused.Code == amqp.NotFound:
			missing = append(missing, what)
			ch = nil // the broker has closed it
		default:
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	for _, q := range l.session.Topology.Queues {
		err := ask("queue "+q.Name, func() error {
			_, err := ch.QueueDeclarePassive(q.Name, true, false, false, false, nil)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, e := range l.session.Topology.Exchanges {
		err := ask("exchange "+e.Name, func() error { return ch.ExchangeDeclarePassive(e.Name, e.Kind, true, false, false, false, nil) })
		if err != nil {
			return nil, err
		}
	}
	if ch != nil {
		return missing, ch.Close()
	}
	return missing, nil
}

// queuesExist asks serve, which owns all such calls.
func (l *link) queuesExist(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkAge)
	defer cancel()
	answer := make(chan error, 1)
	select {
	case l.asks <- answer:
	case <-ctx.Done():
		return errors.New("the broker does not answer")
	case <-l.broken:
		return l.why
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return errors.New("the broker does not answer")
	case <-l.broken:
		return l.why
	}
}

// mend asks for the topology to be declared again soon, because a publishing found no queue.
func (l *link) mend() {
	select {
	case l.mended <- struct{}{}:
	default:
	}
}
