package toybank

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"github.com/google/uuid"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Order is a message that was read: move money from Source to Destination.
type Order struct {
	ID   string // the messageId
	Type string
	contract.Request
}

// Read reads the body of a message as the contract wants it.
func Read(body []byte) (Order, error) {
	envelope, err := messaging.Decode(body)
	if err != nil {
		return Order{}, err
	}
	data, err := contract.ParseData(envelope.Data)
	if err != nil {
		return Order{}, err
	}
	request, err := data.Request()
	if err != nil {
		return Order{}, err
	}
	return Order{ID: envelope.MessageID, Type: envelope.Type, Request: request}, nil
}

// Write is the message of a type about a transfer from alice to bob. Who says it twice says it under the same id.
func Write(transfer uuid.UUID, messageType string, minor int64) (id string, body []byte, err error) {
	message := contract.Say(transfer, messageType, contract.Data{
		SourceAccountID: contract.Some(Alice.String()), DestinationAccountID: contract.Some(Bob.String()),
		AmountMinor: contract.Amount(minor), Currency: contract.Some(Currency),
	})
	data, err := message.Data.Encode()
	if err != nil {
		return "", nil, fmt.Errorf("encode %s: %w", messageType, err)
	}
	body, err = messaging.Envelope{
		MessageID: message.ID.String(), Type: messageType, OccurredAt: time.Now(), CorrelationID: transfer.String(), Data: data,
	}.Encode()
	return message.ID.String(), body, err
}

// Publish puts a message into a queue of this bank and waits until the broker has it.
func (b *Bank) Publish(ctx context.Context, queue string, body []byte) error {
	confirm, err := b.Channel.PublishWithDeferredConfirmWithContext(ctx, "", b.Queue(queue), true, false, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Body: body,
	})
	if err != nil {
		return fmt.Errorf("publish to %s: %w", b.Queue(queue), err)
	}
	acked, err := confirm.WaitContext(ctx)
	if err == nil && !acked {
		err = errors.New("the broker has refused it")
	}
	if err != nil {
		return fmt.Errorf("publish to %s: %w", b.Queue(queue), err)
	}
	return nil
}

// Pay takes money from alice and sends it to bob. Between the two a crash would lose it, but whoever calls this is not the one who is
// killed; how it is done properly is in publishbeforecommit --right.
func (b *Bank) Pay(ctx context.Context, minor int64) error {
	debited, err := Debit(ctx, b.DB, Alice, minor)
	if err == nil && !debited {
		err = errors.New("alice has too little, or is frozen")
	}
	if err != nil {
		return fmt.Errorf("pay: %w", err)
	}
	_, body, err := Write(uuid.New(), contract.TransferCreditRequested, minor)
	if err != nil {
		return err
	}
	return b.Publish(ctx, Credits, body)
}

// Ask asks for money of alice's to be sent to bob, and takes nothing yet.
func (b *Bank) Ask(ctx context.Context, minor int64) error {
	_, body, err := Write(uuid.New(), contract.TransferRequested, minor)
	if err != nil {
		return err
	}
	return b.Publish(ctx, Requests, body)
}

// Consume delivers the messages of a queue, one at a time: the next comes when the last is acked. When the program is asked to end, the
// one that is here is still delivered, and then the channel closes.
func (b *Bank) Consume(queue string) (<-chan amqp.Delivery, error) {
	if err := b.Channel.Qos(1, 0, false); err != nil {
		return nil, fmt.Errorf("prefetch of %s: %w", b.Queue(queue), err)
	}
	deliveries, err := b.Channel.Consume(b.Queue(queue), queue, false, false, false, false, nil)
	if err != nil {
		return nil, fmt.Errorf("consume %s: %w", b.Queue(queue), err)
	}
	context.AfterFunc(b.stopping, func() { _ = b.Channel.Cancel(queue, false) }) // fails only with the channel, which closes deliveries too
	return deliveries, nil
}
