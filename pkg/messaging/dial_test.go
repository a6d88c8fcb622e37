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
