package exercises

import (
	"fmt"
	"sync"

	"github.com/go-json-experiment/json"
	amqp "github.com/rabbitmq/amqp091-go"

	"example.com/banking/pkg/contract"
)

// tap hears a copy of every event that passes the exchange, as any other subscriber would. It takes nothing away from anybody.
type tap struct {
	conn *amqp.Connection

	mu    sync.Mutex
	heard []heard
}

// heard is one event that passed.
type heard struct {
	key        string
	messageID  string
	kind       string
	transferID string
	body       []byte
}

// listen begins to hear; what is published from now on is in it.
func (b *broker) listen() (*tap, error) {
	conn, err := b.dial()
	if err != nil {
		return nil, err
	}
	t := &tap{conn: conn}
	channel, err := conn.Channel()
	if err == nil {
		var q amqp.Queue
		if q, err = channel.QueueDeclare("", false, true, true, false, nil); err == nil { // ends with the connection
			err = channel.QueueBind(q.Name, "#", contract.EventsExchange, false, nil)
		}
		if err == nil {
			var events <-chan amqp.Delivery
			if events, err = channel.Consume(q.Name, "", true, true, false, false, nil); err == nil {
				go t.hear(events)
				return t, nil
			}
		}
	}
	t.close()
	return nil, fmt.Errorf("listening to the events: %w", err)
}

func (t *tap) close() { _ = t.conn.Close() } // it may have broken

func (t *tap) hear(events <-chan amqp.Delivery) {
	for event := range events {
		h := readEvent(event)
		t.mu.Lock()
		t.heard = append(t.heard, h)
		t.mu.Unlock()
	}
}

// readEvent reads as much of a message as the exercises want to know; garbage has no id.
func readEvent(m amqp.Delivery) heard {
	var envelope struct {
		MessageID string `json:"messageId"`
		Type      string `json:"type"`
		Data      struct {
			TransferID string `json:"transferId"`
		} `json:"data"`
	}
	if json.Unmarshal(m.Body, &envelope) != nil {
		return heard{key: m.RoutingKey, body: m.Body}
	}
	return heard{m.RoutingKey, envelope.MessageID, envelope.Type, envelope.Data.TransferID, m.Body}
}

// about lists what has been heard of a transfer so far, in the order of its passing.
func (t *tap) about(transferID string) (events []heard) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.heard {
		if h.transferID == transferID {
			events = append(events, h)
		}
	}
	return events
}

// copies counts how often the same message has been heard.
func (t *tap) copies(messageID string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range t.heard {
		if h.messageID == messageID {
			n++
		}
	}
	return n
}
