package messaging

import (
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Parked is what the headers of a quarantined message tell about its end. What they do not tell is the zero value.
type Parked struct {
	Reason  string // x-park-reason, or what the broker moved it for: EXPIRED, OVERFLOW, DELIVERY_LIMIT, REJECTED
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

// brokerReasons are the deaths by which a broker moves a message on its own. A rejection is among them: it asks for a lap, but
// while somebody has deleted the retry queue the exchange before it leads to the parking lot.
var brokerReasons = map[string]string{
	"expired":        retry.ReasonExpired,
	"maxlen":         retry.ReasonOverflow,
	"delivery_limit": retry.ReasonDeliveryLimit,
	"rejected":       retry.ReasonRejected,
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
		p.movedByBroker(headers, deaths)
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

func (p *Parked) movedByBroker(headers amqp.Table, deaths []Death) {
	last := deaths[0]
	p.Reason = brokerReasons[last.Reason]
	p.ParkedAt = last.Time // of the first such death: after laps, that many delays too early
	p.OriginQueue = last.Queue
	first := last // of its deaths in that queue: one that comes back from a lap has the address of the lap
	for _, d := range deaths {
		if d.Queue == last.Queue && d.Reason == "rejected" {
			first = d
			p.FirstFailedAt = d.Time
			if d.Count <= mostSpent {
				p.Attempts = d.Count
			}
		}
	}
	if spent, ok := attemptsHeader(headers); ok { // of laps by copy
		p.Attempts, p.FirstFailedAt = spent, headerTime(headers, HeaderFirstFailedAt)
	}
	var o origin
	if o.published(first.Exchange, first.RoutingKeys); o.known && !p.OriginKnown {
		p.OriginExchange, p.OriginRoutingKey, p.OriginKnown = o.exchange, o.routingKey, true
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
