package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// publishCommand sends a raw message. It checks nothing: garbage is what the exercises are about.
type publishCommand struct {
	Key       string      `required:"" help:"Routing key."`
	Body      string      `help:"File with the body; - or nothing reads standard input."`
	Header    headerFlags `mapsep:"none" help:"AMQP header, name=value; may be repeated."`
	Exchange  string      `default:"banking.events" help:"Exchange; an empty one is the default exchange, whose keys are queue names."`
	MessageID string      `help:"AMQP message_id property; the body's own id is not touched."`
}

func (c *publishCommand) Run(ctx context.Context, to *endpoints, out *output) error {
	body, err := c.read()
	if err != nil {
		return err
	}
	b, err := newBroker(to)
	if err != nil {
		return err
	}
	headers := amqp.Table{}
	for name, value := range c.Header {
		headers[name] = value
	}
	if err := b.publish(ctx, c.Exchange, c.Key, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: c.MessageID, Headers: headers, Body: body,
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "published %d bytes to exchange %q with key %q; the broker has confirmed it\n", len(body), c.Exchange, c.Key)
	return nil
}

func (c *publishCommand) read() ([]byte, error) {
	if c.Body == "" || c.Body == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(c.Body)
}

var errUnrouted = errors.New("no queue takes this message: the broker has returned it")

// publish sends one message and waits for the broker's confirm.
func (b *broker) publish(ctx context.Context, exchange, key string, message amqp.Publishing) error {
	conn, err := b.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	channel, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := channel.Confirm(false); err != nil {
		return err
	}
	returned := channel.NotifyReturn(make(chan amqp.Return, 1))
	closed := channel.NotifyClose(make(chan *amqp.Error, 1))
	confirm, err := channel.PublishWithDeferredConfirmWithContext(ctx, exchange, key, true, false, message)
	if err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	acked, err := confirm.WaitContext(ctx)
	// A channel that the broker closes ends both of these at once: only a value in them says something.
	select {
	case _, ok := <-returned:
		if ok {
			return errUnrouted
		}
	default:
	}
	select {
	case reason := <-closed:
		if reason != nil {
			return fmt.Errorf("the broker refuses it: %w", reason)
		}
	default:
	}
	if err != nil {
		return fmt.Errorf("waiting for the broker's confirm: %w", err)
	}
	if !acked {
		return errors.New("the broker has refused it")
	}
	return nil
}
