package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

// Stream answers one JSON document, {"items": […], …}, of which each item is sent as soon as it is known. The answer is 200 from the
// first item on; before that, a handler can still return an error as its answer.
type Stream struct {
	c       echo.Context
	control *http.ResponseController
	buffer  bytes.Buffer
	flushed time.Time
	items   int
}

const (
	streamBuffer = 32 << 10               // bytes that are collected at most before they are sent
	streamPause  = 100 * time.Millisecond // and for how long
	streamWrite  = 20 * time.Second       // a client that takes nothing for so long is gone
)

// NewStream makes a stream; nothing is sent yet.
func NewStream(c echo.Context) *Stream {
	return &Stream{c: c, control: http.NewResponseController(c.Response())}
}

// ErrUnwritable says that something cannot be written as JSON. It is a fault of that item alone: the stream is as it was before, and takes others.
var ErrUnwritable = errors.New("it cannot be written as JSON")

// Item sends one item. An error that is not ErrUnwritable says that the client is gone.
func (s *Stream) Item(item any) error {
	before := s.buffer.Len()
	if s.items == 0 {
		s.buffer.WriteString(`{"items":[`)
	} else {
		s.buffer.WriteByte(',')
	}
	if err := s.write(item); err != nil {
		s.buffer.Truncate(before)
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	s.items++
	s.buffer.WriteByte('\n')
	if s.items == 1 || s.buffer.Len() > streamBuffer || time.Since(s.flushed) > streamPause {
		return s.Flush()
	}
	return nil
}

// End closes the list and sends the members of rest, a struct or map, behind it.
func (s *Stream) End(rest any) error {
	if s.items == 0 {
		s.buffer.WriteString(`{"items":[`)
	}
	s.buffer.WriteString("],")
	start := s.buffer.Len()
	if err := s.write(rest); err != nil {
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	}
	members := s.buffer.Bytes()[start:]
	if len(members) < 2 || members[0] != '{' {
		return fmt.Errorf("stream: %T is no JSON object", rest)
	}
	if len(members) == 2 {
		s.buffer.Truncate(start - 1)
		s.buffer.WriteByte('}')
	} else {
		copy(members, members[1:]) // its opening brace is the document's, which is there already
		s.buffer.Truncate(start + len(members) - 1)
	}
	return s.Flush()
}

func (s *Stream) write(v any) error {
	return json.MarshalWrite(&s.buffer, v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
}

// Begun says whether the answer is under way, so that it can no longer become an error.
func (s *Stream) Begun() bool { return s.c.Response().Committed }

// Flush sends what is ready.
func (s *Stream) Flush() error {
	if !s.c.Response().Committed {
		header := s.c.Response().Header()
		header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		header.Set(echo.HeaderCacheControl, "no-store")
		s.c.Response().WriteHeader(http.StatusOK)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(streamWrite)) // a recorder in a test has none
	if _, err := s.buffer.WriteTo(s.c.Response()); err != nil {
		return err
	}
	s.flushed = time.Now()
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// unhurriedKey is where the deadline middleware leaves what Unhurried wants.
type unhurriedKey struct{}

type unhurried struct {
	request  context.Context // without the deadline
	stopping context.Context // ends when the server begins to stop
}

// Unhurried is for a call that may take longer than the ten seconds within which all others are answered: a context that ends when
// the client has gone or when the server begins to stop, and not before. Such a call sends a Stream, and looks at the
// context often. The cause of its end is ErrStopping in the second case.
func Unhurried(c echo.Context) (context.Context, context.CancelFunc) {
	whole, ok := c.Request().Context().Value(unhurriedKey{}).(unhurried)
	if !ok { // not behind the server's middleware
		return context.WithCancel(c.Request().Context())
	}
	// The server's deadline for reading a request would otherwise end this one while it runs.
	_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancelCause(whole.request)
	unhook := context.AfterFunc(whole.stopping, func() { cancel(ErrStopping) })
	return ctx, func() {
		unhook()
		cancel(context.Canceled)
	}
}

// ErrStopping is the cause for which a long call ends when its service stops.
var ErrStopping = errors.New("the service is stopping")
