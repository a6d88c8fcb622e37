package messaging

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// What a broker gives a message up for is a reason like any other: filters and hints know it.
func TestEveryReasonOfTheBrokersIsListed(t *testing.T) {
	t.Parallel()
	for death, reason := range brokerReasons {
		if !slices.Contains(retry.Reasons(), reason) {
			t.Errorf("%s, the reason of who %s, is not among %v", reason, death, retry.Reasons())
		}
	}
	if len(brokerReasons) != 4 {
		t.Errorf("the broker has %d reasons", len(brokerReasons))
	}
}

func TestReadParked(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	died := func(queue, reason, exchange, key string, count any) amqp.Table {
		return amqp.Table{"queue": queue, "reason": reason, "count": count, "exchange": exchange, "routing-keys": []any{key}, "time": at}
	}
	ours := amqp.Table{
		HeaderParkReason: "MAX_ATTEMPTS", HeaderErrorClass: "TIMEOUT", HeaderLastError: "down\x1b[31m", HeaderService: "transfer", HeaderAttempts: int32(3),
		HeaderParkedAt: stamp(at), HeaderFirstFailedAt: stamp(at.Add(-time.Minute)), HeaderReplayCount: int64(2), HeaderReplayedAt: stamp(at),
		HeaderOriginQueue: "q", HeaderOriginExchange: "e", HeaderOriginRoutingKey: "k",
	}
	with := func(headers amqp.Table, name string, value any) amqp.Table {
		changed := amqp.Table{name: value}
		for n, v := range headers {
			if n != name {
				changed[n] = v
			}
		}
		return changed
	}
	for name, c := range map[string]struct {
		headers amqp.Table
		want    Parked
	}{
		"nothing": {nil, Parked{}},
		"given up by a consumer": {ours, Parked{Reason: "MAX_ATTEMPTS", Class: "TIMEOUT", Error: "down [31m", Service: "transfer", Attempts: 3,
			FirstFailedAt: at.Add(-time.Minute), ParkedAt: at, ReplayCount: 2, ReplayedAt: at, OriginQueue: "q", OriginExchange: "e", OriginRoutingKey: "k", OriginKnown: true}},
		"expired": {amqp.Table{"x-death": []any{died("main", "expired", "events", "key", int64(1))}}, Parked{Reason: retry.ReasonExpired, ParkedAt: at,
			OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"driven out after two laps": {amqp.Table{"x-death": []any{died("main", "maxlen", "", "main", int64(1)), died("retry", "expired", "", "retry", int64(2)),
			died("main", "rejected", "events", "key", int64(2))}}, Parked{Reason: retry.ReasonOverflow, ParkedAt: at, FirstFailedAt: at, Attempts: 2,
			OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"rejected, and no queue to wait in": {amqp.Table{"x-death": []any{died("main", "rejected", "events", "key", int64(1))}}, Parked{Reason: retry.ReasonRejected,
			ParkedAt: at, FirstFailedAt: at, Attempts: 1, OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"the same after a lap": {amqp.Table{"x-death": []any{died("main", "rejected", "events", "key", int64(2)), died("retry", "expired", "events", "key", int64(1))}},
			Parked{Reason: retry.ReasonRejected, ParkedAt: at, FirstFailedAt: at, Attempts: 2, OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"expired after a lap by copy": {amqp.Table{headerAttempts: int64(2), HeaderFirstFailedAt: stamp(at.Add(-time.Minute)), HeaderOriginQueue: "main", HeaderOriginExchange: "e", HeaderOriginRoutingKey: "k",
			"x-death": []any{died("main", "expired", "", "main", int64(1)), died("retry", "expired", "", "retry", int64(1))}}, Parked{Reason: retry.ReasonExpired, ParkedAt: at,
			FirstFailedAt: at.Add(-time.Minute), Attempts: 2, OriginQueue: "main", OriginExchange: "e", OriginRoutingKey: "k", OriginKnown: true}},
		"rejected more often than can be": {amqp.Table{"x-death": []any{died("main", "rejected", "events", "key", int64(1<<62))}}, Parked{Reason: retry.ReasonRejected,
			ParkedAt: at, FirstFailedAt: at, OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"delivery limit": {amqp.Table{"x-death": []any{died("main", "delivery_limit", "events", "key", int64(1))}}, Parked{Reason: retry.ReasonDeliveryLimit, ParkedAt: at,
			OriginQueue: "main", OriginExchange: "events", OriginRoutingKey: "key", OriginKnown: true}},
		"expired after a replay": {amqp.Table{HeaderReplayCount: int64(1), HeaderOriginQueue: "q", HeaderOriginExchange: "e", HeaderOriginRoutingKey: "k",
			"x-death": []any{died("main", "expired", "", "main", int64(1))}}, Parked{Reason: retry.ReasonExpired, ParkedAt: at, ReplayCount: 1,
			OriginQueue: "main", OriginExchange: "e", OriginRoutingKey: "k", OriginKnown: true}},
		"an origin without any mark of ours": {amqp.Table{HeaderOriginQueue: "q", HeaderOriginExchange: "e", HeaderOriginRoutingKey: "k"}, Parked{}},
		"nonsense":                           {amqp.Table{HeaderParkReason: 7, HeaderParkedAt: "yesterday", HeaderReplayCount: "two", HeaderAttempts: int64(-1), "x-death": "none"}, Parked{}},
	} {
		got := ReadParked(c.headers)
		got.Deaths = nil
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: read as\n%+v, want\n%+v", name, got, c.want)
		}
	}
	if got := ReadParked(with(ours, HeaderOriginQueue, strings.Repeat("q", 256))); got.OriginQueue != "" {
		t.Error("a name that no queue can have is taken for a queue")
	}
	if got := ReadParked(with(ours, HeaderReplayCount, int64(-5))); got.ReplayCount != 0 {
		t.Errorf("replayed %d times", got.ReplayCount)
	}
}

func TestReplayedCountsOnAndNeverOverflows(t *testing.T) {
	t.Parallel()
	for before, want := range map[any]int64{nil: 1, int64(2): 3, int16(9): 10, "2": 1, int64(-3): 1, int64(1 << 62): 1 << 30} {
		d := &amqp.Delivery{Headers: amqp.Table{HeaderReplayCount: before}, Expiration: "5", UserId: "somebody"}
		p := Replayed(d, time.Now())
		if p.Headers[HeaderReplayCount] != want || p.Expiration != "" || p.UserId != "" {
			t.Errorf("after %v it is %v, with %+v", before, p.Headers[HeaderReplayCount], p)
		}
	}
	d := &amqp.Delivery{Headers: amqp.Table{"large": strings.Repeat("x", 70<<10), "small": "y"}}
	if p := Replayed(d, time.Now()); p.Headers["large"] != nil || p.Headers["small"] != "y" || p.Headers[HeaderDropped] != "large" {
		t.Errorf("headers that are too large are sent as %d bytes", headersSize(p.Headers))
	}
}
