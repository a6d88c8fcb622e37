package messaging

import (
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Parked is what the headers of a quarantined message tell about its end. What they do not tell is the zero value.
type Parked struct {
	Reason  string // x-park-reason, or what the broker moved it for: EXPIRED, OVERFLOW, DELIVERY_LIMIT
	Class   string // a retry.Class
	Error   string
	Service string // who gave it up

	Attempts      int64
	FirstFailedAt time.Time
	ParkedAt      time.Time
	ReplayCount   int64
	ReplayedAt    time.Time

	OriginQueue      string // the queue that failed
	OriginExchange   string // where it was first published to; "" with OriginKnown is the default exchange
	OriginRoutingKey string
	OriginKnown      bool // OriginExchange and OriginRoutingKey are

	Deaths []Death // what the broker itself has noted
}

// brokerReasons are the deaths by which a broker moves a message on its own.
var brokerReasons = map[string]string{
	"expired":        retry.ReasonExpired,
	"maxlen":         retry.ReasonOverflow,
	"delivery_limit": retry.ReasonDeliveryLimit,
}

// ReadParked reads the headers of a message in quarantine.
//
// A message that a consumer gave up carries our headers. One that the broker moved on its own cannot: its end is in x-death,
// whose first entry is the newest death, whatever the order of the others. It may hold headers of ours from an earlier life, which
// say where it was first published but not how it ended now. What we give up ourselves is a copy without any death.
func ReadParked(headers amqp.Table) Parked {
	deaths, _ := ReadDeaths(headers) // what makes no sense in them is left out
	p := Parked{Deaths: deaths}
	p.ReplayCount = max(0, headerInteger(headers, HeaderReplayCount))
	p.ReplayedAt = headerTime(headers, HeaderReplayedAt)
	if republished(headers) {
		var o origin
		o.read(headers)
		p.OriginQueue, p.OriginExchange, p.OriginRoutingKey, p.OriginKnown = o.queue, o.exchange, o.routingKey, o.known
	}
	if len(deaths) > 0 && brokerReasons[deaths[0].Reason] != "" {
		p.movedByBroker(deaths)
		return p
	}
	p.Reason = plainText(text(headers, HeaderParkReason), maxShort)
	p.Class = plainText(text(headers, HeaderErrorClass), maxShort)
	p.Error = plainText(text(headers, HeaderLastError), maxLastError)
	p.Service = plainText(text(headers, HeaderService), maxShort)
	p.Attempts = max(0, headerInteger(headers, HeaderAttempts))
	p.FirstFailedAt = headerTime(headers, HeaderFirstFailedAt)
	p.ParkedAt = headerTime(headers, HeaderParkedAt)
	return p
}

func (p *Parked) movedByBroker(deaths []Death) {
	last := deaths[0]
	p.Reason = brokerReasons[last.Reason]
	p.ParkedAt = last.Time
	p.OriginQueue = last.Queue
	var o origin
	if o.published(last.Exchange, last.RoutingKeys); o.known && !p.OriginKnown {
		p.OriginExchange, p.OriginRoutingKey, p.OriginKnown = o.exchange, o.routingKey, true
	}
	for _, d := range deaths {
		if d.Queue == last.Queue && d.Reason == "rejected" {
			p.Attempts, p.FirstFailedAt = addSpent(p.Attempts, d.Count), d.Time
		}
	}
}

func headerInteger(headers amqp.Table, name string) int64 {
	n, _ := integer(headers[name])
	return n
}

// burialHeaders tell of an end that a replay makes undone.
var burialHeaders = []string{
	HeaderLastError, HeaderErrorClass, HeaderParkReason, HeaderAttempts, HeaderFirstFailedAt, HeaderParkedAt, HeaderService, HeaderDropped,
}

// Replayed is a quarantined message as it is sent on its way again: body, id and other properties as they are, without the
// headers of its failure, so that its attempts and its age start anew at the given time. Where it came from stays in it, and how
// often it has been replayed is counted on.
func Replayed(d *amqp.Delivery, at time.Time) amqp.Publishing {
	ours := amqp.Table{
		HeaderReplayCount: addSpent(max(0, headerInteger(d.Headers, HeaderReplayCount)), 1),
		HeaderReplayedAt:  stamp(at),
	}
	p := ReadParked(d.Headers)
	origin{queue: p.OriginQueue, exchange: p.OriginExchange, routingKey: p.OriginRoutingKey}.write(ours)
	if !p.OriginKnown { // half an origin would be believed later
		delete(ours, HeaderOriginExchange)
		delete(ours, HeaderOriginRoutingKey)
	}
	headers := republishable(d.Headers)
	for _, name := range burialHeaders {
		delete(headers, name)
	}
	for name := range headers {
		if strings.HasPrefix(name, "MT-Fault-") || strings.HasPrefix(name, "MT-Host-") || name == "MT-Reason" {
			delete(headers, name)
		}
	}
	for _, name := range []string{HeaderReplayCount, HeaderReplayedAt, HeaderOriginQueue, HeaderOriginExchange, HeaderOriginRoutingKey} {
		delete(headers, name)
	}
	shrink(headers)
	for name, value := range ours {
		headers[name] = value
	}
	return copyOf(&delivery{Delivery: *d}, headers)
}

// HeadersSize is how large headers are on the wire, in bytes.
func HeadersSize(headers amqp.Table) int { return headersSize(headers) }
