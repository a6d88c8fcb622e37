package messaging

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	amqp "github.com/rabbitmq/amqp091-go"
)

func bare(conn net.Conn) net.Conn { return conn }

func guarded(conn net.Conn) net.Conn { return &guard{Conn: conn} }

// unreadable are entries that the library closes its connection for, each with its last neighbour that it reads.
var unreadable = map[string]struct{ reads, not []byte }{
	"tables":          {header("n", nested("F", maxNesting)...), header("n", nested("F", maxNesting+1)...)},
	"arrays":          {header("n", nested("A", maxNesting)...), header("n", nested("A", maxNesting+1)...)},
	"both":            {header("n", nested("AF", maxNesting)...), header("n", nested("FA", maxNesting+1)...)},
	"far too deep":    {header("n", nested("F", 1)...), header("n", nested("F", 100)...)},
	"a deep neighbor": {header("n", sized('A', append([]byte{'V'}, nested("A", maxNesting-1)...))...), header("n", sized('A', append([]byte{'V'}, nested("A", maxNesting)...))...)},
	"a long array":    {header("n", sized('A', bytes.Repeat([]byte{'V'}, maxEntries))...), header("n", sized('A', bytes.Repeat([]byte{'V'}, maxEntries+1))...)},
	"a wide table":    {header("n", sized('F', wide(maxEntries))...), header("n", sized('F', wide(maxEntries+1))...)},
	"a strange type":  {header("n", 'b', 1), header("n", 'L', 0, 0, 0, 0, 0, 0, 0, 1)},
	"a cut text":      {header("n", sized('S', []byte("text"))...), header("n", 'S', 0, 0, 0, 99, 't')},
}

// wide are the entries of a table with so many.
func wide(n int) (table []byte) {
	for i := range n {
		table = append(table, header(string(rune('a'+i%26))+string(rune('a'+i/26%26))+string(rune('a'+i/676)), 'V')...)
	}
	return table
}

// An upgrade of the library may read more or less than this one. Then the guard's limits want to be moved.
func TestTheLibraryReadsSoFarAndNoFarther(t *testing.T) {
	t.Parallel()
	for name, c := range unreadable {
		if d, err := newLibrary(t, bare).get(headerFrame(c.reads)); err != nil || len(d.Headers) != 1 || d.MessageId != "id" {
			t.Errorf("%s: the library does not read %v: %v", name, d.Headers, err)
		}
		if _, err := newLibrary(t, bare).get(headerFrame(c.not)); !errors.Is(err, amqp.ErrClosed) && err == nil {
			t.Errorf("%s: the library reads on", name)
		}
	}
	large := func(size int) []byte {
		return headerFrame(header("n", sized('S', bytes.Repeat([]byte{'x'}, size-len(headerFrame(header("n", sized('S', nil)...)))))...))
	}
	if d, err := newLibrary(t, bare).get(large(frameProposed)); err != nil || len(d.Headers) != 1 {
		t.Errorf("the library does not read a frame of the negotiated size: %v", err)
	}
	if _, err := newLibrary(t, bare).get(large(frameProposed + 1)); err == nil {
		t.Error("the library reads a frame that is larger than negotiated")
	}
}

func TestGuardTakesOutWhatTheLibraryCannotRead(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, guarded)
	for name, c := range unreadable {
		table := slices.Concat(header("before", 'I', 0, 0, 0, 7), header(HeaderUnreadable, sized('S', []byte("forged"))...), c.not)
		d, err := l.get(headerFrame(table))
		want := amqp.Table{"before": int32(7), HeaderUnreadable: "n"}
		if err != nil || !maps.Equal(d.Headers, want) || d.MessageId != "id" || d.ContentType != "json" || string(d.Body) != scriptedBody {
			t.Fatalf("%s: got %+v, error %v", name, d, err)
		}
	}
	// What stands behind it stays, unless nobody can tell where it begins.
	d, err := l.get(headerFrame(slices.Concat(header("deep", nested("F", 33)...), header("after", 't', 1), header("deeper", nested("A", 90)...))))
	if err != nil || !maps.Equal(d.Headers, amqp.Table{"after": true, HeaderUnreadable: "deep, deeper"}) {
		t.Errorf("got %v, error %v", d.Headers, err)
	}
	d, err = l.get(headerFrame(wide(maxEntries + 5)))
	if err != nil || len(d.Headers) != maxEntries || len(text(d.Headers, HeaderUnreadable)) != 6*3+5*2 {
		t.Errorf("got %d headers without %q, error %v", len(d.Headers), d.Headers[HeaderUnreadable], err)
	}
}

// A client's own header of that name says nothing: the message is as good as without it.
func TestGuardTakesOutAForgedMark(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, guarded)
	mark := header(HeaderUnreadable, sized('S', []byte("all of them"))...)
	number := header(HeaderUnreadable, 'I', 0, 0, 0, 7)
	inside := amqp.Table{HeaderUnreadable: "all of them"} // of another table it is a field like any other
	for name, c := range map[string]struct {
		table []byte
		want  amqp.Table
	}{
		"alone":       {mark, amqp.Table{}},
		"of any type": {number, amqp.Table{}},
		"twice":       {slices.Concat(mark, header("a", 't', 1), number), amqp.Table{"a": true}},
		"at the end":  {slices.Concat(header("a", 't', 1), header("b", 'V'), mark), amqp.Table{"a": true, "b": nil}},
		"inside":      {header("a", sized('F', mark)...), amqp.Table{"a": inside}},
	} {
		d, err := l.get(headerFrame(c.table))
		if err != nil || len(d.Headers)+len(c.want) > 0 && !reflect.DeepEqual(d.Headers, c.want) || d.MessageId != "id" || string(d.Body) != scriptedBody {
			t.Errorf("%s: got %+v, error %v", name, d, err)
		}
	}
	d, err := l.get(headerFrame(slices.Concat(mark, wide(maxEntries-1)))) // as many as the library reads
	if _, touched := d.Headers[HeaderUnreadable]; err != nil || touched || len(d.Headers) != maxEntries-1 {
		t.Errorf("got %d headers, %v, error %v", len(d.Headers), d.Headers[HeaderUnreadable], err)
	}
}

// The broker sends a header that has grown past the negotiated size all the same.
func TestGuardMakesHeadersFitTheFrame(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, guarded)
	text := func(n int) []byte { return sized('S', bytes.Repeat([]byte{'x'}, n)) }
	d, err := l.get(headerFrame(slices.Concat(header("large", text(90<<10)...), header("small", 't', 1), header("middle", text(30<<10)...), header("less", text(20<<10)...))))
	if err != nil || len(d.Headers) != 3 || d.Headers["small"] != true || d.Headers[HeaderUnreadable] != "large, middle" || len(d.Headers["less"].(string)) != 20<<10 {
		t.Errorf("got %d headers without %v, error %v", len(d.Headers), d.Headers[HeaderUnreadable], err)
	}
	g := &guard{}
	g.frameMax.Store(4096)
	whole := headerFrame(slices.Concat(header("deep", nested("F", 33)...), header("a", text(1500)...), header("b", text(2500)...)))
	if g.readable(whole) || len(mend(whole, g.largest())) > 4096 {
		t.Errorf("of %d bytes, %d are too many for a frame of 4096", len(whole), len(mend(whole, g.largest())))
	}
}

// stream is a connection that reads from r.
type stream struct {
	net.Conn
	io.Reader
}

func (s stream) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// ordinary are frames as a broker sends them, for so many messages with bodies of so many bytes.
func ordinary(messages, size int) []byte {
	deliver := method(1, 60, 60, slices.Concat([]byte("\x05ctag1"), make([]byte, 9), []byte("\x0ebanking.events\x18accounts.account.debited"))...)
	header := headerFrame(slices.Concat(header("traceparent", sized('S', bytes.Repeat([]byte{'0'}, 55))...), header("x-delivery-count", 'l', 0, 0, 0, 0, 0, 0, 0, 1)))
	one := slices.Concat(deliver, header, frame(frameBody, 1, bytes.Repeat([]byte{frameHeader}, size)))
	return slices.Concat(bytes.Repeat(one, messages), frame(frameHeartbeat, 0, nil))
}

// readers part a stream in every way that a network and a client may.
func readers(data []byte, random *rand.Rand) map[string]func() []byte {
	through := func(r io.Reader, buffer int) []byte {
		var out []byte
		p := make([]byte, buffer)
		for g := (&guard{Conn: stream{Reader: r}}); ; {
			n, err := g.Read(p[:1+random.IntN(buffer)])
			out = append(out, p[:n]...)
			if err != nil {
				return out
			}
		}
	}
	return map[string]func() []byte{
		"as it comes":             func() []byte { return through(bytes.NewReader(data), 4096) },
		"byte by byte":            func() []byte { return through(iotest.OneByteReader(bytes.NewReader(data)), 4096) },
		"by half":                 func() []byte { return through(iotest.HalfReader(bytes.NewReader(data)), 4096) },
		"into a small buffer":     func() []byte { return through(bytes.NewReader(data), 9) },
		"into a large buffer":     func() []byte { return through(bytes.NewReader(data), 1<<17) },
		"with its end at the end": func() []byte { return through(iotest.DataErrReader(bytes.NewReader(data)), 4096) },
	}
}

func TestGuardLetsPassAsItCame(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	edge := headerFrame(slices.Concat(header("a", nested("AF", maxNesting)...), header("b", sized('A', bytes.Repeat([]byte{'V'}, maxEntries))...)))
	deep := headerFrame(header("a", nested("F", 99)...))
	for name, data := range map[string][]byte{
		"nothing":                 nil,
		"ordinary messages":       ordinary(50, 300),
		"large and empty bodies":  slices.Concat(ordinary(1, 100_000), ordinary(3, 0)),
		"headers just readable":   slices.Concat(edge, ordinary(1, 1), edge),
		"the end of a header":     edge[:len(edge)-3],
		"the beginning of one":    append(ordinary(1, 1), frameHeader, 0),
		"a frame without its end": append(edge[:len(edge)-1:len(edge)-1], append([]byte{0}, deep...)...),
		"a frame too long":        append([]byte{frameHeader, 0, 1, 0xff, 0xff, 0xff, 0xff}, deep...),
		"another protocol":        append([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), deep...),
		"another AMQP":            []byte("AMQP\x00\x01\x00\x00"),
		"a header without room":   frame(frameHeader, 1, []byte{0, 60, 0xff}),
		"headers past the frame":  frame(frameHeader, 1, slices.Concat(make([]byte, 12), []byte{0x20, 0}, []byte{0, 0, 1, 0, 'x'})),
		"a content type past it":  frame(frameHeader, 1, slices.Concat(make([]byte, 12), []byte{0xA0, 0}, []byte{200, 'x'})),
	} {
		for how, read := range readers(data, random) {
			if got := read(); !bytes.Equal(got, data) {
				t.Errorf("%s, read %s: %d bytes became %d", name, how, len(data), len(got))
			}
		}
	}
}

func TestGuardMendsWhereverItIsParted(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	deep, long := headerFrame(header("a", nested("F", 99)...)), headerFrame(header("b", sized('S', make([]byte, frameProposed))...))
	data := slices.Concat(ordinary(3, 300), deep, ordinary(2, 5000), deep, deep, long, ordinary(1, 2))
	want := slices.Concat(ordinary(3, 300), mend(deep, frameProposed), ordinary(2, 5000), mend(deep, frameProposed), mend(deep, frameProposed), mend(long, frameProposed), ordinary(1, 2))
	for how, read := range readers(data, random) {
		if got := read(); !bytes.Equal(got, want) {
			t.Errorf("read %s: %d bytes became %d, want %d", how, len(data), len(got), len(want))
		}
	}
}

// Not parallel: it counts allocations.
func TestGuardAllocatesNothingForOrdinaryMessages(t *testing.T) {
	data := ordinary(1000, 300)
	r := bytes.NewReader(data)
	g := &guard{Conn: stream{Reader: r}}
	p := make([]byte, 4096)
	all := func() {
		r.Reset(data)
		for total := 0; total < len(data); {
			n, err := g.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	all() // it keeps its memory for the pieces
	if n := testing.AllocsPerRun(10, all); n > 0 {
		t.Errorf("%v allocations for 1000 messages", n)
	}
}

func BenchmarkGuard(b *testing.B) {
	data := ordinary(1000, 300)
	for name, wrap := range map[string]func(net.Conn) net.Conn{"without": bare, "with": guarded} {
		b.Run(name, func(b *testing.B) {
			r := bytes.NewReader(nil)
			conn := wrap(stream{Reader: r})
			p := make([]byte, 4096)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(data)
				for total := 0; total < len(data); {
					n, err := conn.Read(p)
					if err != nil {
						b.Fatal(err)
					}
					total += n
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/message")
		})
	}
}

func TestUnreadableNamesAreOneLine(t *testing.T) {
	t.Parallel()
	var table []byte
	for i := range 10 {
		table = append(table, header(string(rune('a'+i))+"\n"+strings.Repeat("\xff", 200), nested("A", 33)...)...)
	}
	d, err := newLibrary(t, guarded).get(headerFrame(table))
	if names := text(d.Headers, HeaderUnreadable); err != nil || len(names) > maxUnreadable || !strings.HasPrefix(names, "a \uFFFD, b \uFFFD") {
		t.Errorf("named %q, error %v", names, err)
	}
}
