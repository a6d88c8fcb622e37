package testenv_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
)

// echo returns the address of a server that sends every line back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the accept loop ends with it
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				lines := bufio.NewReader(conn)
				for {
					line, err := lines.ReadString('\n')
					if err != nil {
						return
					}
					if _, err := conn.Write([]byte(line)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "tcp://" + l.Addr().String()
}

// client is a connection through the proxy.
type client struct {
	net.Conn
	lines *bufio.Reader
}

func connectTo(t *testing.T, p *testenv.Proxy) client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // the proxy may have cut it
	return client{conn, bufio.NewReader(conn)}
}

// ask sends a line and returns the error of getting it back within the time.
func (c client) ask(within time.Duration) error {
	if _, err := c.Write([]byte("hello\n")); err != nil {
		return err
	}
	return c.answer(within)
}

func (c client) answer(within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := c.lines.ReadString('\n')
	return err
}

const soon = 30 * time.Second

func TestProxyForwardsAndCuts(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echo(t))
	one, two := connectTo(t, p), connectTo(t, p)
	for _, c := range []client{one, two} {
		if err := c.ask(soon); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.Cut(); n != 2 {
		t.Errorf("cut %d clients, want 2", n)
	}
	for _, c := range []client{one, two} {
		if err := c.answer(soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read on a cut connection: %v", err)
		}
	}
	if err := connectTo(t, p).ask(soon); err != nil {
		t.Errorf("a new connection after the cut: %v", err)
	}
}

func TestProxyPausesAndResumes(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echo(t))
	c := connectTo(t, p)
	if err := c.ask(soon); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	if err := c.ask(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an answer came through a paused proxy: %v", err)
	}
	p.Resume()
	if err := c.answer(soon); err != nil {
		t.Errorf("what was written during the pause: %v", err)
	}
}

func TestPausedProxyCanBeCut(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echo(t))
	c := connectTo(t, p)
	if err := c.ask(soon); err != nil {
		t.Fatal(err)
	}
	p.Pause()
	if _, err := c.Write([]byte("lost\n")); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := c.answer(soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read on a cut connection: %v", err)
	}
}

func TestProxyRefuses(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echo(t))
	old := connectTo(t, p)
	if err := old.ask(soon); err != nil {
		t.Fatal(err)
	}
	p.Refuse()
	if err := connectTo(t, p).ask(soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a new connection was served: %v", err)
	}
	if err := old.ask(soon); err != nil {
		t.Errorf("the old connection: %v", err)
	}
	p.Accept()
	if err := connectTo(t, p).ask(soon); err != nil {
		t.Errorf("a new connection after Accept: %v", err)
	}
}
