package messaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
	"pgregory.net/rapid"
)

// roads are consumers without a broker, one on each road.
func roads(t testing.TB) map[string]*Consumer {
	t.Helper()
	s := NewSession(SessionConfig{Name: "service", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	consumers := map[string]*Consumer{}
	for name, road := range map[string]Road{
		"in process": InProcess(mainQueue + "_error"), "lap": Lap(mainQueue+".retry", "dlx"),
		"tiered": Tiered([]Tier{{time.Second, []string{mainQueue + ".retry"}}}, "dlx"),
	} {
		c, err := s.NewConsumer(ConsumerConfig{
			Queue: mainQueue, Road: road, Policy: retry.Policy{MaxAttempts: 3},
			Handler: func(context.Context, []*Message) ([]error, error) { return nil, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		consumers[name] = c
	}
	return consumers
}

// checkExits says that a delivery can leave on either road, as it must whatever it holds.
func checkExits(t interface {
	Helper()
	Errorf(string, ...any)
}, consumers map[string]*Consumer, received amqp.Delivery, failure error) {
	t.Helper()
	before, body := maps.Clone(received.Headers), bytes.Clone(received.Body)
	for road, c := range consumers {
		d := &delivery{Delivery: received}
		d.prepare(mainQueue)
		now := time.Now()
		d.firstFailed = now
		exits := map[string]*Publishing{"quarantine": c.quarantined(d, cause{reason: retry.ReasonMaxAttempts, class: retry.Unknown, err: failure, at: now})}
		if c.Road.atBroker() {
			exits["lap"] = c.lapCopy(d, mainQueue+".retry", d.attempt)
		} else {
			exits["tail"] = c.lapCopy(d, mainQueue, d.attempt)
		}
		for exit, p := range exits {
			onWire := *p
			if err := fitForWire(&onWire); err != nil {
				t.Errorf("%s, %s: %v", road, exit, err)
			}
			if size := headersSize(p.Headers); size > maxHeaders+(16<<10) {
				t.Errorf("%s, %s: headers of %d bytes", road, exit, size)
			}
			if !bytes.Equal(p.Body, body) || p.MessageId != received.MessageId || p.ContentType != received.ContentType {
				t.Errorf("%s, %s: body or properties were changed", road, exit)
			}
			for _, name := range []string{HeaderOriginQueue, HeaderOriginExchange, HeaderOriginRoutingKey} {
				if _, ok := shortText(p.Headers, name); !ok {
					t.Errorf("%s, %s: %s = %v", road, exit, name, p.Headers[name])
				}
			}
			for name := range p.Headers {
				if isDeathHeader(name) || name == "CC" || name == "BCC" {
					t.Errorf("%s, %s: %s was kept", road, exit, name)
				}
			}
		}
	}
	if len(before) != len(received.Headers) || !bytes.Equal(body, received.Body) {
		t.Errorf("the delivery itself was changed")
	}
}

// known are the names that the code looks at.
var known = []string{
	HeaderLastError, HeaderErrorClass, HeaderParkReason, HeaderAttempts, HeaderOriginQueue, HeaderOriginExchange, HeaderOriginRoutingKey,
	HeaderFirstFailedAt, HeaderParkedAt, HeaderService, HeaderReplayCount, HeaderReplayedAt, HeaderDropped, headerAttempts, headerCorrelation,
	"x-death", "x-first-death-queue", "x-first-death-reason", "CC", "BCC", "traceparent", "MT-Reason", "queue", "reason", "count", "exchange", "routing-keys", "time",
}

func anyText(longest int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		unit := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"k", "é", "\x00", "\xff", mainQueue, "rejected", "2026-11-30T10:00:00Z"})).Draw(t, "unit")
		times := rapid.SampledFrom([]int{1, 1, 1, 2, 255, 256, 300, longest}).Draw(t, "times")
		return cutBytes(strings.Repeat(unit, times), longest)
	})
}

func cutBytes(s string, limit int) string { return s[:min(len(s), limit)] }

func anyName(longest int) *rapid.Generator[string] {
	return rapid.OneOf(rapid.SampledFrom(known), anyText(longest))
}

// anyValue is a header's value, also one that AMQP does not know.
func anyValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		anyText(125 << 10).AsAny(),
		rapid.Int64().AsAny(),
		rapid.SampledFrom([]any{
			nil, true, byte(1), int8(-1), int16(1), int32(1), 1, uint16(1), uint32(1), uint64(1), float32(1), math.NaN(), amqp.Decimal{Scale: 2, Value: 1},
			time.Time{}, time.Unix(math.MaxInt32, 0), []byte("x"), []string{"x"}, map[string]any{"a": 1}, struct{}{},
		}),
	}
	if depth > 0 {
		kinds = append(kinds,
			rapid.SliceOfN(anyValue(depth-1), 0, 4).AsAny(),
			rapid.Map(rapid.MapOfN(anyName(300), anyValue(depth-1), 0, 6), func(m map[string]any) any { return amqp.Table(m) }))
	}
	return rapid.OneOf(kinds...)
}

func TestAnyDeliveryCanLeave(t *testing.T) {
	t.Parallel()
	consumers := roads(t)
	rapid.Check(t, func(t *rapid.T) {
		short := anyText(maxShort)
		received := amqp.Delivery{
			Headers: rapid.MapOfN(anyName(300), anyValue(3), 0, 12).Draw(t, "headers"),
			Body:    rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
			// What came through a broker has such addresses and properties, whatever is in them.
			Exchange: short.Draw(t, "exchange"), RoutingKey: short.Draw(t, "key"), MessageId: short.Draw(t, "id"), ContentType: short.Draw(t, "type"),
		}
		checkExits(t, consumers, received, errors.New(anyText(100<<10).Draw(t, "error")))
	})
}

func FuzzExitFitsTheWire(f *testing.F) {
	consumers := roads(f)
	f.Add(HeaderOriginRoutingKey, "k", uint(300), uint8(0), int64(0), "e", "k", []byte("{}"))
	f.Add(HeaderOriginRoutingKey, "k", uint(300), uint8(0), int64(1), "e", "k", []byte("{}")) // beside a mark of ours
	f.Add(HeaderOriginQueue, "q", uint(125<<10), uint8(0), int64(2), "", mainQueue, []byte("x"))
	f.Add("routing-keys", "k", uint(300), uint8(3), int64(0), "e", "", []byte(nil)) // in a death
	f.Add("x-large", "é", uint(70<<10), uint8(2), int64(-1), "e", "k", []byte{0xff})
	f.Add(strings.Repeat("n", 300), "v", uint(1), uint8(1), int64(3), "e", "k", []byte("[]"))
	f.Add(HeaderFirstFailedAt, "9999-12-31T23:59:59Z", uint(1), uint8(0), int64(1), "e", "k", []byte("{}"))
	f.Add(HeaderReplayedAt, "2026-11-30T10:00:00.0", uint(1), uint8(0), int64(1), "e", "k", []byte("{}"))
	f.Fuzz(func(t *testing.T, name, unit string, times uint, shape uint8, number int64, exchange, key string, body []byte) {
		times = min(times, uint((125<<10)/max(1, len(unit))))
		value := any(strings.Repeat(unit, int(times)))
		headers := amqp.Table{headerAttempts: number, "x-foreign": number}
		switch shape % 6 {
		case 0:
			headers[name] = value
		case 1:
			headers[name] = amqp.Table{name: value}
		case 2:
			headers[name] = []any{value, nil, number}
		case 3: // a lap of the broker's
			death := amqp.Table{"queue": mainQueue, "reason": "rejected", "count": number, "exchange": exchange, "routing-keys": []any{key}, "time": time.Unix(number, 0)}
			death[name] = []any{value}
			headers = amqp.Table{"x-death": []any{death}, "x-first-death-queue": mainQueue, "x-first-death-reason": "rejected"}
		case 4: // many
			for i := range min(times, 4000) {
				headers[fmt.Sprint(cutBytes(name, 200), i)] = unit
			}
		case 5:
			headers[name] = uint64(number) // AMQP has no such type
		}
		checkExits(t, consumers, amqp.Delivery{Headers: headers, Exchange: cutBytes(exchange, maxShort), RoutingKey: cutBytes(key, maxShort), Body: body}, errors.New(unit))
	})
}

// Whatever the publisher may still refuse, for a reason that nobody has thought of, leaves with nothing that could be refused.
func TestWhatThePublisherRefusesLeavesBare(t *testing.T) {
	t.Parallel()
	for road, c := range roads(t) {
		a := &attachment{consumer: c}
		var ds []*delivery
		long := strings.Repeat("x", 300)
		for tag := range uint64(3) {
			d := &delivery{Delivery: amqp.Delivery{DeliveryTag: tag, Body: []byte("body"), ContentType: long, AppId: long, MessageId: "m", Headers: amqp.Table{HeaderReplayCount: int8(2)}}}
			d.prepare(mainQueue)
			d.copy, d.verdict = c.quarantined(d, cause{reason: retry.ReasonValidation, class: retry.Validation, err: errors.New("no"), at: time.Now()}), quarantineNow
			d.copy.RoutingKey = long
			if c.Road.atBroker() && tag == 2 {
				d.copy, d.verdict = c.lapCopy(d, mainQueue+".retry", d.attempt), lapByCopy
			}
			a.ledger.take(tag)
			ds = append(ds, d)
		}
		refused := publishError(errors.Join(
			errors.Join(&Unpublishable{Index: 0, Err: retry.Wrap(retry.Validation, errors.New("odd"))}, &Unpublishable{Index: 2, Err: errors.New("odder")}),
			errors.New("no confirm")))
		a.copiesPublished(publishedCopies{deliveries: ds, outcomes: make([]Outcome, 3), err: refused})
		if len(a.outgoing) != 2 || a.outgoing[0] != ds[0] || a.outgoing[1] != ds[2] || len(a.unsent) != 1 || a.unsent[0] != ds[1] {
			t.Fatalf("%s: %d leave, %d wait", road, len(a.outgoing), len(a.unsent))
		}
		for _, d := range a.outgoing {
			if err := fitForWire(d.copy); err != nil || string(d.copy.Body) != "body" || d.copy.MessageId != "m" || d.copy.DeliveryMode != amqp.Persistent || !d.copy.Mandatory {
				t.Errorf("%s: %v, %+v", road, err, d.copy)
			}
		}
		key, first := mainQueue, ds[0].copy
		if c.Road.QuarantineKey != "" {
			key = c.Road.QuarantineKey
		}
		if first.Exchange != c.Road.QuarantineExchange || first.RoutingKey != key {
			t.Errorf("%s: leaves to %q with key %q", road, first.Exchange, first.RoutingKey)
		}
		if first.Headers[HeaderParkReason] != retry.ReasonValidation || first.Headers[HeaderReplayCount] != int64(2) || first.Headers[HeaderAttempts] != int64(1) {
			t.Errorf("%s: headers %v", road, first.Headers)
		}
		if last := ds[2].copy; ds[2].verdict == lapByCopy && (last.Exchange != "" || last.RoutingKey != mainQueue+".retry" || last.Headers[headerAttempts] != int64(1)) {
			t.Errorf("%s: laps to %q with key %q, %v", road, last.Exchange, last.RoutingKey, last.Headers)
		}
		ds = a.outgoing
		a.outgoing = nil
		a.copiesPublished(publishedCopies{deliveries: ds[:1], outcomes: make([]Outcome, 1), err: &Unpublishable{Err: errors.New("still")}})
		if len(a.outgoing) != 0 || len(a.unsent) != 2 {
			t.Errorf("%s: is tried again at once, without end", road)
		}
	}
}

// A message that was replayed is as old as its replay, also after a lap as a reduced copy: with its old age back it would be given up
// as too old on the next attempt.
func TestABareCopyKeepsTheTimeOfItsReplay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	replayed := now.Add(-time.Minute)
	for road, c := range roads(t) {
		d := &delivery{Delivery: amqp.Delivery{
			Body:    []byte(`{"messageId":"m","type":"T","occurredAt":"2020-01-01T00:00:00Z","data":{}}`),
			Headers: amqp.Table{HeaderReplayedAt: stamp(replayed), HeaderReplayCount: int64(1)},
		}}
		d.prepare(mainQueue)
		d.firstFailed, d.verdict = now, lapByCopy
		d.copy = c.lapCopy(d, mainQueue+".retry", d.attempt)
		bare := c.bareCopy(d)
		back := &delivery{Delivery: amqp.Delivery{Body: bare.Body, Headers: bare.Headers}}
		back.prepare(mainQueue)
		if age := back.age(now).Round(time.Second); age != time.Minute {
			t.Errorf("%s: it comes back %s old, headers %v", road, age, bare.Headers)
		}
	}
}
