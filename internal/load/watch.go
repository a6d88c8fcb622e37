package load

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
	"github.com/go-json-experiment/json"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Ended is the news that a transfer has ended.
type Ended struct {
	ID     string
	Status string    // COMPLETED, REJECTED or REFUNDED
	At     time.Time // when the news came
}

// endings are the messages by which transfer tells that.
var endings = map[string]string{
	contract.TransferCompleted: "COMPLETED",
	contract.TransferRejected:  "REJECTED",
	contract.TransferRefunded:  "REFUNDED",
}

// Watch listens at the broker for transfers that end, through a queue of its own that goes with the connection. The channel is closed
// when the connection ends or ctx does. Asking the service for each transfer instead would be a load of its own.
func Watch(ctx context.Context, conn *amqp.Connection) (<-chan Ended, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, fmt.Errorf("watch transfers: %w", err)
	}
	queue, err := ch.QueueDeclare("", false, true, true, false, amqp.Table{"x-queue-type": "classic"})
	if err != nil {
		return nil, fmt.Errorf("watch transfers: %w", err)
	}
	for ending := range endings {
		if err := ch.QueueBind(queue.Name, contract.RoutingKey(ending), contract.EventsExchange, false, nil); err != nil {
			return nil, fmt.Errorf("watch transfers: %w", err)
		}
	}
	deliveries, err := ch.ConsumeWithContext(ctx, queue.Name, "", true, true, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("watch transfers: %w", err)
	}
	ended := make(chan Ended, 1000)
	go func() {
		defer close(ended)
		for d := range deliveries {
			at := time.Now()
			status, known := endings[d.Type]
			if !known {
				continue
			}
			var body struct {
				Data struct {
					TransferID string `json:"transferId"`
				} `json:"data"`
			}
			if json.Unmarshal(d.Body, &body) != nil {
				continue
			}
			select {
			case ended <- Ended{ID: body.Data.TransferID, Status: status, At: at}:
			case <-ctx.Done(): // who does not listen any more
			}
		}
	}()
	return ended, nil
}
