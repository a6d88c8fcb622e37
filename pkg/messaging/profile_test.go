package messaging_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// The profile may be changed while messages are under way: the queues they wait in lead back, and their attempts are
// known on either road.
func TestChangingTheProfileKeepsMessagesAndAttempts(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	const messages, attempts, delay = 3, 5, 600 * time.Millisecond
	for attempt := 1; attempt <= attempts; attempt++ {
		var m sync.Mutex
		seen := map[string]bool{}
		// Each message fails once under each setting. When it comes back before the service has stopped it is given back unspent.
		answer := func(ctx context.Context, msg *messaging.Message) error {
			m.Lock()
			again := seen[msg.MessageID]
			seen[msg.MessageID] = true
			m.Unlock()
			if again {
				<-ctx.Done()
				return ctx.Err()
			}
			return retry.Errorf(retry.NotFound, "not yet")
		}
		s, c := transfer(answer)
		s.Topology = topology.Transfer(messaging.Quorum, delay)
		if attempt%2 == 0 { // the tiers change as well
			s, c = tiered(answer, 0.1, delay+time.Duration(attempt)*10*time.Millisecond)
			s.Topology = topology.TransferTiered(messaging.Quorum, delay, c.Policy.Delays, 0.1)
		}
		c.Policy.MaxAttempts = attempts
		c.BatchSize, c.Concurrency, c.Grace = 1, 2*messages, 5*time.Second
		f := startOn(t, env, s, c)
		if attempt == 1 {
			for i := range messages {
				f.publishBody(debited, fmt.Sprintf(`{"messageId":"%d","type":"T"}`, i))
			}
		}
		for failed := map[string]bool{}; len(failed) < messages; {
			msg := f.next()
			if !failed[msg.MessageID] && msg.Attempt != attempt {
				t.Errorf("message %s is at attempt %d, want %d", msg.MessageID, msg.Attempt, attempt)
			}
			failed[msg.MessageID] = true
		}
		if attempt == attempts {
			parked := map[string]bool{}
			for range messages {
				d := f.take(contract.ParkingLot)
				f.checkQuarantined(d, "transfer", contract.AccountEventsQueue, attempts, retry.ReasonMaxAttempts, retry.NotFound)
				if d.Headers["x-origin-exchange"] != contract.EventsExchange || d.RoutingKey != debited {
					t.Errorf("origin %v, parked with key %q", d.Headers["x-origin-exchange"], d.RoutingKey)
				}
				parked[string(d.Body)] = true
			}
			if len(parked) != messages {
				t.Errorf("parked %v", parked)
			}
			var queues []string
			for _, q := range env.Queues(t) {
				queues = append(queues, q.Name)
			}
			f.empty(queues...)
		}
		f.stop()
	}
}
