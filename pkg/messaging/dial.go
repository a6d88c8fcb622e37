package messaging

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
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
	stop := func() bool { return true }
	conn, err := s.handshake(ctx, uri, purpose, func(conn net.Conn) net.Conn {
		raw := conn
		stop = context.AfterFunc(ctx, func() { _ = raw.Close() }) // a handshake that hangs ends with the context
		for _, f := range wrap {
			conn = f(conn)
		}
		return conn
	})
	if !stop() && err == nil {
		_ = conn.Close()
		err = context.Cause(ctx)
	}
	return conn, err
}

// handshake opens a connection to one broker: below it the network, then what wrap puts there, then TLS for amqps, then the guard,
// which has to see what the library sees. So the library is told an URL without TLS.
func (s *Session) handshake(ctx context.Context, uri amqp.URI, purpose string, wrap func(net.Conn) net.Conn) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(s.Name + " " + purpose)
	var g *guard
	config := amqp.Config{Heartbeat: s.Heartbeat, Properties: properties}
	config.Dial = func(network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
		defer cancel()
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn = wrap(conn)
		err = conn.SetDeadline(time.Now().Add(s.ConnectTimeout)) // cleared by the library after the handshake
		if err == nil && uri.Scheme == "amqps" {
			conn, err = encrypt(ctx, conn, uri)
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		g = &guard{Conn: conn}
		return g, nil
	}
	plain := uri
	plain.Scheme, plain.CACertFile, plain.CertFile, plain.KeyFile, plain.ServerName = "amqp", "", "", "", ""
	conn, err := amqp.DialConfig(plain.String(), config)
	if err == nil {
		g.frameMax.Store(int64(conn.Config.FrameSize)) // messages come only over channels, and those are yet to be opened
	}
	return conn, err
}

// encrypt puts TLS over a connection, as the parameters of the URL say that the client library has for it: cacertfile, certfile and
// keyfile, server_name_indication.
func encrypt(ctx context.Context, conn net.Conn, uri amqp.URI) (net.Conn, error) {
	config := &tls.Config{ServerName: cmp.Or(uri.ServerName, uri.Host), MinVersion: tls.VersionTLS12}
	if uri.CACertFile != "" {
		data, err := os.ReadFile(uri.CACertFile)
		if err != nil {
			return conn, fmt.Errorf("read the broker's CA certificate: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return conn, fmt.Errorf("the broker's CA certificate: %s holds none", uri.CACertFile)
		}
	}
	if uri.CertFile != "" && uri.KeyFile != "" {
		certificate, err := tls.LoadX509KeyPair(uri.CertFile, uri.KeyFile)
		if err != nil {
			return conn, fmt.Errorf("load the certificate for the broker: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	encrypted := tls.Client(conn, config)
	return encrypted, encrypted.HandshakeContext(ctx)
}
