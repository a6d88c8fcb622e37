package messaging

import (
	"errors"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestOnlyTheBrokersWordAboutAMessageIsARefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exception *amqp.Error
		connected bool
		want      bool
	}{
		"too large, 4.x":          {&amqp.Error{Code: amqp.PreconditionFailed, Server: true}, true, true},
		"too large":               {&amqp.Error{Code: amqp.ContentTooLarge, Server: true}, true, true},
		"not the broker's word":   {&amqp.Error{Code: amqp.PreconditionFailed}, true, false},
		"the connection went too": {&amqp.Error{Code: amqp.PreconditionFailed, Server: true}, false, false},
		"no exchange":             {&amqp.Error{Code: amqp.NotFound, Server: true}, true, false},
		"connection reset":        {&amqp.Error{Code: amqp.FrameError, Reason: "read: connection reset by peer"}, false, false},
		"broker shuts down":       {&amqp.Error{Code: amqp.ConnectionForced, Server: true}, false, false},
		"closed in order":         {nil, true, false},
	} {
		err := refusal(c.exception, c.connected)
		var refused *Refused
		if errors.As(err, &refused) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		var raw *amqp.Error
		if errors.As(err, &raw) {
			t.Errorf("%s: %v shows what it is", name, err)
		}
	}
}
