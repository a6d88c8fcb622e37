package messaging_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// garbage are headers of strangers, each of which has what it takes to be stuck: addresses that are none, sizes near the
// limit of a frame, types that brokers and libraries treat differently.
func garbage(queue string) []amqp.Table {
	long := strings.Repeat("k", 300)
	lap := amqp.Table{"queue": queue, "reason": "rejected", "count": int64(1), "exchange": long, "routing-keys": []any{long}, "time": time.Unix(1, 0)}
	all := []amqp.Table{
		{"x-origin-exchange": "e", "x-origin-routing-key": long},
		{"x-origin-exchange": "e", "x-origin-routing-key": long, "Banking-Attempts": int64(0)},
		{"x-origin-exchange": long, "x-origin-routing-key": "k", "x-replay-count": int64(1)},
		{"x-death": []any{lap}},
		{"x-death": []any{lap}, "x-first-death-queue": queue, "x-first-death-reason": "rejected"},
		{"x-origin-queue": strings.Repeat("q", 125<<10)},
		{"x-origin-routing-key": strings.Repeat("q", 125<<10), "x-replay-count": int64(1)},
		{"x-first-failed-at": "2026-11-30T10:00:00." + strings.Repeat("0", 100<<10) + "Z", "x-replayed-at": "9999-12-31T23:59:59Z"},
		{"x-last-error": int64(1), "x-attempts": "many", "x-service": nil, "x-replay-count": "often", "x-dropped-headers": []byte("x")},
		{"a": amqp.Table{"b": []any{amqp.Table{"c": nil}, amqp.Decimal{Scale: 1, Value: 2}, []byte{0xff}, time.Unix(math.MaxInt32, 0), float32(1), true, int8(1), uint32(1)}}},
		{"\xff\x00": "\xff\x00", "": "nameless", strings.Repeat("n", 255): "x", "x-match": "all", "x-queue-type": "quorum", "x-message-ttl": int64(-1)},
	}
	many := amqp.Table{}
	for i := range 3000 {
		many[fmt.Sprint("a-header-with-a-name-", i)] = true
	}
	return append(all, many)
}

func TestNoMessageIsStuckForItsOwnContent(t *testing.T) {
	t.Parallel()
	for name, road := range map[string]struct {
		service    func() (messaging.SessionConfig, messaging.ConsumerConfig)
		key, queue string
		quarantine string
	}{
		"lap": {func() (messaging.SessionConfig, messaging.ConsumerConfig) { return transfer(unknownTransfer) }, debited, contract.AccountEventsQueue, contract.ParkingLot},
		"in process": {func() (messaging.SessionConfig, messaging.ConsumerConfig) {
			return account(unknownTransfer, time.Millisecond)
		}, requested, requestQueue, errorQueue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := road.service()
			c.Prefetch = 8 // fewer than there are messages: were they held, nothing would flow
			f := start(t, s, c)
			want := map[string]bool{}
			for i, headers := range garbage(road.queue) {
				for _, body := range []string{fmt.Sprintf("garbage %d", i), body(fmt.Sprintf("\t%d", i))} {
					f.publish(contract.EventsExchange, road.key, amqp.Publishing{Headers: headers, Body: []byte(body), MessageId: strings.Repeat("\x01", 255)})
					want[body] = true
				}
			}
			for len(want) > 0 {
				d := f.take(road.quarantine)
				if !want[string(d.Body)] {
					t.Errorf("%.40q was quarantined twice or is no message of ours", d.Body)
				}
				delete(want, string(d.Body))
				if d.Headers["x-origin-queue"] != road.queue || d.Headers["x-origin-exchange"] != contract.EventsExchange || d.Headers["x-origin-routing-key"] != road.key {
					t.Errorf("%.40q: origin %.40v, %.40v, %.40v", d.Body, d.Headers["x-origin-queue"], d.Headers["x-origin-exchange"], d.Headers["x-origin-routing-key"])
				}
				if at, err := time.Parse(time.RFC3339, fmt.Sprint(d.Headers["x-first-failed-at"])); err != nil || time.Since(at) > time.Hour {
					t.Errorf("%.40q: first failed at %.40v", d.Body, d.Headers["x-first-failed-at"])
				}
			}
			f.empty(road.queue, road.quarantine)
			if err := f.session.Ready(t.Context()); err != nil {
				t.Errorf("Ready: %v", err)
			}
		})
	}
}
