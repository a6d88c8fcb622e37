package messaging

import (
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

const mainQueue = "main"

func entry(queue, reason string, count any) amqp.Table {
	return amqp.Table{
		"queue": queue, "reason": reason, "count": count, "exchange": "events", "routing-keys": []any{"some.key", "cc"},
		"time": time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC),
	}
}

func own(more amqp.Table) amqp.Table {
	headers := amqp.Table{"x-first-death-reason": "rejected", "x-first-death-queue": mainQueue, "x-first-death-exchange": "events"}
	for name, value := range more {
		headers[name] = value
	}
	return headers
}

// returned is a delivery as the retry queue sends it back.
func returned(headers amqp.Table) *amqp.Delivery {
	return &amqp.Delivery{Headers: headers, RoutingKey: mainQueue}
}

func TestWhatCanBeNoAddressIsNotKnown(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 256)
	death := func(exchange string, keys ...any) amqp.Table {
		e := entry(mainQueue, "rejected", int64(1))
		e["exchange"], e["routing-keys"] = exchange, keys
		return own(amqp.Table{"x-death": []any{e}})
	}
	mark := func(headers amqp.Table) amqp.Table {
		headers["x-replay-count"] = int64(1)
		return headers
	}
	delivered := origin{"", "", mainQueue, true}
	for name, c := range map[string]struct {
		headers amqp.Table
		want    origin
	}{
		"nothing said":             {nil, delivered},
		"longest key in a death":   {death("e", long[1:]), origin{"", "e", long[1:], true}},
		"long key in a death":      {death("e", long), delivered},
		"long exchange in a death": {death(long, "k"), delivered},
		"no key in a death":        {death("e"), delivered},
		"a death somebody wrote":   {amqp.Table{"x-death": []any{entry(mainQueue, "rejected", int64(1))}}, delivered},
		"longest of ours":          {mark(amqp.Table{"x-origin-queue": long[1:], "x-origin-exchange": long[1:], "x-origin-routing-key": long[1:]}), origin{long[1:], long[1:], long[1:], true}},
		"long key of ours":         {mark(amqp.Table{"x-origin-queue": "q", "x-origin-exchange": "e", "x-origin-routing-key": long}), origin{"q", "", mainQueue, true}},
		"long exchange of ours":    {mark(amqp.Table{"x-origin-exchange": long, "x-origin-routing-key": "k"}), delivered},
		"long queue of ours":       {mark(amqp.Table{"x-origin-queue": long}), delivered},
		"no text":                  {mark(amqp.Table{"x-origin-queue": int64(1), "x-origin-exchange": "e", "x-origin-routing-key": nil}), delivered},
		"foreign, without a mark":  {amqp.Table{"x-origin-queue": "q", "x-origin-exchange": "e", "x-origin-routing-key": "k"}, delivered},
		"long key of ours, then death": {mark(func() amqp.Table {
			h := death("e", "k")
			h["x-origin-exchange"], h["x-origin-routing-key"] = "x", long
			return h
		}()), origin{"", "e", "k", true}},
	} {
		if c.want.queue == "" {
			c.want.queue = mainQueue
		}
		d := delivery{Delivery: *returned(c.headers)}
		d.prepare(mainQueue)
		if got := d.origin(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestTraceParentIsOneOrNothing(t *testing.T) {
	t.Parallel()
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for value, want := range map[any]string{
		good: good, good[:54]: "", good + "-": "", "": "", nil: "", int64(1): "", strings.Repeat("x", 60<<10): "",
		strings.Replace(good, "0af", "0AF", 1): "", strings.Replace(good, "0af", "0\x00f", 1): "", strings.Replace(good, "-01", "001", 1): "", good[:10] + "-" + good[11:]: "",
		"ff" + good[2:]: "", good[:3] + strings.Repeat("0", 32) + good[35:]: "", good[:36] + strings.Repeat("0", 16) + good[52:]: "", "\xff" + good[1:]: "",
	} {
		d := delivery{Delivery: amqp.Delivery{Headers: amqp.Table{"traceparent": value}}}
		d.prepare(mainQueue)
		if d.msg.TraceParent != want {
			t.Errorf("%.60v: %q", value, d.msg.TraceParent)
		}
	}
	if got := traceID(good); got != "0af7651916cd43dd8448eb211c80319c" || traceID("") != "" {
		t.Errorf("trace id %q", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	ago := func(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }
	for name, c := range map[string]struct {
		d    delivery
		want time.Duration
	}{
		"nothing tells":                {delivery{}, 0},
		"the body first":               {delivery{msg: Message{Envelope: Envelope{OccurredAt: ago(1)}}, Delivery: amqp.Delivery{Timestamp: ago(2)}}, time.Hour},
		"then our header":              {delivery{Delivery: amqp.Delivery{Timestamp: ago(2), Headers: amqp.Table{HeaderFirstFailedAt: stamp(ago(3))}}}, 3 * time.Hour},
		"then the timestamp":           {delivery{Delivery: amqp.Delivery{Timestamp: ago(2)}, past: history{firstDeath: ago(5)}}, 2 * time.Hour},
		"then the first death":         {delivery{past: history{firstDeath: ago(5)}}, 5 * time.Hour},
		"a replay starts anew":         {delivery{msg: Message{Envelope: Envelope{OccurredAt: ago(9)}}, Delivery: amqp.Delivery{Headers: amqp.Table{HeaderReplayedAt: stamp(ago(1))}}}, time.Hour},
		"an absurd time is ignored":    {delivery{Delivery: amqp.Delivery{Timestamp: time.Unix(1, 0)}, past: history{firstDeath: ago(5)}}, 5 * time.Hour},
		"so is one in the future":      {delivery{Delivery: amqp.Delivery{Timestamp: now.Add(25 * time.Hour)}, past: history{firstDeath: ago(5)}}, 5 * time.Hour},
		"clocks that differ a bit":     {delivery{Delivery: amqp.Delivery{Timestamp: now.Add(time.Minute)}}, 0},
		"a header that makes no sense": {delivery{Delivery: amqp.Delivery{Headers: amqp.Table{HeaderFirstFailedAt: int64(3)}, Timestamp: ago(2)}}, 2 * time.Hour},
	} {
		if got := c.d.age(now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestRepublishableDropsWhatBrokersCountAndRouteBy(t *testing.T) {
	t.Parallel()
	kept := republishable(amqp.Table{
		"x-death": []any{}, "x-first-death-queue": "q", "x-last-death-reason": "r", "x-delivery-count": int64(1), "CC": []any{"x"}, "BCC": []any{"y"},
		"Banking-Attempts": int64(1), "Banking-Correlation": "#1", "traceparent": "t", "x-foreign": int32(1), "x-replay-count": int64(1),
	})
	if len(kept) != 3 || kept["traceparent"] != "t" || kept["x-foreign"] != int32(1) || kept["x-replay-count"] != int64(1) {
		t.Errorf("kept %v", kept)
	}
}

func TestShrinkDropsTheLargestAndSaysSo(t *testing.T) {
	t.Parallel()
	headers := amqp.Table{"small": "s", "b": strings.Repeat("b", 30<<10), "a": strings.Repeat("a", 40<<10), "odd": uint64(1), "c": []any{strings.Repeat("c", 20<<10)}}
	shrink(headers)
	if headers[HeaderDropped] != "odd, a, b" || headers["small"] != "s" || headers["c"] == nil || len(headers) != 3 {
		t.Errorf("dropped %v, kept %d", headers[HeaderDropped], len(headers))
	}
	fitting := amqp.Table{"a": strings.Repeat("a", 40<<10)}
	shrink(fitting)
	if len(fitting) != 1 || fitting["a"] == nil {
		t.Error("headers that fit were touched")
	}
}

// Only what we dropped is told, but all of it: on this lap and on those before.
func TestDroppedHeadersAreTold(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300) // AMQP cannot carry such a name
	for name, c := range map[string]struct {
		received amqp.Table
		want     any
	}{
		"nothing":                 {amqp.Table{"x": "y"}, nil},
		"now":                     {amqp.Table{long: "y"}, long},
		"on a lap before":         {amqp.Table{headerAttempts: int64(1), HeaderDropped: "a, b"}, "a, b"},
		"both":                    {amqp.Table{headerAttempts: int64(1), HeaderDropped: "a, b", long: "y"}, "a, b, " + long},
		"by somebody else":        {amqp.Table{HeaderDropped: "a, b"}, nil},
		"by somebody else and us": {amqp.Table{HeaderDropped: "a, b", long: "y"}, long},
		"what is no text":         {amqp.Table{headerAttempts: int64(1), HeaderDropped: int64(7)}, nil},
		"what is no plain text":   {amqp.Table{headerAttempts: int64(1), HeaderDropped: "a\xff\n"}, "a\uFFFD "},
		"very much":               {amqp.Table{headerAttempts: int64(1), HeaderDropped: strings.Repeat("a", 5000)}, strings.Repeat("a", 1<<10)},
	} {
		if got := withOurs(c.received, amqp.Table{headerAttempts: int64(2)})[HeaderDropped]; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestPlainText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"as it is", 100, "as it is"},
		{"a\nb\x00c\x7fd\u0085e", 100, "a b c d e"},
		{"\xffx\xc3", 100, "\uFFFDx\uFFFD"},
		{"éé", 3, "é"},
		{"\xff\xff", 4, "\uFFFD"},
		{"", 0, ""},
	} {
		if got := plainText(c.in, c.limit); got != c.want {
			t.Errorf("plainText(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}
