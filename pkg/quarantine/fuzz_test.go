package quarantine

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	amqp "github.com/rabbitmq/amqp091-go"
)

// choices makes a delivery of any shape out of a fuzzer's bytes: each is a choice, and when they are used up all further ones are 0.
type choices struct{ left []byte }

func (c *choices) of(n int) int {
	if len(c.left) == 0 {
		return 0
	}
	b := c.left[0]
	c.left = c.left[1:]
	return int(b) % n
}

func (c *choices) bytes() []byte {
	n := min(c.of(24), len(c.left))
	taken := c.left[:n]
	c.left = c.left[n:]
	return taken
}

func (c *choices) number() uint64 {
	var eight [8]byte
	n := min(1+c.of(8), len(c.left))
	copy(eight[8-n:], c.left[:n])
	c.left = c.left[n:]
	return binary.BigEndian.Uint64(eight[:])
}

// time is one as the client library reads it: any 64 bits of seconds.
func (c *choices) time() time.Time { return time.Unix(int64(c.number()), 0) }

var texts = []string{lot, work0, "expired", "rejected", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59", "base64:bv8=", "n\xff", "n\xfe", "", "a\x00\u202e", "é"}

func (c *choices) text() string {
	if c.of(3) == 0 {
		return string(c.bytes())
	}
	return texts[c.of(len(texts))]
}

var headerNames = []string{"x-death", "x-park-reason", "x-parked-at", "x-first-failed-at", "x-last-error", "x-origin-queue", "x-replay-count", "queue", "reason", "count",
	"time", "routing-keys", "exchange"}

func (c *choices) value(depth int) any {
	switch c.of(14) {
	case 0:
		return c.text()
	case 1:
		return c.time()
	case 2:
		return c.bytes()
	case 3:
		return math.Float64frombits(c.number())
	case 4:
		return math.Float32frombits(uint32(c.number()))
	case 5:
		return amqp.Decimal{Scale: uint8(c.of(256)), Value: int32(c.number())}
	case 6:
		return int64(c.number())
	case 7:
		return []any{nil, true, int8(-1), uint8(2), int16(-3), uint16(4), int32(-5), uint32(6), struct{}{}}[c.of(9)]
	case 8:
		return amqp.Table{"queue": c.text(), "reason": c.text(), "count": int64(1), "time": c.time(), "exchange": c.text(), "routing-keys": []any{c.text()}}
	case 9, 10:
		if depth > 0 {
			return c.table(depth - 1)
		}
	case 11, 12, 13:
		list := []any{}
		for range c.of(4) {
			if depth > 0 {
				list = append(list, c.value(depth-1))
			}
		}
		return list
	}
	return nil
}

func (c *choices) table(depth int) amqp.Table {
	table := amqp.Table{}
	for range c.of(6) {
		name := headerNames[c.of(len(headerNames))]
		if c.of(2) == 0 {
			name = c.text()
		}
		table[name] = c.value(depth)
	}
	return table
}

func (c *choices) delivery() *amqp.Delivery {
	d := &amqp.Delivery{
		Headers: c.table(3), Timestamp: c.time(), ContentType: c.text(), ContentEncoding: c.text(), DeliveryMode: uint8(c.of(256)), Priority: uint8(c.of(256)),
		CorrelationId: c.text(), ReplyTo: c.text(), Expiration: c.text(), MessageId: c.text(), Type: c.text(), UserId: c.text(), AppId: c.text(),
		Exchange: c.text(), RoutingKey: c.text(),
	}
	if d.Body = c.left; c.of(2) == 0 {
		d.Body = fmt.Appendf(nil, `{"messageId":%q,"type":%q,"data":{"transferId":%q}}`, c.text(), c.text(), c.text())
	}
	return d
}

// Whatever lies in a quarantine, it can be listed, shown and written into the audit, with all of its headers: one message must not stand in the
// way of the others.
func FuzzParked(f *testing.F) {
	milliseconds := []byte{7, 0, 0, 1, 0x9a, 0xd6, 0x9a, 0xe8, 0} // where seconds belong: the year 57,882
	f.Add([]byte{})
	f.Add(append([]byte{0}, milliseconds...))                                           // as the timestamp
	f.Add([]byte{2, 0, 0, 1, 7, 7, 0, 0, 0, 1, 8, 7, 0})                                // n\xff and n\xfe as header names
	f.Add([]byte{3, 0, 0, 1, 7, 7, 0, 0, 0, 1, 8, 7, 0, 0, 0, 1, 6, 7, 0})              // and the name that the first of them gets
	f.Add(append([]byte{1, 0, 1, 13, 1, 8, 1, 0, 1, 2}, milliseconds...))               // as the time of a death
	f.Add([]byte{1, 2, 1, 0, 1, 4})                                                     // parked in the year 10,000, in UTC
	f.Add([]byte{1, 0, 1, 3, 7, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0})                          // not a number
	f.Add([]byte{1, 7, 1, 9, 2, 0, 1, 7, 7, 0, 0, 1, 8, 7, 0, 7, 128, 0, 0, 0, 0, 255}) // tables in tables
	f.Fuzz(func(t *testing.T, data []byte) {
		d := (&choices{data}).delivery()
		p := read(lot, d)
		// As the stream and the answers of the service write them.
		item, err := json.Marshal(p.Item, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
		if err != nil || !jsontext.Value(item).IsValid() {
			t.Fatalf("it cannot be listed: %v %s", err, item)
		}
		var listed Item
		if err := json.Unmarshal(item, &listed); err != nil {
			t.Fatalf("nobody can read the list: %v %s", err, item)
		}
		found := wholeOf(p)
		shown, err := json.Marshal(found, jsontext.AllowInvalidUTF8(true))
		if err != nil || !jsontext.Value(shown).IsValid() {
			t.Fatalf("it cannot be shown: %v %s", err, shown)
		}
		headers, properties, err := written(p)
		if err != nil || !jsontext.Value(headers).IsValid() || !jsontext.Value(properties).IsValid() {
			t.Fatalf("the audit cannot hold it: %v %s %s", err, headers, properties)
		}
		var kept map[string]jsontext.Value
		if err := json.Unmarshal([]byte(headers), &kept); err != nil || len(kept) != len(d.Headers) {
			t.Fatalf("of %d headers there are %d: %v %s", len(d.Headers), len(kept), err, headers)
		}
	})
}
