package messaging

import (
	"context"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// A memory alarm concerns every virtual host of a broker, so the broker's word is spoken for it here.
func TestPublishingWaitsWhileTheBrokerBlocksIt(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s := NewSession(SessionConfig{URLs: []string{env.AMQPURL}, Topology: Topology{Queues: []Queue{NewQueue("q", Quorum)}}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	l, err := s.await(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.block(amqp.Blocking{Active: true, Reason: "low on memory"})
	if err := s.Ready(ctx); err == nil || !strings.Contains(err.Error(), "low on memory") {
		t.Errorf("Ready: %v", err)
	}
	message := []Publishing{{RoutingKey: "q", Mandatory: true, Publishing: amqp.Publishing{MessageId: "m"}}}
	short, cancelShort := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancelShort()
	outcomes, err := s.Publish(short, message)
	if outcomes[0] != Unknown || retry.ClassOf(err) != retry.Timeout || !strings.Contains(err.Error(), "low on memory") {
		t.Errorf("while blocked: %v, %v", outcomes, err)
	}
	published := make(chan Outcome, 1)
	go func() {
		outcomes, _ := s.Publish(ctx, message)
		published <- outcomes[0]
	}()
	l.block(amqp.Blocking{})
	if outcome := <-published; outcome != Acked {
		t.Errorf("after blocking: %v", outcome)
	}
	if err := s.Ready(ctx); err != nil {
		t.Errorf("Ready after blocking: %v", err)
	}
	if ready, _ := env.QueueDepth(t, "q"); ready != 1 {
		t.Errorf("%d messages, but the first caller had gone before its message was sent", ready)
	}
	l.block(amqp.Blocking{Active: true})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
