package messaging

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
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
	for _, b := range s.brokers {
		conn, err := s.dialPlain(ctx, b, purpose, wrap)
		if err == nil {
			return conn, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", b.address(), err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", purpose, errors.Join(failures...))
}

func (s *Session) dialPlain(ctx context.Context, b broker, purpose string, wrap []func(net.Conn) net.Conn) (*amqp.Connection, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(b.connectTimeout(), s.ConnectTimeout))
	defer cancel()
	stop := func() bool { return true }
	conn, err := s.handshake(ctx, b, purpose, func(conn net.Conn) net.Conn {
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
func (s *Session) handshake(ctx context.Context, b broker, purpose string, wrap func(net.Conn) net.Conn) (*amqp.Connection, error) {
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(s.Name + " " + purpose)
	var g *guard
	config := amqp.Config{Heartbeat: s.Heartbeat, Properties: properties}
	timeout := cmp.Or(b.connectTimeout(), s.ConnectTimeout)
	config.Dial = func(network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		conn = wrap(conn)
		err = conn.SetDeadline(time.Now().Add(timeout)) // cleared by the library after the handshake
		if err == nil && b.Scheme == "amqps" {
			conn, err = encrypt(ctx, conn, b.URI)
		}
		if err != nil {
			_ = conn.Close()
			return nil, err
		}
		g = &guard{Conn: conn}
		return g, nil
	}
	conn, err := amqp.DialConfig(b.plain(), config)
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

// broker is one of the session's URLs.
type broker struct {
	amqp.URI
	settings url.Values // what the library is to read of the URL's parameters
}

func parseBroker(text string) (broker, error) {
	uri, err := amqp.ParseURI(text)
	if err != nil {
		return broker{}, err
	}
	whole, err := url.Parse(text)
	if err != nil {
		return broker{}, err
	}
	b := broker{URI: uri, settings: url.Values{}}
	for name, values := range whole.Query() {
		switch name {
		case "auth_mechanism", "heartbeat", "channel_max":
			b.settings[name] = values
		}
	}
	return b, nil
}

// connectTimeout is how long one attempt to connect may take by the URL, 0 when it does not say.
func (b broker) connectTimeout() time.Duration {
	return time.Duration(b.ConnectionTimeout) * time.Millisecond
}

func (b broker) address() string {
	return fmt.Sprintf("%s:%d/%s", b.Host, b.Port, strings.TrimPrefix(b.Vhost, "/"))
}

// plain is the URL without TLS. The library writes of a URI only some of its parameters, so the others are added.
func (b broker) plain() string {
	uri := b.URI
	uri.Scheme, uri.CACertFile, uri.CertFile, uri.KeyFile, uri.ServerName = "amqp", "", "", "", ""
	if len(b.settings) == 0 {
		return uri.String()
	}
	return uri.String() + "?" + b.settings.Encode()
}
