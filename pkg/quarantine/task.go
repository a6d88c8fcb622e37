package quarantine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/banking/pkg/messaging"
)

// task is one message in a run, or in the dry run before it.
type task struct {
	*parked
	queue      string // the work queue that failed on it
	exchange   string // where a replay publishes it
	routingKey string
	audit      int64
	headers    string // as the audit keeps them, of a discard
	properties string
	outcome    string // of the audit; "" while nothing has been tried
	verdict
}

// verdict is what a run says of one message.
type verdict struct {
	Outcome  string `json:"outcome"`
	Detail   string `json:"detail"`
	Target   string `json:"target"`   // of a replay: "queue Q", or "exchange E, key K"
	Forecast string `json:"forecast"` // of a replay
	Canary   bool   `json:"canary"`
}

// Result is a message with its verdict, as a run answers it.
type Result struct {
	Item
	verdict
}

func (t *task) result() Result { return Result{t.Item, t.verdict} }

// What a Result says became of a message; FAILED and UNKNOWN are those of the audit.
const (
	wouldReplay  = "WOULD_REPLAY"
	wouldDiscard = "WOULD_DISCARD"
	replayed     = "REPLAYED"
	discarded    = "DISCARDED"
	refused      = "REFUSED" // nothing was tried
)

// mostReplays is how often a message is replayed without being forced: what has come back so often will come back again.
const mostReplays = 3

// aim finds out where a replay of the message goes, or refuses it.
func (q *Quarantine) aim(t *task, order *replayOrder) {
	told := &t.told
	t.queue = told.OriginQueue
	switch {
	case order.To == toExchange && !told.OriginKnown:
		t.refuse("it does not say to which exchange it was first published")
		return
	case order.To == toExchange && !slices.Contains(q.Exchanges, told.OriginExchange):
		why := fmt.Sprintf("it says that it was first published to the exchange %.100q, and replays go to %s only", told.OriginExchange, strings.Join(q.Exchanges, ", "))
		if slices.Contains(q.Targets, told.OriginQueue) {
			why += "; use --to queue"
		}
		t.refuse(why)
		return
	case order.To == toExchange:
		t.exchange, t.routingKey = told.OriginExchange, told.OriginRoutingKey
		t.Target = fmt.Sprintf("exchange %s, key %s", t.exchange, t.routingKey)
	case told.OriginQueue == "" && told.OriginKnown && slices.Contains(q.Exchanges, told.OriginExchange):
		t.refuse("it does not say which queue has failed on it; --to exchange sends it to everybody")
		return
	case told.OriginQueue == "":
		t.refuse("it does not say which queue has failed on it, nor where it was first published; publish it anew, then discard it")
		return
	case !slices.Contains(q.Targets, told.OriginQueue):
		t.refuse(fmt.Sprintf("it says that it comes from %.100q, which is no queue that is replayed to: %s", told.OriginQueue, strings.Join(q.Targets, ", ")))
		return
	default:
		t.routingKey = told.OriginQueue
		t.Target = "queue " + told.OriginQueue
	}
	if t.ReplayCount >= mostReplays && !order.Force {
		t.refuse(fmt.Sprintf("it has been replayed %d times and has come back each time; force it if the reason is gone", t.ReplayCount))
	}
}

func (t *task) refuse(why string) {
	t.Outcome, t.Detail = refused, why
}

// publishing is the message on its way again.
func (t *task) publishing(at time.Time) messaging.Publishing {
	return messaging.Publishing{
		Exchange: t.exchange, RoutingKey: t.routingKey, Mandatory: true, Publishing: messaging.Replayed(t.delivery, at),
	}
}

// settle notes the end of a task, for the audit and for the client.
func (t *task) settle(outcome, said, detail string) {
	t.outcome, t.Outcome, t.Detail = outcome, said, detail
}
