package messaging

import (
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// history is what a delivery tells about its past in one queue.
type history struct {
	spent       int64     // executions before this one
	hearsay     int64     // executions that a client's headers tell of; believe says whether they count
	firstFailed time.Time // zero when it never failed, or does not say
	firstDeath  time.Time // zero when it never died
	origin      origin    // as far as the headers say
	nonsense    bool      // it carries death or attempt headers that make no sense
	rejectable  bool      // a reject leads it through the broker's lap and back
	lapped      bool      // and has done so before
}

// mostSpent is how many executions a message can have behind it: MAX_ATTEMPTS and the waits of account allow no more. A larger
// number is nobody's count.
const mostSpent = 100

// readHistory reads the past of a delivery taken from queue.
//
// Anybody can send death headers, so they are believed only when they are the broker's own: it names the first death in headers
// that it does not set beside an x-death which a client sent, and it hands the message back through the default exchange. So does
// what comes back with our own header of attempts, and beside that stands where the message was first published to.
//
// All of that can be forged by who may publish to the queue itself, past the exchange, and knows what we and the broker write. Even
// so a message is executed once before it is given up: what is believed decides only whether a failure was its last one, and
// is told in HeaderAttempts as it was read.
//
// Rejecting is safe for a message without any death header, and for one whose only past is this queue's own lap: the broker
// then keeps x-first-death-reason at "rejected", by which the retry exchange tells a lap from the rest. With death headers
// that somebody else wrote the broker does not set its own, and the message would miss the retry queue; an x-death that
// holds anything but tables even crashes the queue's process, again and again, until the node (3.10) gives up
// dead-lettering for every queue it has.
func readHistory(d *amqp.Delivery, queue string) history {
	h := history{rejectable: true}
	if len(d.Headers) == 0 {
		return h
	}
	deaths, malformed := ReadDeaths(d.Headers)
	h.nonsense = malformed != nil
	if anyDeathHeader(d.Headers) {
		h.rejectable = false
		if malformed == nil {
			h.readDeaths(d, deaths, queue)
		}
	}
	h.readOwn(d, queue)
	return h
}

// readDeaths reads what is said about the laps of a message, by the broker or by a client.
func (h *history) readDeaths(d *amqp.Delivery, deaths []Death, queue string) {
	var spent, waited int64
	var lap Death // this queue's
	for _, death := range deaths {
		switch {
		case death.Queue == queue && death.Reason == "rejected":
			lap = death
			spent = addSpent(spent, death.Count)
		case death.Queue == queue && death.Reason == "delivery_limit":
			spent = addSpent(spent, death.Count)
		case death.Queue != queue && death.Reason == "expired":
			waited = addSpent(waited, death.Count)
		}
	}
	if lap.Count == 0 {
		return
	}
	if spent > mostSpent {
		h.nonsense = true
		return
	}
	var from origin
	from.published(lap.Exchange, lap.RoutingKeys)
	brokers := d.Headers["x-first-death-reason"] == "rejected" && d.Headers["x-first-death-queue"] == queue
	if !brokers || d.Exchange != "" || d.RoutingKey != queue || !from.known {
		if waited > 0 { // who was rejected and did not wait has made no lap
			h.hearsay = spent
		}
		return
	}
	h.rejectable, h.lapped = true, true
	h.spent, h.origin, h.firstFailed, h.firstDeath = spent, from, lap.Time, lap.Time
	for _, death := range deaths {
		if !death.Time.IsZero() && death.Time.Before(h.firstDeath) {
			h.firstDeath = death.Time
		}
	}
}

// believe counts the attempts that a client's headers tell of, for a tool that moves messages may have copied them. They can make
// a message's last attempt come sooner, but never take it away: nothing is given up for what somebody wrote.
func (h *history) believe(maxAttempts int) {
	if h.hearsay < int64(maxAttempts) {
		h.spent = max(h.spent, h.hearsay)
	}
	h.hearsay = 0
}

// readOwn reads the headers that we write when we republish. They win over x-death, which the broker started anew.
func (h *history) readOwn(d *amqp.Delivery, queue string) {
	headers := d.Headers
	if _, present := headers[headerAttempts]; present {
		h.rejectable = false
		h.hearsay = 0
		n, ok := attemptsHeader(headers)
		switch {
		case !ok:
			h.nonsense = true
		case lappedAsCopy(d, queue):
			h.spent = n
		default:
			h.hearsay = n
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

// lappedAsCopy says whether a delivery looks like a lap of our own making, see lapCopy: it comes through the default exchange, under the
// queue's name, and says where it was first published to.
func lappedAsCopy(d *amqp.Delivery, queue string) bool {
	var from origin
	from.read(d.Headers)
	return d.Exchange == "" && d.RoutingKey == queue && from.known
}

// attemptsHeader is our own header of the attempts spent, if it holds a number that we can have written.
func attemptsHeader(headers amqp.Table) (int64, bool) {
	n, ok := integer(headers[headerAttempts])
	return n, ok && n >= 0 && n <= mostSpent
}

// addSpent adds attempts without ever overflowing: the numbers come from outside.
func addSpent(a, b int64) int64 {
	const plenty = 1 << 30
	return min(min(a, plenty)+min(b, plenty), plenty)
}
