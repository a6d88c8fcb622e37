package messaging_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/messaging"
)

func TestDialTakesTheFirstBrokerThatLetsIt(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s := messaging.NewSession(messaging.SessionConfig{URLs: []string{"amqp://u:hidden@127.0.0.1:1/", env.AMQPURL}, Name: "account"})
	wrapped := false
	conn, err := s.Dial(t.Context(), "look", func(c net.Conn) net.Conn {
		wrapped = true
		return c
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if ch, err := conn.Channel(); err != nil || ch.Close() != nil || !wrapped {
		t.Errorf("no channel: %v; wrapped %v", err, wrapped)
	}
}

func TestDialSaysWhyNotAndNoSecret(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, url := range []string{"amqp://u:hidden@127.0.0.1:1/", "amqp://u:hidden@" + silent.Addr().String() + "/", "no hidden url"} {
		s := messaging.NewSession(messaging.SessionConfig{URLs: []string{url}})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		conn, err := s.Dial(ctx, "look")
		cancel()
		if err == nil || conn != nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("dialled %v, error %v", conn, err)
		}
	}
}

// What an operator has written into the URL holds for every connection.
func TestTheParametersOfTheURLHold(t *testing.T) {
	t.Parallel()
	env := testenv.New(t)
	s := messaging.NewSession(messaging.SessionConfig{URLs: []string{env.AMQPURL + "?auth_mechanism=amqplain&heartbeat=7&channel_max=9&connection_timeout=60000"}})
	conn, err := s.Dial(t.Context(), "look")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	got := conn.Config
	if len(got.SASL) != 1 || got.SASL[0].Mechanism() != "AMQPLAIN" || got.Heartbeat != 7*time.Second || got.ChannelMax != 9 {
		t.Errorf("signed in by %v, heartbeat %v, %d channels", got.SASL, got.Heartbeat, got.ChannelMax)
	}

	plain, err := messaging.NewSession(messaging.SessionConfig{URLs: []string{env.AMQPURL}, Heartbeat: 6 * time.Second}).Dial(t.Context(), "look")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	if got = plain.Config; got.SASL[0].Mechanism() != "PLAIN" || got.Heartbeat != 6*time.Second || got.ChannelMax == 9 {
		t.Errorf("without parameters: signed in by %v, heartbeat %v, %d channels", got.SASL, got.Heartbeat, got.ChannelMax)
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	for _, scheme := range []string{"amqp", "amqps"} {
		s := messaging.NewSession(messaging.SessionConfig{URLs: []string{scheme + "://" + silent.Addr().String() + "/?connection_timeout=50"}, ConnectTimeout: time.Hour})
		if conn, err := s.Dial(t.Context(), "look"); err == nil {
			_ = conn.Close()
			t.Errorf("%s: dialled a broker that says nothing", scheme)
		}
	}
}
