package main

import (
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
)

// Being returned and being refused are different news: the first means that nobody listens, the second that the caller
// may not, or that there is no such exchange. A refusal also ends the channel on which returns would come.
func TestPublishSaysWhyNothingArrived(t *testing.T) {
	t.Parallel()
	b, err := newBroker(&endpoints{AMQPURL: testenv.New(t).AMQPURL})
	if err != nil {
		t.Fatal(err)
	}
	message := amqp.Publishing{Body: []byte("{}")}

	if err := b.publish(t.Context(), "amq.topic", "nobody.listens", message); !errors.Is(err, errUnrouted) {
		t.Errorf("to an exchange without queues: %v, want %v", err, errUnrouted)
	}
	for range 20 { // the two ways in which a refusal shows arrive together: the wrong one must never win
		var refused *amqp.Error
		if err := b.publish(t.Context(), "no.such.exchange", "key", message); !errors.As(err, &refused) || refused.Code != amqp.NotFound {
			t.Fatalf("to an exchange that does not exist: %v, want the broker's 404", err)
		}
	}
}
