package messaging_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// Two messages that wait for a lock make each batch they are in time out. After them nobody else of the batch is tried, because that
// would be waiting in vain if the whole database hung; so nobody else has failed either.
func TestMessagesThatWereNotTriedAloneSpendNoAttempt(t *testing.T) {
	t.Parallel()
	for name, breaker := range map[string]*retry.BreakerConfig{
		"without a breaker": nil,
		"with a breaker":    {OpenFor: 50 * time.Millisecond, OpenMax: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := account(nil, time.Millisecond, time.Millisecond)
			c.Handler = func(_ context.Context, batch []*messaging.Message) ([]error, error) {
				for _, m := range batch {
					if strings.HasPrefix(m.MessageID, "locked") {
						return nil, errSlow
					}
				}
				return make([]error, len(batch)), nil
			}
			c.BatchSize, c.Concurrency, c.BatchWait = 10, 1, 200*time.Millisecond
			c.Breaker, c.Probe, c.Starts = breaker, (&dependency{}).probe, newNotebook()
			f := start(t, s, c)
			for _, id := range []string{"locked-0", "good-a", "locked-1"} {
				f.publishBody(requested, body(id))
			}
			for i := range 7 {
				f.publishBody(requested, body(fmt.Sprint("good-", i)))
			}
			for range 2 {
				d := f.take(errorQueue)
				f.checkQuarantined(d, "account", requestQueue, 3, retry.ReasonMaxAttempts, retry.Timeout)
				if !strings.Contains(string(d.Body), "locked") {
					t.Errorf("%s was given up", d.Body)
				}
			}
			f.empty(requestQueue, errorQueue)
			f.stop()
			close(f.handled)
			for m := range f.handled {
				if strings.HasPrefix(m.MessageID, "good") && m.Attempt != 1 {
					t.Errorf("%s is at attempt %d", m.MessageID, m.Attempt)
				}
			}
		})
	}
}
