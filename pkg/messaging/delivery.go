package messaging

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// delivery is one message in the consumer's hands, from the broker's push to its ack, reject or return. It belongs to the
// attachment that took it; between two attempts in process it remembers what it has been through.
type delivery struct {
	amqp.Delivery
	msg         Message
	past        history
	seen        bool      // the headers have been read
	badHeaders  error     // why they alone make it one that can never be handled
	decoded     bool      // and the body
	wrong       error     // why it can never be handled
	attempt     int       // this execution, counted from 1
	firstFailed time.Time // zero: never

	suspicion suspicion
	key       [32]byte // under which its start is noted, once begun

	err     error       // how this execution ended
	untried bool        // err is that of its neighbours in the batch, it has not been run alone
	class   retry.Class // of err
	verdict verdict
	reason  string // with the verdict quarantineNow

	copy  *Publishing // to be published in its place, with the verdicts lapByCopy, tailByCopy and quarantineNow
	bare  bool        // the copy has been reduced to what always fits
	tries int         // publishings of the copy that failed
	due   time.Time   // while it waits
	since time.Time   // it is ready
	taken time.Time   // when the broker handed it out
}

// verdict is what is to be done with a delivery after an attempt.
type verdict int

const (
	none          verdict = iota // not handled: it goes back
	done                         // ack
	giveBack                     // nack with requeue, no attempt spent; or tailByCopy, if some have been spent here before
	retryHere                    // wait for due, then handle again as the next attempt
	lapByReject                  // reject: the broker dead-letters it into the retry queue
	lapByCopy                    // publish the copy to a queue that it comes back from, then ack
	tailByCopy                   // publish the copy to the tail of its own queue, then ack
	quarantineNow                // publish the copy to the quarantine, then ack
)

// MaxBody is the largest body that is decoded, in bytes; a larger one is of class VALIDATION. Decoding and hashing take several
// times a body's size, and a prefetch of large ones would end the process by its memory limit, again and again. The broker's
// max_message_size is the same, so only what it took before, or with another limit, can be larger.
const MaxBody = 1 << 20

// readHeaders reads the message's past. It does so once, and says whether this was it.
func (d *delivery) readHeaders(queue string) bool {
	if d.seen {
		return false
	}
	d.seen = true
	d.past = readHistory(&d.Delivery, queue)
	d.judgeHeaders()
	d.attempt = int(d.past.spent) + 1
	d.firstFailed = d.past.firstFailed
	d.msg.Queue = queue
	return true
}

// judgeHeaders finds headers with which a message is never handled, and never rejected either, whatever becomes of it before that: the
// broker would add to them, or come upon what cannot be read.
func (d *delivery) judgeHeaders() {
	names, unreadable := d.Headers[HeaderUnreadable]
	switch size := headersSize(d.Headers); {
	case unreadable:
		d.badHeaders = retry.Errorf(retry.Validation, "headers that cannot be read, for they are nested deeper than %d, hold more than %d entries, "+
			"exceed a frame or are of an unknown type: %v", maxNesting, maxEntries, names)
	case size > maxHeaders:
		d.badHeaders = retry.Errorf(retry.Validation, "the headers have %d bytes, more than %d", size, maxHeaders)
	default:
		return
	}
	d.past.rejectable = false
}

// believe lets count what a client says of the attempts spent, as long as one is left of maxAttempts.
func (d *delivery) believe(maxAttempts int) {
	d.past.believe(maxAttempts)
	d.attempt = int(d.past.spent) + 1
}

// nameByProperties names a message whose body has not been decoded as its sender did beside it.
func (d *delivery) nameByProperties() {
	d.msg.MessageID, d.msg.Type, d.msg.CorrelationID = d.MessageId, d.Type, d.CorrelationId
	d.msg.TraceParent = traceParent(d.Headers)
}

// prepare reads the headers and decodes the body, once.
func (d *delivery) prepare(queue string) {
	d.readHeaders(queue)
	if d.decoded {
		return
	}
	d.decoded = true
	var envelope Envelope
	if len(d.Body) > MaxBody {
		d.wrong = retry.Errorf(retry.Validation, "the body has %d bytes, more than %d", len(d.Body), MaxBody)
	} else {
		envelope, d.wrong = Decode(d.Body)
	}
	d.msg = Message{
		Envelope:    envelope,
		Queue:       queue,
		Redelivered: d.Redelivered,
		Headers:     d.Headers,
		TraceParent: traceParent(d.Headers),
	}
	if d.badHeaders != nil {
		d.wrong = d.badHeaders
	}
}

// waited says whether attempts have been spent on it here, in process: no header tells of them, so they would be lost if it
// were given back as it is.
func (d *delivery) waited() bool { return d.seen && d.attempt > int(d.past.spent)+1 }

// origin is where the message was first published to, and the queue that failed on it first.
func (d *delivery) origin() origin {
	o := d.past.origin
	if !o.known {
		o.exchange, o.routingKey, o.known = d.Exchange, d.RoutingKey, true
	}
	o.queue = cmp.Or(o.queue, d.msg.Queue)
	return o
}

// age is for how long the message has been about, 0 when nothing tells. The first believable of its times counts.
func (d *delivery) age(now time.Time) time.Duration {
	for _, at := range []time.Time{
		headerTime(d.Headers, HeaderReplayedAt), // a replay starts anew
		d.msg.OccurredAt,
		headerTime(d.Headers, HeaderFirstFailedAt),
		d.Timestamp,
		d.past.firstDeath,
	} {
		if !at.IsZero() && !absurd(at, now) {
			return max(0, now.Sub(at))
		}
	}
	return 0
}

// traceParent is the W3C trace context of the sender, "" when the header is none. It is stored and sent on with what the message
// causes, so anything else in its place would make a good message fail.
func traceParent(headers amqp.Table) string {
	value := text(headers, "traceparent")
	if len(value) != len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01") {
		return ""
	}
	for i, c := range []byte(value) {
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if dash := i == 2 || i == 35 || i == 52; dash && c != '-' || !dash && !hex {
			return ""
		}
	}
	if value[:2] == "ff" || value[3:35] == strings.Repeat("0", 32) || value[36:52] == strings.Repeat("0", 16) {
		return "" // forbidden by the standard
	}
	return value
}

func headerTime(headers amqp.Table, name string) time.Time {
	value, _ := shortText(headers, name)
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}
	}
	return at
}

// attemptOf renders the attempt for people.
func (d *delivery) attemptOf(limit int) string { return fmt.Sprintf("%d/%d", d.attempt, limit) }
