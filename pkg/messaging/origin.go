package messaging

import amqp "github.com/rabbitmq/amqp091-go"

// maxShort is the longest text in bytes that AMQP allows for a routing key, the name of an exchange or queue, and every
// property.
const maxShort = 255

// origin is where a message was first published to, and which queue failed on it first.
//
// It is read from headers, which anybody can write, and used as an address. So what could be no address is not known, and
// the delivery's own address, which has come through a broker, takes its place.
type origin struct {
	queue      string // "" when not known
	exchange   string
	routingKey string
	known      bool // exchange and routingKey are
}

// published notes the address that a broker wrote into a death.
func (o *origin) published(exchange string, routingKeys []string) {
	if len(routingKeys) > 0 && len(exchange) <= maxShort && len(routingKeys[0]) <= maxShort {
		o.exchange, o.routingKey, o.known = exchange, routingKeys[0], true
	}
}

// read reads our own headers.
func (o *origin) read(headers amqp.Table) {
	exchange, hasExchange := shortText(headers, HeaderOriginExchange)
	routingKey, hasKey := shortText(headers, HeaderOriginRoutingKey)
	if hasExchange && hasKey {
		o.exchange, o.routingKey, o.known = exchange, routingKey, true
	}
	o.queue, _ = shortText(headers, HeaderOriginQueue)
}

// write writes our own headers.
func (o origin) write(headers amqp.Table) {
	headers[HeaderOriginQueue], headers[HeaderOriginExchange], headers[HeaderOriginRoutingKey] = o.queue, o.exchange, o.routingKey
}

// republished says whether headers carry a mark of ours: of a lap by copy, of the quarantine or of a replay. Without one
// an origin in them is somebody else's, and says nothing about this message.
func republished(headers amqp.Table) bool {
	if _, ok := attemptsHeader(headers); ok {
		return true
	}
	if n, ok := integer(headers[HeaderReplayCount]); ok && n >= 0 {
		return true
	}
	return !headerTime(headers, HeaderParkedAt).IsZero() || !headerTime(headers, HeaderReplayedAt).IsZero()
}

// shortText is a header that is a text and short enough for an address.
func shortText(headers amqp.Table, name string) (string, bool) {
	value, ok := headers[name].(string)
	if !ok || len(value) > maxShort {
		return "", false
	}
	return value, true
}
