package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publishCommand sends a raw message. It checks nothing: garbage is what the exercises are about.
type publishCommand struct {
	Key        string      `required:"" help:"Routing key."`
	Body       string      `help:"File with the body; - or nothing reads standard input."`
	Header     headerFlags `mapsep:"none" help:"AMQP header, name=value, a text; or name:TYPE=value with the type int, float, bool, time (RFC 3339), json or null. May be repeated."`
	Exchange   string      `default:"banking.events" help:"Exchange; an empty one is the default exchange, whose keys are queue names."`
	MessageID  string      `help:"AMQP message_id property; the body's own id is not touched."`
	Expiration string      `help:"AMQP expiration property: how long it may wait in a queue, e.g. 5s. What is no duration is sent as it is."`
	Timestamp  time.Time   `help:"AMQP timestamp property, e.g. 2026-11-30T10:15:00Z."`
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
	headers, err := typedHeaders(c.Header)
	if err != nil {
		return err
	}
	if err := b.publish(ctx, c.Exchange, c.Key, amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, MessageId: c.MessageID, Headers: headers, Body: body,
		Expiration: c.expiration(), Timestamp: c.Timestamp,
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "published %d bytes to exchange %q with key %q; the broker has confirmed it\n", len(body), c.Exchange, c.Key)
	return nil
}

// expiration is the property as AMQP has it, a text with milliseconds.
func (c *publishCommand) expiration() string {
	if d, err := time.ParseDuration(c.Expiration); err == nil {
		return strconv.FormatInt(d.Milliseconds(), 10)
	}
	return c.Expiration
}

// typedHeaders reads headers of the form name=text and name:TYPE=value. A colon before anything but a type belongs to the name.
func typedHeaders(given map[string]string) (amqp.Table, error) {
	headers := amqp.Table{}
	for name, value := range given {
		var typed any = value
		var err error
		colon := strings.LastIndexByte(name, ':')
		kind := name[colon+1:]
		switch {
		case colon < 0:
		case kind == "int":
			typed, err = strconv.ParseInt(value, 10, 64)
		case kind == "float":
			typed, err = strconv.ParseFloat(value, 64)
		case kind == "bool":
			typed, err = strconv.ParseBool(value)
		case kind == "time":
			typed, err = time.Parse(time.RFC3339, value)
		case kind == "json":
			var decoded any
			err = json.Unmarshal([]byte(value), &decoded)
			typed = asTable(decoded)
		case kind == "null":
			typed = nil
		default:
			colon = -1
		}
		if err != nil {
			return nil, fmt.Errorf("the header %s=%s: the value is not of the type %s: %w", name, value, kind, err)
		}
		if colon >= 0 {
			name = name[:colon]
		}
		headers[name] = typed
	}
	return headers, nil
}

// asTable makes of what JSON has what AMQP has.
func asTable(value any) any {
	switch v := value.(type) {
	case map[string]any:
		table := amqp.Table{}
		for name, field := range v {
			table[name] = asTable(field)
		}
		return table
	case []any:
		for i := range v {
			v[i] = asTable(v[i])
		}
	}
	return value
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
	conn, err := b.dial(ctx)
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
