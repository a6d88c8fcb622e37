package messaging

import (
	"errors"
	"fmt"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Death is one entry of a message's x-death header: how often one queue let go of it for one reason.
type Death struct {
	Queue       string
	Reason      string // "rejected", "expired", "maxlen" or "delivery_limit"
	Count       int64
	Time        time.Time // of the first death of this queue and reason, in seconds
	Exchange    string    // through which the message had come then
	RoutingKeys []string  // the key it had then, and those of CC
}

// ReadDeaths reads the x-death header. The order says nothing (from three entries on RabbitMQ 3.10 scrambles it): look for
// queue and reason. Anybody can send such a header, so expect any shape in it: an error says that it holds something a
// broker does not write; the entries that could be read are returned nevertheless.
func ReadDeaths(headers amqp.Table) ([]Death, error) {
	value, present := headers["x-death"]
	if !present {
		return nil, nil
	}
	entries, ok := value.([]any)
	if !ok {
		return nil, fmt.Errorf("x-death is %T, not an array", value)
	}
	var deaths []Death
	var malformed error
	for i, entry := range entries {
		death, ok := readDeath(entry)
		if !ok {
			malformed = errors.Join(malformed, fmt.Errorf("x-death[%d] is no death", i))
			continue
		}
		deaths = append(deaths, death)
	}
	return deaths, malformed
}

func readDeath(entry any) (Death, bool) {
	table, ok := entry.(amqp.Table)
	if !ok {
		return Death{}, false
	}
	var d Death
	var okQueue, okReason, okCount bool
	d.Queue, okQueue = table["queue"].(string)
	d.Reason, okReason = table["reason"].(string)
	d.Count, okCount = integer(table["count"])
	d.Exchange, _ = table["exchange"].(string)
	d.Time, _ = table["time"].(time.Time)
	keys, _ := table["routing-keys"].([]any)
	for _, key := range keys {
		if text, ok := key.(string); ok {
			d.RoutingKeys = append(d.RoutingKeys, text)
		}
	}
	return d, okQueue && okReason && okCount && d.Count > 0
}

// integer reads an AMQP integer of any width.
func integer(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int32:
		return int64(n), true
	case int16:
		return int64(n), true
	case int8:
		return int64(n), true
	case uint32:
		return int64(n), true
	case uint16:
		return int64(n), true
	case byte:
		return int64(n), true
	}
	return 0, false
}

func anyDeathHeader(headers amqp.Table) bool {
	for name := range headers {
		if isDeathHeader(name) {
			return true
		}
	}
	return false
}

func isDeathHeader(name string) bool {
	return name == "x-death" || strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// text is a header that is a text, else "".
func text(headers amqp.Table, name string) string {
	value, _ := headers[name].(string)
	return value
}
