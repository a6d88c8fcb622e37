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

// history is what the headers of a delivery tell about its past in one queue.
type history struct {
	spent       int64     // executions before this one
	firstFailed time.Time // zero when it never failed, or does not say
	firstDeath  time.Time // zero when it never died
	origin      origin    // as far as the headers say
	nonsense    bool      // it carries death or attempt headers that make no sense
	rejectable  bool      // a reject leads it through the broker's lap and back
	lapped      bool      // and has done so before
}

// readHistory reads the past of a delivery taken from queue.
//
// Rejecting is safe for a message without any death header, and for one whose only past is this queue's own lap: the broker
// then keeps x-first-death-reason at "rejected", by which the retry exchange tells a lap from the rest. With death headers
// that somebody else wrote the broker does not set its own, and the message would miss the retry queue; an x-death that
// holds anything but tables even crashes the queue's process, again and again, until the node (3.10) gives up
// dead-lettering for every queue it has.
func readHistory(headers amqp.Table, queue string) history {
	h := history{rejectable: true}
	if len(headers) == 0 {
		return h
	}
	deaths, malformed := ReadDeaths(headers)
	h.nonsense = malformed != nil
	ownLap := false
	for _, d := range deaths {
		if !d.Time.IsZero() && (h.firstDeath.IsZero() || d.Time.Before(h.firstDeath)) {
			h.firstDeath = d.Time
		}
		if d.Queue != queue || d.Reason != "rejected" && d.Reason != "delivery_limit" {
			continue
		}
		h.spent = addSpent(h.spent, d.Count)
		if d.Reason == "rejected" {
			ownLap = true
			h.firstFailed = d.Time
			h.origin.published(d.Exchange, d.RoutingKeys)
		}
	}
	if anyDeathHeader(headers) {
		h.rejectable = malformed == nil && ownLap && h.origin.known &&
			headers["x-first-death-reason"] == "rejected" && headers["x-first-death-queue"] == queue
	}
	h.lapped = ownLap && h.rejectable
	if !h.rejectable { // not a lap of the broker's: somebody wrote it
		h.firstFailed, h.origin = time.Time{}, origin{}
	}
	h.readOwn(headers)
	return h
}

// readOwn reads the headers that we write when we republish. They win over x-death, which the broker started anew.
func (h *history) readOwn(headers amqp.Table) {
	if value, present := headers[headerAttempts]; present {
		h.rejectable = false
		n, ok := integer(value)
		if ok && n >= 0 {
			h.spent = addSpent(0, n)
		} else {
			h.nonsense = true
		}
	}
	if !republished(headers) {
		return
	}
	if at := headerTime(headers, HeaderFirstFailedAt); !at.IsZero() {
		h.firstFailed = at
	}
	h.origin.read(headers)
}

// addSpent adds attempts without ever overflowing: the numbers come from outside.
func addSpent(a, b int64) int64 {
	const plenty = 1 << 30
	return min(min(a, plenty)+min(b, plenty), plenty)
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
