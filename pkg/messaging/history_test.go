package messaging

import (
	"maps"
	"math"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestReadHistory(t *testing.T) {
	t.Parallel()
	waited := entry("retry", "expired", int64(2))
	lap := []any{waited, entry(mainQueue, "rejected", int64(2))}
	rejected := func(count any) amqp.Table {
		return own(amqp.Table{"x-death": []any{waited, entry(mainQueue, "rejected", count)}})
	}
	for name, c := range map[string]struct {
		headers              amqp.Table
		spent, hearsay       int64
		nonsense, rejectable bool
	}{
		"no headers":                     {nil, 0, 0, false, true},
		"foreign headers":                {amqp.Table{"x-foreign": "x", "traceparent": "y"}, 0, 0, false, true},
		"a broker's lap":                 {own(amqp.Table{"x-death": lap, "x-last-death-reason": "expired"}), 2, 0, false, true},
		"in scrambled order":             {own(amqp.Table{"x-death": []any{entry("a", "rejected", int64(9)), lap[1], lap[0]}}), 2, 0, false, true},
		"with a delivery limit":          {own(amqp.Table{"x-death": []any{entry(mainQueue, "delivery_limit", int64(3)), lap[1]}}), 5, 0, false, true},
		"only a delivery limit":          {amqp.Table{"x-death": []any{entry(mainQueue, "delivery_limit", int64(3))}}, 0, 0, false, false},
		"an expiry in our queue":         {own(amqp.Table{"x-death": []any{entry(mainQueue, "expired", int64(3))}}), 0, 0, false, false},
		"no first death":                 {amqp.Table{"x-death": lap}, 0, 2, false, false},
		"a first death elsewhere":        {own(amqp.Table{"x-death": lap, "x-first-death-queue": "other"}), 0, 2, false, false},
		"a first death by expiry":        {own(amqp.Table{"x-death": lap, "x-first-death-reason": "expired"}), 0, 2, false, false},
		"a rejection without a wait":     {amqp.Table{"x-death": lap[1:]}, 0, 0, false, false},
		"deaths that are no tables":      {own(amqp.Table{"x-death": []any{int64(1), lap[0], lap[1]}}), 0, 0, true, false},
		"a lap without an address":       {own(amqp.Table{"x-death": []any{waited, amqp.Table{"queue": mainQueue, "reason": "rejected", "count": int64(1)}}}), 0, 1, false, false},
		"no array":                       {own(amqp.Table{"x-death": amqp.Table{}}), 0, 0, true, false},
		"an int32 count":                 {rejected(int32(2)), 2, 0, false, true},
		"an int16 count":                 {rejected(int16(2)), 2, 0, false, true},
		"a byte count":                   {rejected(byte(2)), 2, 0, false, true},
		"a count as text":                {rejected("2"), 0, 0, true, false},
		"a fraction":                     {rejected(2.0), 0, 0, true, false},
		"a count below one":              {rejected(int64(0)), 0, 0, true, false},
		"as many as there can be":        {rejected(int64(mostSpent)), mostSpent, 0, false, true},
		"more than there can be":         {rejected(int64(mostSpent + 1)), 0, 0, true, false},
		"counts beyond any":              {own(amqp.Table{"x-death": []any{waited, entry(mainQueue, "rejected", int64(math.MaxInt64)), entry(mainQueue, "delivery_limit", int64(math.MaxInt64))}}), 0, 0, true, false},
		"our own attempts":               {copied(int64(2), nil), 2, 0, false, false},
		"our own beside the retry queue": {copied(int64(2), amqp.Table{"x-death": []any{entry("retry", "expired", int64(1))}, "x-first-death-reason": "expired", "x-first-death-queue": "retry"}), 2, 0, false, false},
		"our own win":                    {copied(int64(1), own(amqp.Table{"x-death": lap})), 1, 0, false, false},
		"our own win over hearsay":       {copied(int64(0), amqp.Table{"x-death": lap}), 0, 0, false, false},
		"attempts without an address":    {amqp.Table{"Banking-Attempts": int64(2)}, 0, 2, false, false},
		"win over other hearsay":         {amqp.Table{"Banking-Attempts": int64(1), "x-death": lap}, 0, 1, false, false},
		"with half an address":           {amqp.Table{"Banking-Attempts": int64(99), HeaderOriginRoutingKey: "k"}, 0, 99, false, false},
		"our own as text":                {amqp.Table{"Banking-Attempts": "2"}, 0, 0, true, false},
		"our own below zero":             {amqp.Table{"Banking-Attempts": int64(-1)}, 0, 0, true, false},
		"our own at their most":          {copied(int64(mostSpent), nil), mostSpent, 0, false, false},
		"our own beyond it":              {copied(int64(mostSpent+1), nil), 0, 0, true, false},
		"our own beyond any":             {copied(int64(math.MaxInt64), nil), 0, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := readHistory(returned(c.headers), mainQueue)
			if h.spent != c.spent || h.hearsay != c.hearsay || h.nonsense != c.nonsense || h.rejectable != c.rejectable {
				t.Errorf("got %+v, want %+v", h, c)
			}
		})
	}
}

// A broker hands a message back from its lap through the default exchange, under the queue's name. Whoever writes all of the broker's
// headers, but publishes where everybody does, is found out.
func TestALapComesBackFromTheBroker(t *testing.T) {
	t.Parallel()
	lap := own(amqp.Table{"x-death": []any{entry("retry", "expired", int64(2)), entry(mainQueue, "rejected", int64(2))}})
	for _, d := range []*amqp.Delivery{{Exchange: "events", RoutingKey: mainQueue, Headers: lap}, {RoutingKey: "accounts.account.debited", Headers: lap}} {
		h := readHistory(d, mainQueue)
		if h.rejectable || h.lapped || h.spent != 0 || !h.firstFailed.IsZero() || !h.firstDeath.IsZero() || h.origin.known {
			t.Errorf("through %q with key %q: %+v", d.Exchange, d.RoutingKey, h)
		}
	}
	if h := readHistory(returned(lap), mainQueue); !h.rejectable || !h.lapped || h.spent != 2 || h.firstDeath.IsZero() {
		t.Errorf("from the retry queue: %+v", h)
	}
}

// What a client says of the attempts spent may make the last one come sooner, but a message is not given up for it.
func TestHearsayLeavesAnAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		told        int64
		maxAttempts int
		want        int // attempt
	}{{1, 3, 2}, {2, 3, 3}, {3, 3, 1}, {99, 3, 1}, {1, 1, 1}, {99, 100, 100}} {
		d := delivery{Delivery: amqp.Delivery{Exchange: "events", RoutingKey: "key", Headers: amqp.Table{
			"x-death": []any{entry("other", "rejected", int64(7)), entry("retry", "expired", c.told), entry(mainQueue, "rejected", c.told)},
		}}}
		attempts := delivery{Delivery: amqp.Delivery{Exchange: "events", RoutingKey: "key", Headers: copied(c.told, nil)}}
		unaddressed := delivery{Delivery: *returned(amqp.Table{"Banking-Attempts": c.told})}
		for what, d := range map[string]*delivery{"x-death": &d, "Banking-Attempts through an exchange": &attempts, "Banking-Attempts alone": &unaddressed} {
			d.readHeaders(mainQueue)
			d.believe(c.maxAttempts)
			if d.attempt != c.want || d.past.rejectable {
				t.Errorf("%s tells of %d out of %d: attempt %d, want %d", what, c.told, c.maxAttempts, d.attempt, c.want)
			}
			if age := d.age(time.Now()); age != 0 || !d.firstFailed.IsZero() {
				t.Errorf("by %s its age is %v, a time that a client wrote", what, age)
			}
		}
	}
}

// copied are the headers of a lap by copy.
func copied(attempts any, more amqp.Table) amqp.Table {
	headers := amqp.Table{headerAttempts: attempts, HeaderOriginQueue: mainQueue, HeaderOriginExchange: "events", HeaderOriginRoutingKey: "some.key"}
	maps.Copy(headers, more)
	return headers
}

func TestHistoryKnowsTheOrigin(t *testing.T) {
	t.Parallel()
	lap := own(amqp.Table{"x-death": []any{entry("retry", "expired", int64(1)), entry(mainQueue, "rejected", int64(1))}})
	h := readHistory(returned(lap), mainQueue)
	if h.origin != (origin{exchange: "events", routingKey: "some.key", known: true}) || !h.firstFailed.Equal(time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("from the broker's lap: %+v", h)
	}
	lap[HeaderOriginExchange], lap[HeaderOriginRoutingKey], lap[HeaderOriginQueue], lap[HeaderFirstFailedAt] = "first", "first.key", "q", "2026-11-29T10:00:00Z"
	if h = readHistory(returned(lap), mainQueue); h.origin.exchange != "events" || h.origin.queue != "" || h.firstFailed.Day() != 30 {
		t.Errorf("from a stranger's headers: %+v", h)
	}
	for name, mark := range map[string]any{
		"Banking-Attempts": int64(1), "x-replay-count": int32(1), "x-replayed-at": "2026-11-29T10:00:00Z", "x-parked-at": "2026-11-29T10:00:00Z",
	} {
		marked := maps.Clone(lap)
		marked[name] = mark
		h = readHistory(returned(marked), mainQueue)
		if h.origin != (origin{"q", "first", "first.key", true}) || h.firstFailed.Day() != 29 {
			t.Errorf("from our own headers beside %s: %+v", name, h)
		}
		marked[name] = true
		if h = readHistory(returned(marked), mainQueue); h.origin.exchange != "events" {
			t.Errorf("beside a %s of nonsense: %+v", name, h)
		}
	}
}
