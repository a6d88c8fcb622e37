package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"example.com/banking/pkg/service"
	"example.com/banking/services/console/watch"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
)

const (
	mostPages  = 500
	mostTopics = 40                    // of one page
	beat       = 5 * time.Second       // at least so often something is sent, by which a page sees that the console is there
	calm       = 50 * time.Millisecond // and at most so often
	eventWrite = 10 * time.Second      // a page that takes nothing for so long is gone
)

// firstTopics are what the page looks at when it is opened without naming a part of it: what live.js looks at everywhere, and the overview.
var firstTopics = []string{"queues", "metrics:account", "metrics:transfer", "ledger", "exercises", "topology", "summary"}

// events sends pages what changes, as server-sent events.
type events struct {
	hub      *watch.Hub
	sessions *sessions
	pages    atomic.Int64
	beat     time.Duration // 0 means the above
}

func (e *events) register(router *echo.Echo) { router.GET("/events", e.serve) }

// serve answers ?topics=a,b,… Each "state" event holds the changes of one topic, the first of each all of it; "beat" events hold
// the console's time. Last-Event-ID has no meaning: who comes back is told everything again.
func (e *events) serve(c echo.Context) error {
	topics, err := topicsOf(c)
	if err != nil {
		return err
	}
	secret := false
	for _, topic := range topics {
		secret = secret || watch.NeedsSession(topic)
	}
	if secret {
		if _, err := e.sessions.need(c); err != nil {
			return err
		}
	}
	if e.pages.Add(1) > mostPages {
		e.pages.Add(-1)
		return service.Unavailable("Too many pages are open.", nil)
	}
	defer e.pages.Add(-1)
	page, err := e.hub.Open(topics)
	switch {
	case errors.Is(err, watch.ErrNoTopic):
		return service.BadRequest("The query is not acceptable.", service.FieldError{Field: "topics", Message: "names a topic that there is not"})
	case err != nil:
		return service.Unavailable("Nothing more can be watched right now: "+err.Error()+".", nil)
	}
	defer page.Close()
	ctx, cancel := service.Unhurried(c)
	defer cancel()

	header := c.Response().Header()
	header.Set(echo.HeaderContentType, "text/event-stream")
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("X-Accel-Buffering", "no") // for a proxy that would collect
	c.Response().WriteHeader(http.StatusOK)
	s := &eventStream{c: c, control: http.NewResponseController(c.Response())}
	for {
		if err := s.send("beat", map[string]time.Time{"at": time.Now().UTC()}); err != nil {
			return nil // the page has gone
		}
		for end := time.Now().Add(e.interval()); ; {
			updates, err := next(ctx, page, end)
			if err != nil {
				return nil // the page has gone, or the console stops
			}
			if updates == nil {
				break
			}
			for _, u := range updates {
				if s.send("state", u) != nil {
					return nil
				}
			}
			if err := pause(ctx, calm); err != nil {
				return nil
			}
		}
		if _, signedIn := e.sessions.of(c); secret && !signedIn {
			_ = s.send("end", map[string]string{"why": "The session has ended."})
			return nil
		}
	}
}

func (e *events) interval() time.Duration {
	if e.beat > 0 {
		return e.beat
	}
	return beat
}

// next answers what has changed, nil when nothing has until end.
func next(ctx context.Context, page *watch.Page, end time.Time) ([]watch.Update, error) {
	until, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	updates, err := page.Next(until)
	if err != nil && ctx.Err() == nil && until.Err() != nil {
		return nil, nil
	}
	return updates, err
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// topicsOf reads the topics, each once.
func topicsOf(c echo.Context) ([]string, error) {
	text, _, err := service.QueryParam(c, "topics")
	if err != nil {
		return nil, err
	}
	var topics []string
	known := map[string]bool{}
	for topic := range strings.SplitSeq(text, ",") {
		if topic != "" && !known[topic] {
			known[topic] = true
			topics = append(topics, topic)
		}
	}
	if len(topics) == 0 || len(topics) > mostTopics {
		return nil, service.BadRequest("The query is not acceptable.",
			service.FieldError{Field: "topics", Message: "must name 1 to 40 topics, separated by commas"})
	}
	return topics, nil
}

// eventStream writes events.
type eventStream struct {
	c       echo.Context
	control *http.ResponseController
	buffer  bytes.Buffer
}

// send writes one event and sees it off. JSON has no line breaks of its own, which would end the event.
func (s *eventStream) send(name string, data any) error {
	s.buffer.Reset()
	s.buffer.WriteString("event: " + name + "\ndata: ")
	if err := json.MarshalWrite(&s.buffer, data, json.Deterministic(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	s.buffer.WriteString("\n\n")
	_ = s.control.SetWriteDeadline(time.Now().Add(eventWrite)) // a recorder in a test has none
	if _, err := s.buffer.WriteTo(s.c.Response()); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
