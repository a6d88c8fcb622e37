package messaging

import (
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

// burial is everything that a quarantined message tells about its end.
type burial struct {
	reason string
	class  retry.Class
	err    error
	at     time.Time
}

// copyOf is the message as we publish it again: body and properties as they were, headers without the broker's own. An
// expiration is cleared, or it would run again; a user id is, or the broker refuses it as foreign.
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

// lapCopy is the message on a lap that we make ourselves: to the retry queue, with the attempts it has spent and where it
// came from in our own headers.
func (c *Consumer) lapCopy(d *delivery) *Publishing {
	headers := republishable(d.Headers)
	shrink(headers)
	headers[headerAttempts] = int64(d.attempt)
	headers[headerFirstFailedAt] = stamp(d.firstFailed)
	headers[headerOriginExchange], headers[headerOriginRoutingKey] = d.origin()
	return &Publishing{RoutingKey: c.Road.RetryQueue, Mandatory: true, Publishing: copyOf(d, headers)}
}

// quarantined is the message as it goes to the parking lot or the error queue.
func (c *Consumer) quarantined(d *delivery, end burial) *Publishing {
	headers := republishable(d.Headers)
	shrink(headers)
	exchange, key := d.origin()
	queue := text(d.Headers, HeaderOriginQueue)
	if queue == "" {
		queue = c.Queue
	}
	for name, value := range map[string]any{
		HeaderLastError:        plainText(end.err.Error(), maxLastError),
		HeaderErrorClass:       string(end.class),
		HeaderParkReason:       end.reason,
		HeaderAttempts:         int64(d.attempt),
		HeaderOriginQueue:      queue,
		HeaderOriginExchange:   exchange,
		HeaderOriginRoutingKey: key,
		HeaderFirstFailedAt:    stamp(d.firstFailed),
		HeaderParkedAt:         stamp(end.at),
		HeaderService:          c.Service,
	} {
		headers[name] = value
	}
	if _, ok := integer(headers[HeaderReplayCount]); !ok {
		delete(headers, HeaderReplayCount)
	}
	if c.Road.MassTransit {
		c.addFault(headers, d, end)
	}
	p := &Publishing{
		Exchange:   c.Road.QuarantineExchange,
		RoutingKey: c.Road.QuarantineKey,
		Mandatory:  true,
		Publishing: copyOf(d, headers),
	}
	if p.RoutingKey == "" {
		p.RoutingKey = key
	}
	return p
}

// maxFault is the longest text in a header of MassTransit's, in bytes.
const maxFault = 2 << 10

// addFault adds the headers by which MassTransit describes a fault.
func (c *Consumer) addFault(headers amqp.Table, d *delivery, end burial) {
	headers["MT-Reason"] = "fault"
	headers["MT-Fault-ExceptionType"] = string(end.class)
	headers["MT-Fault-Message"] = plainText(end.err.Error(), maxFault)
	headers["MT-Fault-Timestamp"] = stamp(end.at)
	headers["MT-Fault-StackTrace"] = errorChain(end.err)
	headers["MT-Fault-InputAddress"] = "queue:" + c.Queue
	headers["MT-Fault-ConsumerType"] = c.Service
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
		"MT-Host-MachineName": machine,
		"MT-Host-ProcessName": process,
		"MT-Host-ProcessId":   strconv.Itoa(os.Getpid()),
		"MT-Host-Assembly":    assembly,
	}
}()
