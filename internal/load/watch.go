package load

import (
	"context"
	"errors"
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
	Signal Signal    // of Follow; then there is no transfer
}

// Signal tells of the news themselves.
type Signal int

const (
	_    Signal = iota
	Lost        // no news come any more
	Back        // they come again. What ended since they were lost is not among them
)

// Follow watches over one connection after the other: when one is lost it says so, and dials again until it has the next. It closes the
// channel when ctx ends. The error is that of the first connection; those of later ones are told to say, and mended by waiting.
func Follow(ctx context.Context, dial func(context.Context) (*amqp.Connection, error), say func(error)) (<-chan Ended, error) {
	watch := func() (*amqp.Connection, <-chan Ended, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, nil, err
		}
		news, err := Watch(ctx, conn)
		if err != nil {
			_ = conn.Close()
			return nil, nil, err
		}
		return conn, news, nil
	}
	conn, news, err := watch()
	if err != nil {
		return nil, err
	}
	all := make(chan Ended)
	tell := func(e Ended) {
		select {
		case all <- e:
		case <-ctx.Done():
		}
	}
	go func() {
		defer close(all)
		for {
			for e := range news {
				tell(e)
			}
			_ = conn.Close()
			if ctx.Err() != nil {
				return
			}
			say(errors.New("the connection to the broker is lost; connecting again"))
			tell(Ended{Signal: Lost, At: time.Now()})
			for conn, news, err = watch(); err != nil; conn, news, err = watch() {
				select {
				case <-ctx.Done():
					return
				case <-time.After(redial):
				}
			}
			tell(Ended{Signal: Back, At: time.Now()})
		}
	}()
	return all, nil
}

// redial is the pause between two attempts to connect.
const redial = 500 * time.Millisecond

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
