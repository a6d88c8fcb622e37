package exercises

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract/topology"
)

// What has expired in a queue of tiers is not counted in it, and is lost when the queue is deleted before the main queue has confirmed it. So
// the queue goes when no transfer is open that could wait for it, and not before.
func TestTiersStayWhileATransferIsOpen(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	tier := topology.RetryTiers([]time.Duration{stormTier}, 0)[0].Queues[0]
	conn, err := amqp.Dial(env.AMQPURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	channel, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := channel.QueueDeclare(tier, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum}); err != nil {
		t.Fatal(err)
	}

	var ended atomic.Bool
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := `{"REQUESTED": 1, "DEBITED": 0, "COMPLETED": 7}`
		if ended.Load() {
			answer = `{"REQUESTED": 0, "DEBITED": 0, "COMPLETED": 8}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer service.Close()
	var said []Event
	r := &run{Bank: &Bank{Patience: 100 * time.Millisecond}, report: func(e Event) { said = append(said, e) }, transfer: newService("transfer", service.URL, "")}
	if r.broker, err = newBroker(env.AMQPURL, env.ManagementURL); err != nil {
		t.Fatal(err)
	}
	defer r.broker.close()

	if err := r.removeTiers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if queues := env.Queues(t); len(queues) != 1 || len(said) != 1 || said[0].Kind != Reset {
		t.Errorf("with an open transfer %d queues are left, and it said %+v", len(queues), said)
	}
	ended.Store(true)
	if err := r.removeTiers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if queues := env.Queues(t); len(queues) != 0 || len(said) != 1 {
		t.Errorf("when all have ended %d queues are left, and it said %+v", len(queues), said)
	}
	if err := r.removeTiers(t.Context()); err != nil {
		t.Errorf("where none was ever declared: %v", err)
	}
}
