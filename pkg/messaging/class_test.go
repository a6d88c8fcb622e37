package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
	"github.com/go-json-experiment/json"
	amqp "github.com/rabbitmq/amqp091-go"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	local := func(code int) error { return &amqp.Error{Code: code, Reason: "read: connection reset by peer"} }
	broker := func(code int) error { return &amqp.Error{Code: code, Reason: "as the broker says", Server: true} }
	for name, c := range map[string]struct {
		err  error
		want retry.Class
	}{
		"closed":                      {amqp.ErrClosed, retry.Timeout},
		"no channel left":             {amqp.ErrChannelMax, retry.RateLimited},
		"headers it cannot carry":     {amqp.ErrFieldType, retry.Validation},
		"credentials":                 {amqp.ErrCredentials, retry.Timeout},
		"no mechanism in common":      {amqp.ErrSASL, retry.Timeout},
		"virtual host":                {amqp.ErrVhost, retry.Timeout},
		"an unreadable frame":         {amqp.ErrFrame, retry.Timeout},
		"a frame that is too large":   {amqp.ErrFrameTooLarge, retry.Timeout},
		"syntax":                      {amqp.ErrSyntax, retry.Timeout},
		"an unexpected frame":         {amqp.ErrUnexpectedFrame, retry.Timeout},
		"an unexpected command":       {amqp.ErrCommandInvalid, retry.Unknown},
		"the connection broke":        {local(amqp.FrameError), retry.Timeout},
		"it shuts down":               {broker(amqp.ConnectionForced), retry.Timeout},
		"it broke inside":             {broker(amqp.InternalError), retry.Timeout},
		"too large a message":         {broker(amqp.ContentTooLarge), retry.Validation},
		"short of something":          {broker(amqp.ResourceError), retry.RateLimited},
		"no route":                    {broker(amqp.NoRoute), retry.Timeout},
		"no consumers":                {broker(amqp.NoConsumers), retry.Timeout},
		"no queue or exchange":        {broker(amqp.NotFound), retry.Timeout},
		"locked":                      {broker(amqp.ResourceLocked), retry.Timeout},
		"not allowed":                 {broker(amqp.NotAllowed), retry.Timeout},
		"no such path":                {broker(amqp.InvalidPath), retry.Timeout},
		"of several things":           {broker(amqp.PreconditionFailed), retry.Unknown},
		"a frame of ours":             {broker(amqp.FrameError), retry.Unknown},
		"not implemented":             {broker(amqp.NotImplemented), retry.Unknown},
		"a code of a later version":   {broker(999), retry.Unknown},
		"one that has a class":        {retry.Errorf(retry.Invariant, "send: %w", broker(amqp.NotFound)), retry.Invariant},
		"one that is not of AMQP":     {fmt.Errorf("call: %w", context.DeadlineExceeded), retry.Timeout},
		"one that nobody knows":       {errors.New("odd"), retry.Unknown},
		"the broker's word on ours":   {&messaging.Refused{Exception: &amqp.Error{Code: amqp.ContentTooLarge, Server: true}}, retry.Unknown},
		"a message that cannot be":    {&messaging.Unpublishable{Err: retry.Errorf(retry.Validation, "too long")}, retry.Validation},
		"JSON that is none":           {json.Unmarshal([]byte(`{"a" 1}`), &struct{}{}), retry.Unknown},
		"JSON of another kind":        {json.Unmarshal([]byte(`{"a":"x"}`), &struct{ A int }{}), retry.Unknown},
		"JSON in an envelope of ours": {decodeError(`{"messageId":1}`), retry.Validation},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := retry.ClassOf(fmt.Errorf("send: %w", c.err), messaging.Classify); got != c.want {
				t.Errorf("class %q of %v, want %q", got, c.err, c.want)
			}
		})
	}
}

func decodeError(body string) error {
	_, err := messaging.Decode([]byte(body))
	return err
}

// What a broker really says, and the client library makes of it.
func TestClassifyWhatABrokerSays(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	changed := func(change func(*url.URL)) error {
		u, err := url.Parse(env.AMQPURL)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		_, err = amqp.Dial(u.String())
		return err
	}
	exception := func(provoke func(conn *amqp.Connection, ch *amqp.Channel) error) error {
		conn, err := amqp.Dial(env.AMQPURL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ch, err := conn.Channel()
		if err != nil {
			t.Fatal(err)
		}
		return provoke(conn, ch)
	}
	durable := func(ch *amqp.Channel, name string, arguments amqp.Table) error {
		_, err := ch.QueueDeclare(name, true, false, false, false, arguments)
		return err
	}
	for name, c := range map[string]struct {
		code int // 0: an error that is not of AMQP
		err  error
		want retry.Class
	}{
		"nobody listens": {0, changed(func(u *url.URL) { u.Host = "127.0.0.1:1" }), retry.Timeout},
		"wrong password": {amqp.AccessRefused, changed(func(u *url.URL) { u.User = url.UserPassword("nobody", "wrong") }), retry.Timeout},
		"no such vhost":  {0, changed(func(u *url.URL) { u.Path = "/there-is-none" }), retry.Timeout},
		"closed by us": {amqp.ChannelError, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			if err := ch.Close(); err != nil {
				return nil
			}
			return ch.Publish("", "x", false, false, amqp.Publishing{})
		}), retry.Timeout},
		"a queue that is missing": {amqp.NotFound, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive("missing", true, false, false, false, nil)
			return err
		}), retry.Timeout},
		"a queue with other arguments": {amqp.PreconditionFailed, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			if err := durable(ch, "q", nil); err != nil {
				return nil
			}
			return durable(ch, "q", amqp.Table{"x-message-ttl": 1})
		}), retry.Unknown},
		"an exclusive queue of another's": {amqp.ResourceLocked, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			if _, err := ch.QueueDeclare("mine", false, false, true, false, nil); err != nil {
				return nil
			}
			return exception(func(_ *amqp.Connection, other *amqp.Channel) error { return durable(other, "mine", nil) })
		}), retry.Timeout},
		"a name it keeps for itself": {amqp.AccessRefused, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			return durable(ch, "amq.ours", nil)
		}), retry.Timeout},
		"headers AMQP cannot carry": {0, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			return ch.Publish("", "x", false, false, amqp.Publishing{Headers: amqp.Table{"n": uint64(1)}})
		}), retry.Unknown},
		"a name AMQP cannot carry": {0, exception(func(_ *amqp.Connection, ch *amqp.Channel) error {
			return ch.Publish("", strings.Repeat("x", 256), false, false, amqp.Publishing{})
		}), retry.Unknown},
		"a shutdown": {amqp.ConnectionForced, exception(func(conn *amqp.Connection, _ *amqp.Channel) error {
			closed := conn.NotifyClose(make(chan *amqp.Error, 1))
			env.CloseConnections(t)
			return <-closed
		}), retry.Timeout},
	} {
		var said *amqp.Error
		switch errors.As(c.err, &said); {
		case c.err == nil:
			t.Errorf("%s: no error", name)
		case c.code != 0 && (said == nil || said.Code != c.code):
			t.Errorf("%s: the case is another one: %v", name, c.err)
		default:
			if got := retry.ClassOf(fmt.Errorf("send: %w", c.err), messaging.Classify); got != c.want {
				t.Errorf("%s: class %q of %#v, want %q", name, got, c.err, c.want)
			}
		}
	}
}

// A consumer knows the classes without being told, and its own classifiers come first.
func TestConsumerClassifiesErrorsOfAMQP(t *testing.T) {
	t.Parallel()
	session, consumer := account(func(_ context.Context, m *messaging.Message) error {
		if m.MessageID == "known" {
			return errors.New("known to the service")
		}
		return &amqp.Error{Code: amqp.ContentTooLarge, Server: true}
	})
	consumer.Classifiers = []retry.Classifier{func(err error) (retry.Class, bool) {
		return retry.Invariant, strings.HasPrefix(err.Error(), "known")
	}}
	f := start(t, session, consumer)
	f.publish("", consumer.Queue, amqp.Publishing{Body: []byte(body("large"))})
	if got := f.take(consumer.Queue + "_error").Headers[messaging.HeaderErrorClass]; got != string(retry.Validation) {
		t.Errorf("class %v", got)
	}
	f.publish("", consumer.Queue, amqp.Publishing{Body: []byte(body("known"))})
	if got := f.take(consumer.Queue + "_error").Headers[messaging.HeaderErrorClass]; got != string(retry.Invariant) {
		t.Errorf("class %v", got)
	}
}
