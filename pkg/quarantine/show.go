package quarantine

import (
	"context"
	"encoding/base64"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/service"
	"github.com/labstack/echo/v4"
	amqp "github.com/rabbitmq/amqp091-go"
)

// whole is one message with everything in it.
type whole struct {
	Item
	Copies     int            `json:"copies,omitzero"` // messages under this name in the queue, of which this is the first; not in a list
	Headers    map[string]any `json:"headers"`
	Deaths     []death        `json:"deaths"`
	Properties properties     `json:"properties"`
	Exchange   string         `json:"exchange"`   // through which it came into the quarantine
	RoutingKey string         `json:"routingKey"` // and its key then
	Body       *content       `json:"body"`
}

// death is one line of what the broker noted: how often a queue let go of the message, and why.
type death struct {
	Queue       string     `json:"queue"`
	Reason      string     `json:"reason"`
	Count       int64      `json:"count"`
	FirstAt     *time.Time `json:"firstAt"`
	Exchange    string     `json:"exchange"`
	RoutingKeys []string   `json:"routingKeys"`
}

// content is a body: as text when it is text, as base64 otherwise.
type content struct {
	Size   int     `json:"size"`
	Text   *string `json:"text,omitzero"`
	Base64 *string `json:"base64,omitzero"`
}

func contentOf(body []byte) *content {
	c := &content{Size: len(body)}
	if utf8.Valid(body) {
		text := string(body)
		c.Text = &text
		return c
	}
	text := base64.StdEncoding.EncodeToString(body)
	c.Base64 = &text
	return c
}

// properties are those that the message was parked with. Empty ones are left out.
type properties struct {
	ContentType     string `json:"contentType,omitzero"`
	ContentEncoding string `json:"contentEncoding,omitzero"`
	DeliveryMode    uint8  `json:"deliveryMode,omitzero"`
	Priority        uint8  `json:"priority,omitzero"`
	CorrelationID   string `json:"correlationId,omitzero"`
	ReplyTo         string `json:"replyTo,omitzero"`
	Expiration      string `json:"expiration,omitzero"`
	MessageID       string `json:"messageId,omitzero"`
	Timestamp       any    `json:"timestamp,omitzero"` // RFC 3339, or what stamped makes of it
	Type            string `json:"type,omitzero"`
	UserID          string `json:"userId,omitzero"`
	AppID           string `json:"appId,omitzero"`
}

func propertiesOf(d *amqp.Delivery) properties {
	p := properties{d.ContentType, d.ContentEncoding, d.DeliveryMode, d.Priority, d.CorrelationId, d.ReplyTo, d.Expiration, d.MessageId,
		nil, d.Type, d.UserId, d.AppId}
	if !d.Timestamp.IsZero() {
		p.Timestamp = stamped(d.Timestamp)
	}
	return p
}

// show answers the first message of a queue under a name, be it its messageId or its digest.
func (q *Quarantine) show(c echo.Context) error {
	queue, key := pathParam(c, "queue"), pathParam(c, "key")
	if !slices.Contains(q.Queues, queue) {
		return service.NotFound("This service has no quarantine queue of this name.")
	}
	ctx, cancel := service.Unhurried(c) // a deep queue of a busy broker takes its time
	defer cancel()
	h, err := q.hold(ctx, []string{queue})
	if err != nil {
		return q.refuse(err, []string{queue})
	}
	defer h.release()
	l, err := q.look(ctx, queue)
	if err != nil {
		return q.refuse(err, nil)
	}
	defer l.close()
	var found *whole
	err = l.each(ctx, func(d *amqp.Delivery) (bool, error) {
		if p := read(queue, d); p.named(key) {
			if found == nil {
				found = wholeOf(p)
			}
			found.Copies++
		}
		return true, nil
	})
	switch {
	case err != nil:
		return q.refuse(err, nil)
	case found == nil:
		return service.NotFound("There is no message of this name in the queue.")
	}
	return c.JSON(http.StatusOK, found)
}

// pathParam reads a parameter of the path. Echo leaves it escaped when the path needed escaping, as for an id with a slash in it.
func pathParam(c echo.Context, name string) string {
	text := c.Param(name)
	if c.Request().URL.RawPath != "" {
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
	}
	return text
}

// refuse turns what hinders a look into its answer.
func (q *Quarantine) refuse(err error, queues []string) error {
	var broker *brokerError
	switch {
	case errors.Is(err, errBusy):
		return busy(queues)
	case errors.Is(err, context.Canceled): // the client has gone
		return err
	case errors.Is(err, service.ErrStopping):
		return service.Unavailable("The service is stopping; try again.", err)
	case errors.Is(err, context.DeadlineExceeded):
		return service.Unavailable("The time for an answer has run out: the broker or the database is slow. Nothing has changed; try again.", err)
	case errors.Is(err, errNotBack):
		return service.Unavailable("A look has lost its connection to the broker, and the queue does not count yet what it held; try again in a minute.", err)
	case errors.As(err, &broker):
		return service.Unavailable("The broker is not available right now, or the queue is not there; /readyz has the reason.", err)
	}
	return err
}

func wholeOf(p *parked) *whole {
	w := &whole{
		Item: p.Item, Headers: plainTable(p.delivery.Headers), Deaths: []death{}, Properties: propertiesOf(p.delivery),
		Exchange: p.delivery.Exchange, RoutingKey: p.delivery.RoutingKey, Body: contentOf(p.delivery.Body),
	}
	for _, d := range p.told.Deaths {
		w.Deaths = append(w.Deaths, deathOf(d))
	}
	return w
}

func deathOf(d messaging.Death) death {
	keys := d.RoutingKeys
	if keys == nil {
		keys = []string{}
	}
	return death{d.Queue, d.Reason, d.Count, instant(d.Time), d.Exchange, keys}
}

// plainTable makes of headers what JSON can say. Bytes, and texts that are none, become {"base64": …}.
func plainTable(headers amqp.Table) map[string]any {
	plain := make(map[string]any, len(headers))
	for name, value := range headers {
		plain[plainName(headers, name)] = plainValue(value)
	}
	return plain
}

// plainName is a header's name in JSON. One that is no text becomes "base64:…", lest two of them end as the same replacement characters: a
// member must not be there twice. Names that another header has get an apostrophe more, which is in no base64.
func plainName(headers amqp.Table, name string) string {
	if utf8.ValidString(name) {
		return name
	}
	plain := "base64:" + base64.StdEncoding.EncodeToString([]byte(name))
	for taken := true; taken; {
		if _, taken = headers[plain]; taken {
			plain += "'"
		}
	}
	return plain
}

func plainValue(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		return plainTable(v)
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plainValue(element)
		}
		return list
	case []byte:
		return map[string]any{"base64": base64.StdEncoding.EncodeToString(v)}
	case string:
		if !utf8.ValidString(v) {
			return map[string]any{"base64": base64.StdEncoding.EncodeToString([]byte(v))}
		}
	case time.Time:
		return stamped(v)
	case float32:
		return plainFloat(float64(v))
	case float64:
		return plainFloat(v)
	case amqp.Decimal:
		return map[string]any{"scale": v.Scale, "value": v.Value}
	}
	return value
}

// plainFloat writes what is no number as a text.
func plainFloat(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return f
}
