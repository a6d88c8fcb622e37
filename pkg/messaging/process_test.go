package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

const requested = "transfers.transfer.requested"

var (
	requestQueue = contract.TransferRequestedQueue
	errorQueue   = contract.ErrorQueue(contract.TransferRequestedQueue)
)

// body is a valid message with the given id.
func body(id string) string {
	return fmt.Sprintf(`{"messageId":%q,"type":"Transfers.Transfer.Requested","correlationId":"t"}`, id)
}

func TestInProcessAttemptsThenErrorQueue(t *testing.T) {
	t.Parallel()
	cause := errors.New("the dependency is odd")
	s, c := account(func(context.Context, *messaging.Message) error {
		return fmt.Errorf("debit: %w", cause)
	}, 50*time.Millisecond, 100*time.Millisecond, 150*time.Millisecond)
	f := start(t, s, c)
	began := time.Now()
	f.publish(contract.EventsExchange, requested, amqp.Publishing{Body: []byte(body("m")), MessageId: "m"})
	for attempt := 1; attempt <= 4; attempt++ {
		if m := f.next(); m.Attempt != attempt {
			t.Errorf("attempt %d, want %d", m.Attempt, attempt)
		}
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("four attempts within %v", took)
	}
	d := f.take(errorQueue)
	f.checkQuarantined(d, "account", requestQueue, 4, retry.ReasonMaxAttempts, retry.Unknown)
	for name, want := range map[string]any{
		"x-origin-exchange":      contract.EventsExchange,
		"x-origin-routing-key":   requested,
		"MT-Reason":              "fault",
		"MT-Fault-ExceptionType": "UNKNOWN",
		"MT-Fault-Message":       "debit: the dependency is odd",
		"MT-Fault-StackTrace":    "*fmt.wrapError: debit: the dependency is odd\n*errors.errorString: the dependency is odd",
		"MT-Fault-InputAddress":  "queue:" + requestQueue,
		"MT-Fault-ConsumerType":  "account",
		"MT-Fault-MessageType":   "Transfers.Transfer.Requested",
		"MT-Fault-RetryCount":    int64(3),
	} {
		if d.Headers[name] != want {
			t.Errorf("%s = %v, want %v", name, d.Headers[name], want)
		}
	}
	for _, name := range []string{"MT-Fault-Timestamp", "MT-Host-MachineName", "MT-Host-ProcessName", "MT-Host-ProcessId", "MT-Host-Assembly"} {
		if text, _ := d.Headers[name].(string); text == "" {
			t.Errorf("%s = %v", name, d.Headers[name])
		}
	}
	f.empty(requestQueue, errorQueue)
	f.notHandled()
}

func TestUndecodableBodiesAreQuarantinedAtOnceAsTheyAre(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	f := start(t, s, c)
	for _, garbage := range []string{
		poisonBody[:len(poisonBody)-2], `[1,2]`, `42`, "\xff\xfe", "", `{"messageId":7,"type":"T"}`, strings.Repeat("[", 100_000), "\x00",
	} {
		f.publishBody(debited, garbage)
		if d := f.parkedAfter(1, retry.ReasonValidation, retry.Validation); string(d.Body) != garbage {
			t.Errorf("%.40q became %.40q", garbage, d.Body)
		}
	}
	f.empty(contract.AccountEventsQueue, contract.AccountEventsRetry, contract.ParkingLot)
	f.notHandled()
}

func TestFirstAttemptHasNoRetryCount(t *testing.T) {
	t.Parallel()
	s, c := account(succeed)
	f := start(t, s, c)
	f.publishBody(requested, "garbage")
	d := f.take(errorQueue)
	f.checkQuarantined(d, "account", requestQueue, 1, retry.ReasonValidation, retry.Validation)
	if count, present := d.Headers["MT-Fault-RetryCount"]; present {
		t.Errorf("MT-Fault-RetryCount = %v", count)
	}
}

func TestHugeHeadersAreCutAndQuarantinedAtOnce(t *testing.T) {
	t.Parallel()
	s, c := transfer(succeed)
	f := start(t, s, c)
	f.publish(contract.EventsExchange, debited, amqp.Publishing{Body: []byte(poisonBody), Headers: amqp.Table{
		"x-large": strings.Repeat("x", 100<<10), "x-small": "kept",
	}})
	d := f.parkedAfter(1, retry.ReasonValidation, retry.Validation)
	if d.Headers["x-dropped-headers"] != "x-large" || d.Headers["x-small"] != "kept" || d.Headers["x-large"] != nil {
		t.Errorf("dropped %v, small %v", d.Headers["x-dropped-headers"], d.Headers["x-small"])
	}
	f.notHandled()
}

func TestLongErrorsAreCut(t *testing.T) {
	t.Parallel()
	s, c := account(func(context.Context, *messaging.Message) error {
		return retry.Errorf(retry.Invariant, "%s", strings.Repeat("é\x01", 10_000)+"\xff")
	})
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	d := f.take(errorQueue)
	for name, limit := range map[string]int{"x-last-error": 4096, "MT-Fault-Message": 2048, "MT-Fault-StackTrace": 2048} {
		if text, _ := d.Headers[name].(string); len(text) > limit || len(text) < limit-3 || strings.Contains(text, "\x01") {
			t.Errorf("%s has %d bytes", name, len(text))
		}
	}
}

func TestBadMessagesDoNotTouchTheirNeighbours(t *testing.T) {
	t.Parallel()
	var batches sync.Map // sizes seen
	poisoned := func(_ context.Context, batch []*messaging.Message) ([]error, error) {
		batches.Store(len(batch), true)
		for _, m := range batch {
			if strings.HasPrefix(m.MessageID, "poison") {
				return nil, errors.New("the transaction failed")
			}
			if strings.HasPrefix(m.MessageID, "panic") {
				panic("at the wrong message")
			}
		}
		return make([]error, len(batch)), nil
	}
	s, c := account(succeed, 20*time.Millisecond)
	c.Handler, c.Concurrency, c.BatchSize, c.BatchWait = poisoned, 1, 10, 200*time.Millisecond
	f := start(t, s, c)
	for i := range 30 {
		id := fmt.Sprint("good-", i)
		switch i {
		case 7, 8, 22:
			id = fmt.Sprint("poison-", i)
		case 15:
			id = "panic-15"
		}
		f.publishBody(requested, body(id))
	}
	for range 4 {
		f.checkQuarantined(f.take(errorQueue), "account", requestQueue, 2, retry.ReasonMaxAttempts, retry.Unknown)
	}
	f.empty(requestQueue, errorQueue)
	f.stop()
	close(f.handled)
	for m := range f.handled {
		if strings.HasPrefix(m.MessageID, "good") && m.Attempt != 1 {
			t.Errorf("%s was at attempt %d", m.MessageID, m.Attempt)
		}
	}
	if _, full := batches.Load(10); !full {
		t.Error("no full batch was handled")
	}
}

func TestWaitingHoldsNoWorker(t *testing.T) {
	t.Parallel()
	s, c := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "slow" {
			return errors.New("later")
		}
		return nil
	}, time.Hour)
	c.Concurrency = 1
	f := start(t, s, c)
	f.publishBody(requested, body("slow"))
	f.next()
	for i := range 100 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	for range 100 {
		f.next()
	}
	f.eventually("the others to be acked", func() error {
		if ready, unacked := f.env.QueueDepth(t, requestQueue); ready != 0 || unacked != 1 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
}

func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	s, c := account(func(context.Context, *messaging.Message) error { return errors.New("later") }, time.Hour)
	c.Prefetch, c.BatchSize, c.Concurrency = 10, 1, 1
	f := start(t, s, c)
	for i := range 30 {
		f.publishBody(requested, body(fmt.Sprint(i)))
	}
	f.eventually("the prefetch to be full", func() error {
		if ready, unacked := f.env.QueueDepth(t, requestQueue); ready != 20 || unacked != 10 {
			return fmt.Errorf("%d ready, %d unacked", ready, unacked)
		}
		return nil
	})
	if handled := len(f.handled); handled < 5 || handled > 7 {
		t.Errorf("%d messages were handled, half the prefetch is 5", handled)
	}
}

func TestConflictsAreTriedAgainOnTheSpot(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	s, c := account(func(context.Context, *messaging.Message) error {
		if calls.Add(1) < 4 {
			return retry.Errorf(retry.Conflict, "deadlock")
		}
		return nil
	}, time.Hour)
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	for range 4 {
		if m := f.next(); m.Attempt != 1 {
			t.Errorf("attempt %d", m.Attempt)
		}
	}
	f.empty(requestQueue, errorQueue)
}

func TestLastingConflictSpendsAttempts(t *testing.T) {
	t.Parallel()
	s, c := account(succeed, time.Millisecond)
	c.Handler = func(context.Context, []*messaging.Message) ([]error, error) {
		return nil, retry.Errorf(retry.Conflict, "deadlock")
	}
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	f.checkQuarantined(f.take(errorQueue), "account", requestQueue, 2, retry.ReasonMaxAttempts, retry.Conflict)
}

func TestCopiesNeverMeetInOneBatch(t *testing.T) {
	t.Parallel()
	var together atomic.Bool
	s, c := account(succeed)
	c.Handler = func(_ context.Context, batch []*messaging.Message) ([]error, error) {
		seen := map[string]bool{}
		for _, m := range batch {
			if seen[m.MessageID] {
				together.Store(true)
			}
			seen[m.MessageID] = true
		}
		return make([]error, len(batch)), nil
	}
	c.BatchWait = 100 * time.Millisecond
	f := start(t, s, c)
	for i := range 60 {
		f.publishBody(requested, body(fmt.Sprint("m-", i%3)))
	}
	for range 60 {
		f.next()
	}
	f.empty(requestQueue, errorQueue)
	if together.Load() {
		t.Error("two copies of a message were in one batch")
	}
}

func TestHandlerThatAnswersTooLittleIsAFailure(t *testing.T) {
	t.Parallel()
	s, c := account(succeed)
	c.Handler = func(context.Context, []*messaging.Message) ([]error, error) { return nil, nil }
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	f.checkQuarantined(f.take(errorQueue), "account", requestQueue, 1, retry.ReasonMaxAttempts, retry.Unknown)
}

func TestHandlerDeadlineIsATimeout(t *testing.T) {
	t.Parallel()
	s, c := account(func(ctx context.Context, _ *messaging.Message) error {
		<-ctx.Done()
		return ctx.Err()
	})
	c.HandlerTimeout = 50 * time.Millisecond
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	f.checkQuarantined(f.take(errorQueue), "account", requestQueue, 1, retry.ReasonMaxAttempts, retry.Timeout)
}

func TestCancellationThatNobodyAskedForIsAFailure(t *testing.T) {
	t.Parallel()
	s, c := account(func(context.Context, *messaging.Message) error { return context.Canceled })
	f := start(t, s, c)
	f.publishBody(requested, body("m"))
	f.checkQuarantined(f.take(errorQueue), "account", requestQueue, 1, retry.ReasonMaxAttempts, retry.Unknown)
}
