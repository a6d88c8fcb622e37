package messaging

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// observed judges one delivery that failed with err and answers what the observer was told.
func observed(t *testing.T, body string, spent int64, err error, change ...func(*Consumer, context.CancelFunc)) []Attempt {
	t.Helper()
	var told []Attempt
	s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.DiscardHandler)})
	c, wrong := s.NewConsumer(ConsumerConfig{
		Queue: mainQueue, Road: InProcess("errors"), Policy: retry.Policy{MaxAttempts: 3, Delays: []time.Duration{5 * time.Second}, Classify: true},
		Handler: func(context.Context, []*Message) ([]error, error) { return nil, nil },
		Observe: func(a Attempt) { told = append(told, a) },
	})
	if wrong != nil {
		t.Fatal(wrong)
	}
	c.now = func() time.Time { return time.Unix(1e9, 0) }
	live, stop := context.WithCancel(t.Context())
	defer stop()
	for _, f := range change {
		f(c, stop)
	}
	d := &delivery{Delivery: *returned(copied(spent, amqp.Table{HeaderParkedAt: "2001-01-01T00:00:00Z"}))}
	d.Body = []byte(body)
	d.prepare(mainQueue)
	d.err = err
	c.judge(live, []*delivery{d})
	return told
}

func TestObserverIsToldOfFailuresOnly(t *testing.T) {
	t.Parallel()
	const body = `{"messageId":"m","type":"T","correlationId":"c","data":{"transferId":"t"}}`
	failed := Attempt{Queue: mainQueue, MessageID: "m", Type: "T", TransferID: "t", Attempt: 1, At: time.Unix(1e9, 0)}
	as := func(change func(*Attempt)) []Attempt {
		a := failed
		change(&a)
		return []Attempt{a}
	}
	down := func(c *Consumer, _ context.CancelFunc) {
		c.Probe = func(context.Context) error { return errors.New("down") }
		c.Breaker = &retry.BreakerConfig{}
		c.dampers = newDampers(c.ConsumerConfig, c.session)
	}
	for name, c := range map[string]struct {
		spent  int64
		err    error
		change []func(*Consumer, context.CancelFunc)
		want   []Attempt
	}{
		"done": {0, nil, nil, nil},
		"retried": {1, retry.Errorf(retry.NotFound, "no\nsuch"), nil, as(func(a *Attempt) {
			a.Attempt, a.Class, a.Error, a.Outcome, a.Delay = 2, retry.NotFound, "no such", AttemptRetried, 5*time.Second
		})},
		"the last": {2, retry.Errorf(retry.NotFound, "no"), nil, as(func(a *Attempt) {
			a.Attempt, a.Class, a.Error, a.Outcome, a.Reason = 3, retry.NotFound, "no", AttemptQuarantined, retry.ReasonMaxAttempts
		})},
		"at once": {0, retry.Errorf(retry.Invariant, "no"), nil, as(func(a *Attempt) {
			a.Class, a.Error, a.Outcome, a.Reason = retry.Invariant, "no", AttemptQuarantined, retry.ReasonInvariant
		})},
		"spared": {0, retry.Errorf(retry.Timeout, "no"), []func(*Consumer, context.CancelFunc){down}, as(func(a *Attempt) {
			a.Class, a.Error, a.Outcome = retry.Timeout, "no", AttemptSpared
		})},
		"cancelled": {0, errors.New("no"), []func(*Consumer, context.CancelFunc){func(_ *Consumer, stop context.CancelFunc) { stop() }}, as(func(a *Attempt) {
			a.Class, a.Error, a.Outcome = retry.Cancelled, "no", AttemptCancelled
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := observed(t, body, c.spent, c.err, c.change...); !reflect.DeepEqual(got, c.want) {
				t.Errorf("told\n%+v\nwant\n%+v", got, c.want)
			}
		})
	}
}

func TestObserverIsToldInBounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 100<<10)
	told := observed(t, `{"messageId":"`+long+`","type":"`+long+`","correlationId":"`+long+`"}`, 0, retry.Errorf(retry.Validation, "%s", long))
	if len(told) != 1 {
		t.Fatalf("told %d times", len(told))
	}
	for name, text := range map[string]string{"id": told[0].MessageID, "type": told[0].Type, "transfer": told[0].TransferID, "error": told[0].Error} {
		if len(text) > 4<<10 || len(text) < 1000 {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
}
