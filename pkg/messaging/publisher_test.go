package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// event is a publishing that reaches transfer's queue.
func event(id string) messaging.Publishing {
	return messaging.Publishing{
		Exchange: contract.EventsExchange, RoutingKey: debited, Mandatory: true,
		Publishing: amqp.Publishing{MessageId: id, Body: []byte(body(id)), DeliveryMode: amqp.Persistent},
	}
}

// unroutable is one that reaches none.
func unroutable(id string) messaging.Publishing {
	p := event(id)
	p.RoutingKey = "nobody.listens"
	return p
}

// publisher is a session with transfer's topology and a queue that holds one message at most.
func publisher(t *testing.T) *fixture {
	s, _ := transfer(nil)
	small := messaging.NewQueue("small", messaging.Classic)
	small.Args["x-max-length"], small.Args["x-overflow"] = int64(1), "reject-publish"
	s.Topology.Queues = append(s.Topology.Queues, small)
	s.PublishTimeout = patience
	return start(t, s, messaging.ConsumerConfig{})
}

func (f *fixture) outcomes(messages ...messaging.Publishing) []messaging.Outcome {
	f.Helper()
	outcomes, err := f.session.Publish(f.Context(), messages)
	if err != nil {
		f.Fatal(err)
	}
	return outcomes
}

func (f *fixture) wantOutcomes(got []messaging.Outcome, want ...messaging.Outcome) {
	f.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		f.Errorf("outcomes %v, want %v", got, want)
	}
}

func TestPublishTellsWhatBecameOfEach(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	quiet := unroutable("quiet")
	quiet.Mandatory = false
	full := messaging.Publishing{RoutingKey: "small", Mandatory: true}
	f.wantOutcomes(f.outcomes(full), messaging.Acked)
	f.wantOutcomes(f.outcomes(event("a"), unroutable("b"), quiet, full, event("c")),
		messaging.Acked, messaging.Returned, messaging.Acked, messaging.Nacked, messaging.Acked)
	f.wantOutcomes(f.outcomes())
}

func TestPublishTellsCopiesApart(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	f.wantOutcomes(f.outcomes(unroutable("m"), event("m"), unroutable("m"), event("m"), unroutable(""), event(""), unroutable("")),
		messaging.Returned, messaging.Acked, messaging.Returned, messaging.Acked, messaging.Returned, messaging.Acked, messaging.Returned)
}

// The client library reports a message that was nacked out of turn as acked once a later ack covers it; nacks and acks
// of two queues overtake each other here.
func TestPublishNeverTakesANackForAnAck(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	full := messaging.Publishing{RoutingKey: "small", Mandatory: true}
	f.wantOutcomes(f.outcomes(full), messaging.Acked)
	var messages []messaging.Publishing
	for i := range 2000 {
		messages = append(messages, event(fmt.Sprint(i)))
		if i%3 == 0 {
			messages = append(messages, full)
		}
	}
	for i, outcome := range f.outcomes(messages...) {
		want := messaging.Acked
		if messages[i].RoutingKey == "small" {
			want = messaging.Nacked
		}
		if outcome != want {
			t.Fatalf("message %d: %v, want %v", i, outcome, want)
		}
	}
}

func TestPublishIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	var callers sync.WaitGroup
	for c := range 20 {
		callers.Go(func() {
			for i := range 20 {
				id := fmt.Sprint(c, "-", i)
				outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event(id), unroutable("same"), event("same")})
				if err != nil || outcomes[0] != messaging.Acked || outcomes[1] != messaging.Returned || outcomes[2] != messaging.Acked {
					t.Errorf("%s: %v, %v", id, outcomes, err)
				}
			}
		})
	}
	callers.Wait()
	f.eventually("all of them", func() error {
		if ready, _ := f.env.QueueDepth(t, contract.AccountEventsQueue); ready != 800 {
			return fmt.Errorf("there are %d", ready)
		}
		return nil
	})
}

func TestPublishNamesWhatAMQPCannotCarry(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	long := strings.Repeat("x", 256)
	spoil := func(change func(*messaging.Publishing)) messaging.Publishing {
		p := event("bad")
		change(&p)
		return p
	}
	for name, bad := range map[string]messaging.Publishing{
		"routing key":    spoil(func(p *messaging.Publishing) { p.RoutingKey = long }),
		"exchange":       spoil(func(p *messaging.Publishing) { p.Exchange = long }),
		"content type":   spoil(func(p *messaging.Publishing) { p.ContentType = long }),
		"header's name":  spoil(func(p *messaging.Publishing) { p.Headers = amqp.Table{"a": []any{amqp.Table{long: 1}}} }),
		"header's type":  spoil(func(p *messaging.Publishing) { p.Headers = amqp.Table{"a": uint64(math.MaxUint64)} }),
		"header's size":  spoil(func(p *messaging.Publishing) { p.Headers = amqp.Table{"a": strings.Repeat("x", 130_000)} }),
		"headers' total": spoil(func(p *messaging.Publishing) { p.Headers = many(2000) }),
	} {
		outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event("a"), bad, event("b")})
		var unpublishable *messaging.Unpublishable
		if !errors.As(err, &unpublishable) || unpublishable.Index != 1 || retry.ClassOf(err) != retry.Validation {
			t.Errorf("%s: %v", name, err)
		}
		f.wantOutcomes(outcomes, messaging.Acked, messaging.Unknown, messaging.Acked)
	}
	if err := f.session.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func many(n int) amqp.Table {
	headers := amqp.Table{}
	for i := range n {
		headers[fmt.Sprint("x-", i)] = strings.Repeat("x", 64)
	}
	return headers
}

func TestPublishShortensAMessageIDThatDoesNotFit(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	id := strings.Repeat("é", 200)
	f.wantOutcomes(f.outcomes(event(id), unroutable(id), event(id)), messaging.Acked, messaging.Returned, messaging.Acked)
	if d := f.take(contract.AccountEventsQueue); d.MessageId != strings.Repeat("é", 127) || string(d.Body) != body(id) {
		t.Errorf("messageId %q, body %s", d.MessageId, d.Body)
	}
}

func TestPublishSurvivesAChannelException(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	refused := event("refused")
	refused.Expiration = "never"
	outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{refused})
	var refusal *messaging.Refused
	if outcomes[0] != messaging.Unknown || !errors.As(err, &refusal) || refusal.Exception.Code != amqp.PreconditionFailed {
		t.Errorf("%v, %v", outcomes, err)
	}
	f.wantOutcomes(f.outcomes(event("a"), unroutable("b")), messaging.Acked, messaging.Returned)
	if err := f.session.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// What is accepted can be handled, and a body beyond that is refused by name. A broker that somebody else has set up may
// take more: then the consumer quarantines it.
func TestBrokerTakesBodiesUpToTheLimit(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	largest, larger := event("largest"), event("larger")
	largest.Body, larger.Body = make([]byte, messaging.MaxBody), make([]byte, messaging.MaxBody+1)
	f.wantOutcomes(f.outcomes(largest), messaging.Acked)
	outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{larger})
	var refusal *messaging.Refused
	refused := outcomes[0] == messaging.Unknown && errors.As(err, &refusal)
	if taken := outcomes[0] == messaging.Acked && err == nil; !refused && !taken {
		t.Errorf("%v, %v", outcomes, err)
	}
}

// The composition's broker has the consumers' limit.
func TestCompositionHasTheConsumersLimit(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile("../../deploy/rabbitmq/rabbitmq.conf")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("max_message_size = %d\n", messaging.MaxBody); !strings.Contains(string(conf), want) {
		t.Errorf("rabbitmq.conf does not say %q", want)
	}
}

func TestPublishToADeletedExchangeBringsItBack(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	if err := f.client.ExchangeDelete(contract.EventsExchange, false, false); err != nil {
		t.Fatal(err)
	}
	f.eventually("the exchange", func() error {
		outcomes, err := f.session.Publish(t.Context(), []messaging.Publishing{event("m")})
		if err == nil && outcomes[0] != messaging.Acked {
			err = errors.New(outcomes[0].String())
		}
		return err
	})
}

func TestPublishEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	outcomes, err := f.session.Publish(ctx, []messaging.Publishing{event("m")})
	if outcomes[0] == messaging.Unknown && err == nil || time.Since(began) > 10*time.Second {
		t.Errorf("%v, %v after %v", outcomes, err, time.Since(began))
	}
}

// Whose time is over publishes nothing: he is told that nobody knows what became of it, and somebody else sends it.
func TestPublishSendsNothingForACallerWhoseTimeIsOver(t *testing.T) {
	t.Parallel()
	f := publisher(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for i := range 100 {
		outcomes, err := f.session.Publish(over, []messaging.Publishing{event(fmt.Sprint("late ", i))})
		if !errors.Is(err, context.Canceled) || outcomes[0] != messaging.Unknown {
			t.Fatalf("%v, %v", outcomes, err)
		}
	}
	f.wantOutcomes(f.outcomes(event("in time")), messaging.Acked) // behind whatever was sent before
	if queue, err := f.client.QueueDeclarePassive(contract.AccountEventsQueue, true, false, false, false, nil); err != nil || queue.Messages != 1 {
		t.Errorf("%d messages were sent, want 1: %v", queue.Messages, err)
	}
}
