// Package topology is the banking topology as data: which exchanges, queues and bindings each service declares.
//
// It is one place on purpose. The services declare what stands here, the tests compare the broker with it, and the
// reference page is made from it.
package topology

import (
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Account is what the account service declares: its three request queues, and for each an error queue into which it gives
// up. What the broker itself takes out of a request queue (an expired message) goes to the parking lot.
func Account(kind messaging.QueueType) messaging.Topology {
	t := shared(kind)
	for _, r := range []struct{ queue, request string }{
		{contract.TransferRequestedQueue, contract.TransferRequested},
		{contract.CreditRequestedQueue, contract.TransferCreditRequested},
		{contract.RefundRequestedQueue, contract.TransferRefundRequested},
	} {
		t.Queues = append(t.Queues,
			messaging.NewQueue(r.queue, kind).DeadLetterTo(contract.DeadLetterExchange, ""),
			messaging.NewQueue(contract.ErrorQueue(r.queue), kind))
		t.Bindings = append(t.Bindings, messaging.Binding{
			Queue: r.queue, Exchange: contract.EventsExchange, Key: contract.RoutingKey(r.request),
		})
	}
	return t
}

// Transfer is what the transfer service declares: its queue, and the lap of a rejected message through the retry queue,
// where it stays for retryDelay.
//
// The queue dead-letters to a headers exchange that lets only those through to the retry queue whose first death was a
// rejection. A message that expired, or was driven out, would come back from the retry queue without ever having been
// rejected; the broker takes that for a cycle and drops it without a word. It goes to the parking lot instead.
//
// A message that was rejected before, and dies of something else on its way back, meets the same end on RabbitMQ 4, which does not
// count the earlier rejection. That version says what a message died of last, so there a second binding keeps it.
func Transfer(kind messaging.QueueType, retryDelay time.Duration) messaging.Topology {
	t := shared(kind)
	t.Exchanges = append(t.Exchanges, messaging.Exchange{
		Name: contract.RetryExchange, Kind: "headers", Args: amqp.Table{"alternate-exchange": contract.DeadLetterExchange},
	})
	t.Queues = append(t.Queues,
		messaging.NewQueue(contract.AccountEventsQueue, kind).DeadLetterTo(contract.RetryExchange, ""),
		messaging.NewQueue(contract.AccountEventsRetry, kind).ExpireAfter(retryDelay).DeadLetterTo("", contract.AccountEventsQueue))
	t.Bindings = append(t.Bindings,
		messaging.Binding{Queue: contract.AccountEventsQueue, Exchange: contract.EventsExchange, Key: contract.AccountEventsPattern},
		messaging.Binding{Queue: contract.AccountEventsRetry, Exchange: contract.RetryExchange, Args: amqp.Table{
			"x-match": "all-with-x", "x-first-death-reason": "rejected",
		}})
	for _, reason := range []string{"expired", "maxlen", "delivery_limit"} {
		t.Bindings = append(t.Bindings, messaging.Binding{Queue: contract.ParkingLot, Exchange: contract.RetryExchange, Args: amqp.Table{
			"x-match": "all-with-x", "x-last-death-reason": reason,
		}})
	}
	return t
}

// shared is what both services need: where events are published, and where all roads end.
func shared(kind messaging.QueueType) messaging.Topology {
	return messaging.Topology{
		Exchanges: []messaging.Exchange{
			{Name: contract.EventsExchange, Kind: "topic"},
			{Name: contract.DeadLetterExchange, Kind: "topic"},
		},
		Queues:   []messaging.Queue{messaging.NewQueue(contract.ParkingLot, kind)},
		Bindings: []messaging.Binding{{Queue: contract.ParkingLot, Exchange: contract.DeadLetterExchange, Key: "#"}},
	}
}
