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
// consumers. So existence is asked for now and then, and everything is declared again.
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

// check says which queues are missing, and then declares everything again; so it does anyway when repair is true, for the
// exchanges and bindings whose existence cannot be asked for without a trace.
func (l *link) check(repair bool) error {
	missing, err := l.missing()
	if err != nil {
		return fmt.Errorf("ask for the queues: %w", err)
	}
	if len(missing) > 0 || repair {
		if err := l.declare(); err != nil {
			return err
		}
	}
	if len(missing) > 0 {
		names := strings.Join(missing, ", ")
		l.session.Logger.Error("queues were missing and are declared again", "queues", names)
		return fmt.Errorf("queue missing: %s", names)
	}
	return nil
}

func (l *link) missing() ([]string, error) {
	var ch *amqp.Channel
	var missing []string
	for _, q := range l.session.Topology.Queues {
		if ch == nil {
			var err error
			if ch, err = l.consuming.Channel(); err != nil {
				return nil, err
			}
		}
		_, err := ch.QueueDeclarePassive(q.Name, true, false, false, false, nil)
		var refused *amqp.Error
		switch {
		case err == nil:
		case errors.As(err, &refused) && refused.Code == amqp.NotFound:
			missing = append(missing, q.Name)
			ch = nil // the broker has closed it
		default:
			return nil, fmt.Errorf("%s: %w", q.Name, err)
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
