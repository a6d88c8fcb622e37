package messaging

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// cause is why and when a message was given up: everything that it tells about that in quarantine.
type cause struct {
	reason string
	class  retry.Class
	err    error
	at     time.Time
}

// copyOf is the message as we publish it again: body and properties as they were, headers without the broker's own. An
// expiration is cleared, or it would run again; a user id is, or the broker refuses it as foreign. It is persistent whatever the message
// was: what failed must not be lost with a restart of the broker.
func copyOf(d *delivery, headers amqp.Table) amqp.Publishing {
	return amqp.Publishing{
		Headers:         headers,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
	}
}

// lapCopy is the message on a lap that we make ourselves: to a queue that it comes back from, or to its own, with the attempts it
// has spent and where it came from in our own headers. All of the origin is written, because what stands beside our mark is
// believed later.
func (c *Consumer) lapCopy(d *delivery, queue string, spent int) *Publishing {
	ours := amqp.Table{
		headerAttempts:      int64(spent),
		HeaderFirstFailedAt: stamp(d.firstFailed),
	}
	d.origin().write(ours)
	return &Publishing{RoutingKey: queue, Mandatory: true, Publishing: copyOf(d, withOurs(d.Headers, ours))}
}

// quarantined is the message as it goes to the parking lot or the error queue.
func (c *Consumer) quarantined(d *delivery, why cause) *Publishing {
	origin := d.origin()
	ours := amqp.Table{
		HeaderLastError:     plainText(why.err.Error(), maxLastError),
		HeaderErrorClass:    cutText(string(why.class), maxShort),
		HeaderParkReason:    cutText(why.reason, maxShort),
		HeaderAttempts:      int64(d.attempt),
		HeaderFirstFailedAt: stamp(d.firstFailed),
		HeaderParkedAt:      stamp(why.at),
		HeaderService:       cutText(c.Service, maxShort),
	}
	origin.write(ours)
	if c.Road.MassTransit {
		c.addFault(ours, d, why)
	}
	return &Publishing{
		Exchange:   c.Road.QuarantineExchange,
		RoutingKey: cmp.Or(c.Road.QuarantineKey, origin.routingKey),
		Mandatory:  true,
		Publishing: copyOf(d, withOurs(d.Headers, ours)),
	}
}

// bareHeaders are the headers that a copy keeps when it is reduced.
var bareHeaders = []string{
	headerAttempts, HeaderLastError, HeaderErrorClass, HeaderParkReason, HeaderAttempts, HeaderOriginQueue, HeaderOriginExchange,
	HeaderOriginRoutingKey, HeaderFirstFailedAt, HeaderParkedAt, HeaderService, HeaderReplayCount,
	HeaderReplayedAt, // or its old age would come back to it
}

// bareCopy is the copy of a message reduced to what always fits: the body, few and short headers, an address of our own. A message that
// cannot be published stays for ever, and a handful of them would stop the queue.
func (c *Consumer) bareCopy(d *delivery) *Publishing {
	headers := amqp.Table{HeaderDropped: "all that are not here"}
	for _, name := range bareHeaders {
		if n, ok := integer(d.copy.Headers[name]); ok {
			headers[name] = n
		} else if value, ok := d.copy.Headers[name].(string); ok {
			headers[name] = cutText(value, maxShort)
		}
	}
	p := &Publishing{Exchange: d.copy.Exchange, RoutingKey: d.copy.RoutingKey, Mandatory: true, Publishing: copyOf(d, headers)}
	if d.verdict == quarantineNow {
		p.RoutingKey = cmp.Or(c.Road.QuarantineKey, c.Queue)
	}
	for _, property := range []*string{&p.ContentType, &p.ContentEncoding, &p.ReplyTo, &p.AppId} {
		if len(*property) > maxShort {
			*property = ""
		}
	}
	return p
}

// maxFault is the longest text in a header of MassTransit's, in bytes.
const maxFault = 2 << 10

// addFault adds the headers by which MassTransit describes a fault.
func (c *Consumer) addFault(headers amqp.Table, d *delivery, why cause) {
	headers["MT-Reason"] = "fault"
	headers["MT-Fault-ExceptionType"] = cutText(string(why.class), maxShort)
	headers["MT-Fault-Message"] = plainText(why.err.Error(), maxFault)
	headers["MT-Fault-Timestamp"] = stamp(why.at)
	headers["MT-Fault-StackTrace"] = errorChain(why.err)
	headers["MT-Fault-InputAddress"] = "queue:" + c.Queue
	headers["MT-Fault-ConsumerType"] = cutText(c.Service, maxShort)
	if d.msg.Type != "" {
		headers["MT-Fault-MessageType"] = plainText(d.msg.Type, maxFault)
	}
	if d.attempt > 1 {
		headers["MT-Fault-RetryCount"] = int64(d.attempt - 1)
	}
	for name, value := range hostHeaders {
		headers[name] = value
	}
}

// errorChain lists the errors that wrap each other, outermost first.
func errorChain(err error) string {
	var b strings.Builder
	for ; err != nil; err = errors.Unwrap(err) {
		fmt.Fprintf(&b, "%T: %s\n", err, plainText(err.Error(), maxFault))
	}
	return cutText(strings.TrimSuffix(b.String(), "\n"), maxFault)
}

// hostHeaders say which process gave a message up.
var hostHeaders = func() amqp.Table {
	machine, _ := os.Hostname()
	process := filepath.Base(os.Args[0])
	assembly := process
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		assembly = info.Path
	}
	return amqp.Table{
		"MT-Host-MachineName": cutText(machine, maxShort),
		"MT-Host-ProcessName": cutText(process, maxShort),
		"MT-Host-ProcessId":   strconv.Itoa(os.Getpid()),
		"MT-Host-Assembly":    cutText(assembly, maxShort),
	}
}()
