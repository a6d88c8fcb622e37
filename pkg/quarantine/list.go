package quarantine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
	amqp "github.com/rabbitmq/amqp091-go"
)

var errTooLarge = fmt.Errorf("the body has more than %d bytes", messaging.MaxBody)

// listEnd is what stands behind the items of a list.
type listEnd struct {
	Next       *string  `json:"next"` // where the next page begins; null on the last one
	Depth      int      `json:"depth"`
	Missing    []string `json:"missing"`             // ids that no message of a list in one page has
	Incomplete string   `json:"incomplete,omitzero"` // why some may be missing
}

// cursor is the place behind a message. The messages before it may be taken out between two pages, so the place is the message itself: the
// so-manieth of its name in its queue.
type cursor struct {
	queue uint8 // its number among those that are looked into
	nth   uint32
	name  [8]byte
}

func (c cursor) String() string {
	raw := append([]byte{1, c.queue}, binary.BigEndian.AppendUint32(nil, c.nth)...)
	return base64.RawURLEncoding.EncodeToString(append(raw, c.name[:]...))
}

func parseCursor(text string) (c cursor, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 14 || raw[0] != 1 {
		return cursor{}, false
	}
	return cursor{raw[1], binary.BigEndian.Uint32(raw[2:6]), [8]byte(raw[6:])}, true
}

// names counts the messages of each name, so that a cursor can tell copies apart.
type names map[[8]byte]uint32

func (n names) next(p *parked) ([8]byte, uint32) {
	sum := sha256.Sum256([]byte(p.Key))
	name := [8]byte(sum[:8])
	n[name]++
	return name, n[name]
}

// list streams the messages that the filter means, oldest first within each queue.
func (q *Quarantine) list(c echo.Context) error {
	f, wrong, err := q.filterOf(c)
	if err != nil {
		return err
	}
	queues := q.queuesOf(f)
	after, paging := cursor{}, false
	if text := c.QueryParam("after"); text != "" {
		if after, paging = parseCursor(text); !paging || int(after.queue) >= len(queues) {
			wrong.Add("after", "must be the next of an earlier answer, with the same filter")
		}
	}
	whole := c.QueryParam("whole")
	if whole != "" && whole != "true" && whole != "false" {
		wrong.Add("whole", "must be true or false")
	}
	if len(wrong) > 0 {
		return service.BadRequest("The query is not acceptable.", wrong...)
	}
	ctx, cancel := service.Unhurried(c) // a deep queue of a busy broker takes its time
	defer cancel()
	h, err := q.hold(ctx, queues)
	if err != nil {
		return q.refuse(err, queues)
	}
	defer h.release()

	s := &lister{stream: service.NewStream(c), filter: f, whole: whole == "true", now: time.Now(), after: after, skipping: paging, wanted: slices.Clone(f.IDs)}
	for i, queue := range queues {
		if err = s.queue(ctx, q, uint8(i), queue); err != nil || s.full {
			break
		}
	}
	switch {
	case err != nil && errors.Is(err, errClient):
		return nil // nobody is left to be told
	case err != nil && s.sent == 0:
		return q.refuse(err, nil)
	case err != nil:
		s.end.Incomplete = plainReason(err)
		q.Logger.WarnContext(ctx, "a list of the quarantine is incomplete", "error", err)
	case s.skipping:
		return service.Conflict("The message that the last page ended with is no longer there; start again with the first page.")
	}
	s.end.Missing = []string{}
	if !paging && !s.full && s.end.Incomplete == "" { // else they may be on another page
		s.end.Missing = append(s.end.Missing, s.wanted...)
	}
	_ = s.stream.End(s.end) // who is gone needs no end
	return nil
}

// lister is one list on its way to the client.
type lister struct {
	stream   *service.Stream
	filter   filter
	whole    bool // with headers and bodies
	now      time.Time
	after    cursor
	skipping bool     // until the message of the cursor has been seen
	wanted   []string // ids of which no message has been seen yet
	sent     int
	full     bool
	last     cursor
	end      listEnd
}

func (s *lister) queue(ctx context.Context, q *Quarantine, number uint8, queue string) error {
	if s.skipping && number < s.after.queue {
		return nil
	}
	l, err := q.look(ctx, queue)
	if err != nil {
		return err
	}
	defer l.close()
	s.end.Depth += l.depth
	seen := names{}
	err = l.each(ctx, func(d *amqp.Delivery) (bool, error) {
		p := read(queue, d)
		name, nth := seen.next(p)
		here := cursor{number, nth, name}
		if s.skipping && number == s.after.queue {
			s.skipping = here != s.after
			return true, nil
		}
		if !s.filter.matches(p, s.now) {
			return true, nil
		}
		if s.sent == s.filter.limit {
			next := s.last.String()
			s.end.Next, s.full = &next, true
			return false, nil
		}
		s.wanted = slices.DeleteFunc(s.wanted, p.named)
		var item any = p.Item
		if s.whole {
			item = wholeOf(p)
		}
		told, err := q.tell(s.stream, p, item)
		if err != nil {
			return false, err
		}
		if !told {
			s.end.Incomplete = "a message cannot be told of; the service's log has it and the reason"
			return true, nil
		}
		s.sent++
		s.last = here
		return true, nil
	})
	if errors.Is(err, errTooFar) {
		s.end.Incomplete = l.tooFar()
		return nil
	}
	return err
}

// plainReason is an error as a client may see it in an answer that is under way already.
func plainReason(err error) string {
	var broker *brokerError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the time for an answer has run out"
	case errors.Is(err, errLookStuck):
		return errLookStuck.Error()
	case errors.As(err, &broker):
		return "the broker has failed; the service's log has the reason"
	case service.TransientDB(err):
		return "the database has failed; the service's log has the reason"
	}
	return "something went wrong; the service's log has the reason"
}
