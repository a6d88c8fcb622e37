package messaging

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

// library is a connection of the client library to a broker that answers every basic.get with the header frame that the test has written.
type library struct {
	conn    *amqp.Connection
	ch      *amqp.Channel
	headers chan []byte
}

// newLibrary connects the library until the test ends, with what wrap puts between.
func newLibrary(t *testing.T, wrap func(net.Conn) net.Conn) *library {
	t.Helper()
	l, err := openLibrary(wrap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.conn.Close() }) // an error says that it was closed
	return l
}

func openLibrary(wrap func(net.Conn) net.Conn) (l *library, err error) {
	ours, theirs := net.Pipe()
	l = &library{headers: make(chan []byte, 1)}
	go serveScripted(theirs, l.headers)
	if l.conn, err = amqp.Open(wrap(ours), amqp.Config{SASL: []amqp.Authentication{&amqp.PlainAuth{}}, Vhost: "/", Locale: "en_US"}); err != nil {
		return nil, err
	}
	l.ch, err = l.conn.Channel()
	return l, err
}

// get has a message with this header delivered.
func (l *library) get(header []byte) (amqp.Delivery, error) {
	l.headers <- header
	d, _, err := l.ch.Get("q", true)
	return d, err
}

// frame makes an AMQP frame on channel 1, or 0 for those about the connection.
func frame(kind byte, channel uint16, payload []byte) []byte {
	b := binary.BigEndian.AppendUint16([]byte{kind}, channel)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(append(b, payload...), frameEnd)
}

func method(channel, class, method uint16, arguments ...byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, class)
	return frame(frameMethod, channel, append(binary.BigEndian.AppendUint16(b, method), arguments...))
}

const scriptedBody = "{}"

// serveScripted is the broker's side: just enough of it that the library opens a channel and gets a message.
func serveScripted(conn net.Conn, headers chan []byte) {
	defer func() { _ = conn.Close() }()
	say := func(frames ...[]byte) {
		for _, f := range frames {
			_, _ = conn.Write(f) // the library has gone; reading finds it too
		}
	}
	start := append([]byte{0, 9, 0, 0, 0, 0, 0, 0, 0, 5}, "PLAIN\x00\x00\x00\x05en_US"...)
	if _, err := io.ReadFull(conn, make([]byte, len("AMQP")+4)); err != nil {
		return
	}
	say(method(0, 10, 10, start...))
	for {
		head := make([]byte, frameStart)
		if _, err := io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
		if _, err := io.ReadFull(conn, payload); err != nil {
			return
		}
		if head[0] != frameMethod {
			continue
		}
		switch [2]uint16{binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:])} {
		case [2]uint16{10, 11}: // start-ok, to be answered by tune
			say(method(0, 10, 30, 0, 0, 0, 2, 0, 0, 0, 0))
		case [2]uint16{10, 40}: // open
			say(method(0, 10, 41, 0))
		case [2]uint16{10, 50}: // close
			say(method(0, 10, 51))
		case [2]uint16{20, 10}: // open a channel
			say(method(1, 20, 11, 0, 0, 0, 0))
		case [2]uint16{60, 70}: // get
			say(method(1, 60, 71, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0), <-headers, frame(frameBody, 1, []byte(scriptedBody)))
		}
	}
}

// headerFrame is the header of a message with this content of its headers' table, a content type before it and a message id behind.
func headerFrame(table []byte) []byte {
	payload := []byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, byte(len(scriptedBody)), 0xA0, 0x80, 4}
	payload = binary.BigEndian.AppendUint32(append(payload, "json"...), uint32(len(table)))
	return frame(frameHeader, 1, append(append(payload, table...), "\x02id"...))
}

// header is one entry of the headers.
func header(name string, value ...byte) []byte {
	return append(append([]byte{byte(len(name))}, name...), value...)
}

// sized is a value of variable size.
func sized(kind byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content))), content...)
}

// nested is a value inside so many tables and arrays.
func nested(kinds string, depth int) []byte {
	value := []byte{'t', 1}
	for i := range depth {
		kind := kinds[i%len(kinds)]
		if kind == 'F' {
			value = header("n", value...)
		}
		value = sized(kind, value)
	}
	return value
}
