package main

import (
	"strings"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"example.com/banking/services/transfer/lifecycle"
	amqp "github.com/rabbitmq/amqp091-go"
)

// maxReason bounds the reason of a refusal, in characters. Ours are much shorter; a foreign one is stored as it is.
const maxReason = 200

// parseEvent demands of an event what can be demanded without knowing the transfer: one of the five types that account
// publishes, members of the right JSON types, and a transferId, be it the id of something or not. The rest is compared with the
// transfer once it is found (lifecycle.Transfer.Hear).
func parseEvent(m *messaging.Message) (command, error) {
	if _, ok := lifecycle.FactOf(m.Type); !ok {
		return command{}, retry.Errorf(retry.Validation, "type %.100q is not an event of an account", m.Type)
	}
	data, err := contract.ParseData(m.Data)
	if err != nil {
		return command{}, err
	}
	if !data.TransferID.Present {
		return command{}, retry.Errorf(retry.Validation, "data.transferId is missing")
	}
	if utf8.RuneCountInString(data.Reason.Value) > maxReason || strings.ContainsRune(data.Reason.Value, 0) {
		return command{}, retry.Errorf(retry.Validation, "data.reason is longer than %d characters or holds U+0000", maxReason)
	}
	id, _ := contract.ParseID(data.TransferID.Value)
	return command{transfer: id, data: data}, nil
}

// topology is what transfer declares at the broker.
//
// The lap of a failed message: rejected by us, the main queue dead-letters it to the headers exchange, whose only binding takes
// what was rejected first and leads it to the retry queue; when its time there is over, the default exchange brings it back. Messages that died of
// anything else (expired, too many, too many deliveries) fall through to the dead-letter exchange: on the lap the broker would
// take them for a cycle and drop them without a word.
func topology(kind messaging.QueueType, retryDelay time.Duration) messaging.Topology {
	return messaging.Topology{
		Exchanges: []messaging.Exchange{
			{Name: contract.EventsExchange, Kind: amqp.ExchangeTopic},
			{Name: contract.DeadLetterExchange, Kind: amqp.ExchangeTopic},
			{Name: contract.RetryExchange, Kind: amqp.ExchangeHeaders, Args: amqp.Table{"alternate-exchange": contract.DeadLetterExchange}},
		},
		Queues: []messaging.Queue{
			messaging.NewQueue(contract.ParkingLot, kind),
			messaging.NewQueue(contract.AccountEventsRetry, kind).ExpireAfter(retryDelay).DeadLetterTo("", contract.AccountEventsQueue),
			messaging.NewQueue(contract.AccountEventsQueue, kind).DeadLetterTo(contract.RetryExchange, ""),
		},
		Bindings: []messaging.Binding{
			{Queue: contract.ParkingLot, Exchange: contract.DeadLetterExchange, Key: "#"},
			{Queue: contract.AccountEventsRetry, Exchange: contract.RetryExchange,
				Args: amqp.Table{"x-match": "all-with-x", "x-first-death-reason": "rejected"}},
			{Queue: contract.AccountEventsQueue, Exchange: contract.EventsExchange, Key: contract.AccountEventsPattern},
		},
	}
}
