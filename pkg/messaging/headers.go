package messaging

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Headers of a quarantined message.
const (
	HeaderLastError        = "x-last-error"         // valid UTF-8 without control characters, at most 4 KiB
	HeaderErrorClass       = "x-error-class"        // a retry.Class
	HeaderParkReason       = "x-park-reason"        // a reason of retry
	HeaderAttempts         = "x-attempts"           // executions, an integer
	HeaderOriginQueue      = "x-origin-queue"       // the queue that failed
	HeaderOriginExchange   = "x-origin-exchange"    // where it was first published to
	HeaderOriginRoutingKey = "x-origin-routing-key" // and under which key
	HeaderFirstFailedAt    = "x-first-failed-at"    // RFC 3339
	HeaderParkedAt         = "x-parked-at"          // RFC 3339
	HeaderService          = "x-service"            // who gave it up
	HeaderReplayCount      = "x-replay-count"       // an integer; not there before the first replay
	HeaderReplayedAt       = "x-replayed-at"        // RFC 3339; age restarts here
	HeaderDropped          = "x-dropped-headers"    // names of foreign headers that were too large or nested too deep to keep
	HeaderUnreadable       = "x-unreadable-headers" // the same of a message in hand, where the queue still has them; see guard
)

// headerAttempts marks a message that makes its lap as a copy of ours, on the tiered road or because rejecting it is not
// safe: the executions spent so far, an integer. It deliberately has no "x-": brokers treat such headers as theirs, differently in each version.
const headerAttempts = "Banking-Attempts"

// headerCorrelation marks a publishing whose messageId cannot tell its return from another's.
const headerCorrelation = "Banking-Correlation"

const (
	// maxHeaders is how large the headers of a delivery may be before it is quarantined at once. Each dead-lettering adds to
	// them, and a message whose headers have grown past a frame (128 KiB) kills every connection that reads it.
	maxHeaders = 64 << 10
	// keptHeaders is what stays of them then, so that ours and the broker's find room beside.
	keptHeaders  = 32 << 10
	maxLastError = 4 << 10
)

const timeLayout = "2006-01-02T15:04:05.000Z07:00" // RFC 3339 with milliseconds

func stamp(at time.Time) string { return at.UTC().Format(timeLayout) }

// headersSize is the size of headers on the wire, in bytes.
func headersSize(headers amqp.Table) int { return fieldSize(headers) - 1 }

func fieldSize(value any) int {
	size := 1 // the type
	switch v := value.(type) {
	case string:
		size += 4 + len(v)
	case []byte:
		size += 4 + len(v)
	case amqp.Table:
		size += 4
		for name, field := range v {
			size += 1 + len(name) + fieldSize(field)
		}
	case []any:
		size += 4
		for _, field := range v {
			size += fieldSize(field)
		}
	case nil:
	default:
		size += 8 // no scalar is longer
	}
	return size
}

// republishable copies the headers that a message may keep when we publish it again: all but those by which a broker
// counts and routes. A kept x-death would be counted on by some versions and overwritten by others; a kept CC would send
// a second copy elsewhere.
func republishable(headers amqp.Table) amqp.Table {
	kept := make(amqp.Table, len(headers)+12)
	for name, value := range headers {
		switch name {
		case "x-delivery-count", "x-acquired-count", "CC", "BCC", headerAttempts, headerCorrelation:
			continue
		}
		if !isDeathHeader(name) {
			kept[name] = value
		}
	}
	return kept
}

// withOurs is the headers of a delivery that is published again: ours, which are bounded and win over any of the same
// name, and of the others those that may be kept and fit beside them.
func withOurs(received, ours amqp.Table) amqp.Table {
	headers := republishable(received)
	if n, ok := integer(received[HeaderReplayCount]); ok {
		ours[HeaderReplayCount] = n
	}
	if at := headerTime(received, HeaderReplayedAt); !at.IsZero() {
		ours[HeaderReplayedAt] = stamp(at)
	}
	delete(headers, HeaderReplayCount) // one that is no number would only mislead
	for name := range ours {
		delete(headers, name)
	}
	delete(headers, HeaderDropped)
	if earlier := text(received, HeaderDropped); earlier != "" && republished(received) { // what was dropped on an earlier lap
		shrink(headers, earlier)
	} else {
		shrink(headers)
	}
	for name, value := range ours {
		headers[name] = value
	}
	return headers
}

// shrink drops what AMQP cannot carry, and of headers that are too large the largest ones until the rest is small. It
// says in a header what it dropped, after what was dropped before.
func shrink(headers amqp.Table, dropped ...string) {
	if names := text(headers, HeaderUnreadable); names != "" {
		dropped = append(dropped, names) // the copy does without them for good
	}
	delete(headers, HeaderUnreadable)
	for name, value := range headers {
		field := amqp.Table{name: value}
		if field.Validate() != nil || longNames(field) != nil {
			delete(headers, name)
			dropped = append(dropped, name)
		}
	}
	if size := headersSize(headers); size > maxHeaders {
		names := make([]string, 0, len(headers))
		for name := range headers {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int {
			return cmp.Or(cmp.Compare(fieldSize(headers[b]), fieldSize(headers[a])), cmp.Compare(a, b))
		})
		for _, name := range names {
			if size <= keptHeaders {
				break
			}
			size -= 1 + len(name) + fieldSize(headers[name])
			delete(headers, name)
			dropped = append(dropped, name)
		}
	}
	if len(dropped) > 0 {
		headers[HeaderDropped] = plainText(strings.Join(dropped, ", "), 1<<10)
	}
}

// plainText makes any text fit for a header or a log: valid UTF-8, no control characters, at most limit bytes.
func plainText(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return cutText(s, limit)
}

// cutText cuts s to at most limit bytes, never inside a character.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// maxFrame is how large the headers of a publishing may be. The broker closes the whole connection for a header frame
// above 128 KiB, which takes everybody else's messages along; the rest is for the other properties.
const maxFrame = 120 << 10

// fitForWire makes a publishing one that AMQP can carry, or says why it cannot be. The client library finds a text that is
// too long only while it writes, and then the connection is lost.
func fitForWire(m *Publishing) error {
	m.MessageId = cutText(m.MessageId, maxShort) // the body has the whole of it
	m.CorrelationId = cutText(m.CorrelationId, maxShort)
	m.Type = cutText(m.Type, maxShort)
	for _, property := range []struct{ name, value string }{
		{"exchange", m.Exchange}, {"routing key", m.RoutingKey}, {"content type", m.ContentType},
		{"content encoding", m.ContentEncoding}, {"reply-to", m.ReplyTo}, {"expiration", m.Expiration}, {"user id", m.UserId}, {"app id", m.AppId},
	} {
		if len(property.value) > maxShort {
			return fmt.Errorf("the %s has %d bytes, AMQP allows %d", property.name, len(property.value), maxShort)
		}
	}
	if len(m.Headers) == 0 {
		return nil
	}
	if err := m.Headers.Validate(); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if size := headersSize(m.Headers); size > maxFrame {
		return fmt.Errorf("the headers have %d bytes, more than fit a frame", size)
	}
	return longNames(m.Headers)
}

func longNames(value any) error {
	switch v := value.(type) {
	case amqp.Table:
		for name, field := range v {
			if len(name) > maxShort {
				return fmt.Errorf("a header's name has %d bytes, AMQP allows %d", len(name), maxShort)
			}
			if err := longNames(field); err != nil {
				return err
			}
		}
	case []any:
		for _, field := range v {
			if err := longNames(field); err != nil {
				return err
			}
		}
	}
	return nil
}
