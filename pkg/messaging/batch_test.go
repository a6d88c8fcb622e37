package messaging_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// A batch waits for more messages, but not for such as cannot come, because all of the prefetch is here.
func TestBatchThatCannotGrowWaitsForNothing(t *testing.T) {
	t.Parallel()
	t.Run("prefetch below the size of a batch", func(t *testing.T) {
		t.Parallel()
		s, c := transfer(succeed)
		c.Prefetch, c.BatchSize, c.BatchWait = 1, 64, time.Hour
		f := start(t, s, c)
		for i := range 5 {
			f.publishBody(debited, body(fmt.Sprint(i)))
		}
		f.empty(contract.AccountEventsQueue)
	})
	t.Run("some of it waits for another attempt", func(t *testing.T) {
		t.Parallel()
		s, c := account(func(_ context.Context, m *messaging.Message) error {
			if strings.HasPrefix(m.MessageID, "failing") {
				return errOdd
			}
			return nil
		}, time.Hour)
		c.Prefetch, c.BatchSize, c.BatchWait = 10, 10, time.Hour
		f := start(t, s, c)
		for round := range 2 {
			for i := range 7 {
				f.publishBody(requested, body(fmt.Sprint("good-", round, i)))
			}
			for i := range 3 - 3*round {
				f.publishBody(requested, body(fmt.Sprint("failing-", i)))
			}
		}
		for range 17 {
			f.next()
		}
	})
}

func TestNoMoreIsTakenThanARateLimitStartsSoon(t *testing.T) {
	t.Parallel()
	for limit, want := range map[float64][2]int{0: {200, 50}, 0.001: {1, 1}, 0.5: {30, 30}, 1: {60, 50}, 1000: {200, 50}} {
		s, c := transfer(succeed)
		s.URLs = []string{"amqp://nobody.invalid"}
		c.RateLimit = limit
		consumer, err := messaging.NewSession(s).NewConsumer(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]int{consumer.Prefetch, consumer.BatchSize}; got != want {
			t.Errorf("at %v per second: prefetch and size of a batch are %v, want %v", limit, got, want)
		}
	}
}

// Whoever holds deliveries for as long as the broker's consumer_timeout loses the channel, and the attempts of all that wait on it.
func TestNothingIsHeldForLongWithoutBeingStarted(t *testing.T) {
	t.Parallel()
	t.Run("the rate was lowered", func(t *testing.T) {
		t.Parallel()
		s, c := account(func(_ context.Context, m *messaging.Message) error {
			if m.MessageID == "too much" && m.Attempt == 1 {
				return retry.LimitedFor(time.Millisecond, errOdd)
			}
			return nil
		}, time.Millisecond)
		c.Prefetch, c.BatchSize, c.RateLimit = 20, 1, 4
		c.HoldAtMost(time.Second)
		f := start(t, s, c)
		f.publishBody(requested, body("too much"))
		f.next()
		for i := range 12 {
			f.publishBody(requested, body(fmt.Sprint(i)))
		}
		f.eventually("what is not started to be given back", func() error {
			if ready, _ := f.env.QueueDepth(t, requestQueue); ready < 5 {
				return fmt.Errorf("%d messages wait in the queue", ready)
			}
			return nil
		})
		seen := map[string]bool{}
		for range 13 {
			seen[f.next().MessageID] = true
		}
		if len(seen) != 13 {
			t.Errorf("%d of 13 messages were handled", len(seen))
		}
		f.empty(requestQueue, errorQueue)
	})
	t.Run("a handler is slow", func(t *testing.T) {
		t.Parallel()
		finish := make(chan struct{})
		s, c := account(func(context.Context, *messaging.Message) error {
			<-finish
			return nil
		})
		c.Prefetch, c.BatchSize, c.Concurrency = 10, 1, 1
		c.HoldAtMost(200 * time.Millisecond)
		f := start(t, s, c)
		for i := range 10 {
			f.publishBody(requested, body(fmt.Sprint(i)))
		}
		f.eventually("all to be given back and taken again", func() error {
			if n := f.givenBack(); n < 18 {
				return fmt.Errorf("%v were given back", n)
			}
			return nil
		})
		close(finish)
		for range 10 {
			f.next()
		}
		f.empty(requestQueue, errorQueue)
	})
}
