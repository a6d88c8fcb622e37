package messaging

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// source makes headers of any shape out of a fuzzer's bytes: each byte is a choice, and when they are used up all further
// ones are 0. So small changes of the bytes are small changes of the headers, which is what a fuzzer needs to find its way.
type source struct{ left []byte }

func (s *source) choose(n int) int {
	if len(s.left) == 0 {
		return 0
	}
	b := s.left[0]
	s.left = s.left[1:]
	return int(b) % n
}

func (s *source) take(n int) []byte {
	n = min(n, len(s.left))
	taken := s.left[:n]
	s.left = s.left[n:]
	return taken
}

func (s *source) number() int64 {
	switch s.choose(4) {
	case 0:
		return int64(s.choose(256))
	case 1:
		return int64(-s.choose(256))
	case 2:
		return math.MaxInt64 - int64(s.choose(3))
	}
	var eight [8]byte
	copy(eight[:], s.take(8))
	return int64(binary.BigEndian.Uint64(eight[:]))
}

// words are texts that mean something where headers are read.
var words = []string{mainQueue, "rejected", "delivery_limit", "expired", "maxlen", "2026-11-30T10:00:00Z", "9999-12-31T23:59:59Z", "", "\xff", "é\x00"}

func (s *source) text() string {
	switch s.choose(4) {
	case 0, 1:
		return words[s.choose(len(words))]
	case 2:
		return string(s.take(s.choose(32)))
	}
	return strings.Repeat(string(s.take(1+s.choose(3))), s.choose(256)<<s.choose(9)) // up to some 390 KB
}

func (s *source) name() string {
	if s.choose(4) == 0 {
		return s.text()
	}
	return known[s.choose(len(known))]
}

// value is one that a client library reads from the wire, or, rarely, one that it cannot write.
func (s *source) value(depth int) any {
	switch s.choose(16) {
	case 0, 1:
		return s.text()
	case 2:
		return s.number()
	case 3:
		return int32(s.number())
	case 4:
		return int16(s.number())
	case 5:
		return int8(s.number())
	case 6:
		return byte(s.number())
	case 7:
		return nil
	case 8:
		return []byte(s.text())
	case 9:
		return time.Unix(s.number()%(1<<40), 0).UTC()
	case 10:
		return []any{true, 1.5, float32(2), amqp.Decimal{Scale: 2, Value: 7}, uint16(8), uint32(9), 10, uint64(11), struct{}{}}[s.choose(9)]
	case 11, 12:
		if depth > 0 {
			return s.array(depth - 1)
		}
	case 13, 14:
		if depth > 0 {
			return s.table(depth - 1)
		}
	}
	return s.death()
}

func (s *source) array(depth int) []any {
	array := []any{}
	for range s.choose(5) {
		array = append(array, s.value(depth))
	}
	return array
}

func (s *source) table(depth int) amqp.Table {
	table := amqp.Table{}
	for range s.choose(8) {
		table[s.name()] = s.value(depth)
	}
	return table
}

// death is an entry of x-death, often one that a broker would write.
func (s *source) death() amqp.Table {
	death := amqp.Table{"queue": words[s.choose(2)], "reason": words[1+s.choose(4)], "count": s.number(), "exchange": "events", "routing-keys": []any{"key"}}
	if s.choose(3) == 0 {
		death[s.name()] = s.value(0)
	}
	return death
}

// headers are those of a delivery.
func (s *source) headers() amqp.Table {
	headers := s.table(3)
	switch s.choose(4) {
	case 0:
		return headers
	case 1:
		headers["x-death"] = s.value(2)
	default:
		deaths := []any{}
		for range s.choose(6) {
			deaths = append(deaths, s.death())
		}
		headers["x-death"] = deaths
	}
	if s.choose(2) == 0 {
		headers["x-first-death-queue"], headers["x-first-death-reason"] = mainQueue, "rejected"
	}
	return headers
}

// Whatever somebody writes into the headers, the attempts they tell of are a number that can be counted on from, and come from deaths in
// this queue or from a mark of ours.
func FuzzReadDeaths(f *testing.F) {
	for _, seed := range [][]byte{nil, {0}, {1, 200, 3}, {1, 1, 0, 12, 3, 2, 0, 0, 3, 0, 0, 2, 1}, {0, 2, 2, 0, 0, 0, 3, 1, 0, 0, 0, 255, 1, 0}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		headers := (&source{data}).headers()
		before := (&source{data}).headers()
		deaths, malformed := ReadDeaths(headers)
		var own uint64
		for _, d := range deaths {
			if d.Count < 1 {
				t.Fatalf("a death that was %d times", d.Count)
			}
			if d.Queue == mainQueue && (d.Reason == "rejected" || d.Reason == "delivery_limit") {
				own += uint64(min(d.Count, 1<<30))
			}
		}
		var h history
		for _, d := range []*amqp.Delivery{{Exchange: "events", RoutingKey: "key", Headers: headers}, returned(headers)} {
			h = readHistory(d, mainQueue)
			if n, ok := integer(headers[headerAttempts]); ok && n >= 0 && n <= mostSpent {
				if lappedAsCopy(d, mainQueue) && (h.spent != n || h.hearsay != 0) || !lappedAsCopy(d, mainQueue) && h.hearsay != n || h.rejectable {
					t.Fatalf("our own header says %d: %+v", n, h)
				}
			} else if told := uint64(h.spent + h.hearsay); told > mostSpent || told != 0 && told != own || h.spent > 0 && h.hearsay > 0 {
				t.Fatalf("the deaths tell of %d attempts: %+v", own, h)
			}
			if d.Exchange != "" && anyDeathHeader(headers) && (h.rejectable || h.lapped || !h.firstDeath.IsZero()) {
				t.Fatalf("the deaths are not the broker's, but believed: %+v", h)
			}
		}
		if malformed != nil && (!h.nonsense || h.rejectable) {
			t.Fatalf("x-death is malformed (%v), but: %+v", malformed, h)
		}
		if h.rejectable && anyDeathHeader(headers) && !h.origin.known {
			t.Fatal("a lap of the broker's would lose its origin")
		}
		if len(h.origin.exchange) > maxShort || len(h.origin.routingKey) > maxShort || len(h.origin.queue) > maxShort {
			t.Fatalf("an address of AMQP cannot be so long: %+v", h.origin)
		}
		d := delivery{Delivery: *returned(headers)}
		d.Body = []byte(`{"messageId":"m","type":"T"}`)
		d.prepare(mainQueue)
		if d.attempt != int(h.spent)+1 || d.attempt < 1 || d.attempt > mostSpent+1 {
			t.Fatalf("attempt %d after %d", d.attempt, h.spent)
		}
		if age := d.age(time.Now()); age < 0 || age > 100*365*24*time.Hour {
			t.Fatalf("an age of %v", age)
		}
		if !reflect.DeepEqual(headers, before) {
			t.Fatal("the headers were changed")
		}
	})
}

// Whatever headers a message came with: those it leaves with are ones that AMQP can carry, ours are among them with our values, and none
// is left by which a broker would count or route.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][]byte{nil, {0}, {7, 1, 12, 0, 1, 1, 3, 3, 2, 255, 8}, {5, 1, 3, 3, 1, 200, 8, 4, 255, 10, 3, 9, 11, 0, 0}, {7, 1, 10, 7, 1, 11, 2, 1, 1, 8}} {
		f.Add(seed, "handler failed")
	}
	f.Add([]byte{3, 1, 0, 3, 2, 255, 8}, "\xff\x00\n"+strings.Repeat("é", maxLastError))
	f.Fuzz(func(t *testing.T, data []byte, cause string) {
		s := &source{data}
		received := s.headers()
		before := (&source{data}).headers()
		ours := amqp.Table{
			HeaderLastError: plainText(cause, maxLastError), HeaderErrorClass: string(retry.Unknown), HeaderAttempts: s.number(), headerAttempts: s.number(),
			HeaderOriginQueue: mainQueue, HeaderParkedAt: stamp(time.Unix(s.number()%(1<<32), 0)), "MT-Fault-Message": plainText(cause, maxFault),
		}
		wanted := amqp.Table{}
		for name, value := range ours {
			wanted[name] = value
		}
		headers := withOurs(received, ours)
		p := Publishing{Publishing: amqp.Publishing{Headers: headers, MessageId: cause, CorrelationId: cause, Type: cause}}
		if err := fitForWire(&p); err != nil {
			t.Fatalf("it cannot leave: %v", err)
		}
		if size := headersSize(headers); size > maxHeaders+(16<<10) || size > maxFrame {
			t.Fatalf("headers of %d bytes", size)
		}
		for _, property := range []string{p.MessageId, p.CorrelationId, p.Type} {
			if len(property) > maxShort || !strings.HasPrefix(cause, property) || utf8.ValidString(cause) && !utf8.ValidString(property) {
				t.Fatalf("a property became %q", property)
			}
		}
		for name, value := range wanted {
			if !reflect.DeepEqual(headers[name], value) {
				t.Fatalf("%s is %v, want %v", name, headers[name], value)
			}
			if text, ok := value.(string); ok && (!utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' })) {
				t.Fatalf("%s is no plain text: %q", name, text)
			}
		}
		if dropped := headers[HeaderDropped]; dropped != nil && dropped != plainText(text(headers, HeaderDropped), 1<<10) {
			t.Fatalf("%s is %q", HeaderDropped, dropped)
		}
		for name, value := range headers {
			if isDeathHeader(name) || slices.Contains([]string{"CC", "BCC", "x-delivery-count", "x-acquired-count", headerCorrelation}, name) {
				t.Fatalf("%s was kept", name)
			}
			_, mine := wanted[name]
			if kept := reflect.DeepEqual(value, before[name]); !mine && !kept && !slices.Contains([]string{HeaderDropped, HeaderReplayCount, HeaderReplayedAt}, name) {
				t.Fatalf("%s was %v and is %v", name, before[name], value)
			}
		}
		if n, ok := integer(before[HeaderReplayCount]); ok != (headers[HeaderReplayCount] != nil) || ok && headers[HeaderReplayCount] != n {
			t.Fatalf("%s was %v and is %v", HeaderReplayCount, before[HeaderReplayCount], headers[HeaderReplayCount])
		}
		if !reflect.DeepEqual(received, before) {
			t.Fatal("the received headers were changed")
		}
	})
}
