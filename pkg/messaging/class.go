package messaging

import (
	"errors"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Classify recognises the errors of the AMQP client library, for handlers that call a broker by themselves. Every consumer
// uses it, after its own classifiers.
//
// A code alone does not say whose fault it is: the broker closes a channel with 406 for a message that is too large, for a queue
// declared with other arguments, and for an ack that came too late. Only what cannot be anything else is held against
// the message, because that quarantines it at once. (Session.Publish knows more: see Refused and Unpublishable.)
func Classify(err error) (retry.Class, bool) {
	var exception *amqp.Error
	if !errors.As(err, &exception) {
		return "", false
	}
	switch {
	case errors.Is(err, amqp.ErrFieldType): // headers that AMQP cannot carry
		return retry.Validation, true
	case errors.Is(err, amqp.ErrChannelMax): // all channels of the connection are in use
		return retry.RateLimited, true
	}
	switch exception.Code {
	case amqp.ContentTooLarge:
		return retry.Validation, true // it will be as large the next time
	case amqp.ResourceError:
		return retry.RateLimited, true // the broker is short of something
	case amqp.ConnectionForced, amqp.ChannelError, amqp.InternalError:
		return retry.Timeout, true // it shuts down, or the channel is closed, or the broker has broken inside
	case amqp.NoRoute, amqp.NoConsumers, amqp.NotFound, amqp.ResourceLocked:
		return retry.Timeout, true // a queue or exchange is not there (yet), or not for us: the session declares them again
	case amqp.AccessRefused, amqp.InvalidPath, amqp.NotAllowed:
		return retry.Timeout, true // a password, right or virtual host that is being changed, or too many connections
	case amqp.FrameError, amqp.SyntaxError, amqp.UnexpectedFrame:
		if !exception.Server { // the library's words for a connection that broke while it read
			return retry.Timeout, true
		}
	}
	return retry.Unknown, true // 406, 503, 540, and frames of ours that the broker cannot read: a mistake of ours, or nobody knows
}
