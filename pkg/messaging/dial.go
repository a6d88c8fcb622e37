package messaging

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Dial opens a connection beside the session's own two, for work that must not disturb them: somebody who looks into a queue
// holds all of its messages, and closes the connection to give them back. The brokers are tried in turn. purpose is shown by the
// broker beside the connection; wrap may put something between it and the network.
//
// The caller owns the connection. It is plain: nothing in it is repaired, and what is published on it is not confirmed.
func (s *Session) Dial(ctx context.Context, purpose string, wrap ...func(net.Conn) net.Conn) (*amqp.Connection, error) {
	if s.urlError != nil {
		return nil, s.urlError
	}
	var failures []error
	for _, uri := range s.uris {
		conn, err := s.dialPlain(ctx, uri, purpose, wrap)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address(uri), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", purpose, errors.Join(failures...))
}

func (s *Session) dialPlain(ctx context.Context, uri amqp.URI, purpose string, wrap []func(net.Conn) net.Conn) (*amqp.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
	defer cancel()
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(s.Name + " " + purpose)
	stop := func() bool { return true }
	conn, err := amqp.DialConfig(uri.String(), amqp.Config{
		Heartbeat:  s.Heartbeat,
		Properties: properties,
		Dial: func(network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			raw := conn
			stop = context.AfterFunc(ctx, func() { _ = raw.Close() }) // a handshake that hangs ends with the context
			for _, f := range wrap {
				conn = f(conn)
			}
			return conn, conn.SetDeadline(time.Now().Add(s.ConnectTimeout)) // cleared by the library after the handshake
		},
	})
	if !stop() && err == nil {
		_ = conn.Close()
		err = context.Cause(ctx)
	}
	return conn, err
}
