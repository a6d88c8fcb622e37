package messaging_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// A message that takes the database down each time it runs spends no attempt: the database is down, and that is no message's fault.
// Its starts are counted instead, also when it has failed in another way before.
func TestMessageThatTakesTheDatabaseDownIsQuarantined(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		service    func(script) (messaging.SessionConfig, messaging.ConsumerConfig)
		key        string
		queues     []string
		quarantine string
		before     int   // attempts that fail of something else
		kills      int32 // how often it runs after them
	}{
		"lap": {transfer, debited, []string{contract.AccountEventsQueue, contract.AccountEventsRetry}, contract.ParkingLot, 0, 3},
		"in process, after another failure": {func(answer script) (messaging.SessionConfig, messaging.ConsumerConfig) {
			return account(answer, time.Millisecond, time.Millisecond)
		}, requested, []string{requestQueue}, errorQueue, 1, 4}, // its copy at the tail is no suspect at first
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database, starts := &dependency{}, newNotebook()
			var kills atomic.Int32
			s, consumer := c.service(func(_ context.Context, m *messaging.Message) error {
				switch {
				case strings.HasPrefix(m.MessageID, "good"):
					return database.state()
				case m.Attempt <= c.before:
					return errOdd
				}
				kills.Add(1)
				database.down.Store(true)
				starts.away.Store(true)
				database.fails(errSlow)
				return errSlow
			})
			// It is back when it has been found down.
			consumer.Probe = func(ctx context.Context) error {
				err := database.probe(ctx)
				database.down.Store(false)
				starts.away.Store(false)
				database.fails(nil)
				return err
			}
			consumer.Starts, consumer.Breaker, consumer.BatchWait = starts, &retry.BreakerConfig{OpenFor: time.Hour}, 100*time.Millisecond
			f := start(t, s, consumer)
			for _, id := range []string{"good-1", "killer", "good-2"} {
				f.publishBody(c.key, body(id))
			}
			d := f.take(c.quarantine)
			f.checkQuarantined(d, s.Name, c.queues[0], c.before+3, retry.ReasonCrashLoop, retry.Unknown)
			if text, _ := d.Headers["x-last-error"].(string); string(d.Body) != body("killer") || !strings.Contains(text, "the database went away") {
				t.Errorf("%s was given up for %q", d.Body, text)
			}
			f.empty(append(c.queues, c.quarantine)...)
			if n := kills.Load(); n != c.kills {
				t.Errorf("it ran %d times", n)
			}
			f.stop()
			if len(starts.starts) != 0 {
				t.Errorf("%d starts have no end", len(starts.starts))
			}
		})
	}
}

// An outage meets whatever is at the head of the queue, again and again: as long as the start of a message cannot be noted it is
// not made, so it says nothing about the message.
func TestOutageMakesNobodyGuilty(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	env := redeliver(t, s, debited, "m")
	starts := newNotebook()
	starts.away.Store(true)
	c.Starts, c.Breaker = starts, &retry.BreakerConfig{OpenFor: time.Hour}
	c.Policy.MaxAttempts = 1
	var asked atomic.Int32
	failures := make(chan struct{}, 100)
	c.Probe = func(context.Context) error { // down after each failure, up when it is asked again
		if asked.Add(1)%2 == 0 || !starts.away.Load() {
			return nil
		}
		failures <- struct{}{}
		return errors.New("away")
	}
	f := startOn(t, env, s, c)
	for range 4 {
		<-failures
	}
	f.notHandled()
	starts.away.Store(false)
	if m := f.next(); m.Attempt != 1 {
		t.Errorf("attempt %d", m.Attempt)
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	f.stop()
	if starts.begun != 1 || len(starts.starts) != 0 {
		t.Errorf("%d starts were noted, %d have no end", starts.begun, len(starts.starts))
	}
}
