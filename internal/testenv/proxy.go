package testenv

import (
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy is a TCP forwarder on loopback through which a test makes the network fail. A new proxy forwards; what it
// is told holds for present and, except Cut, for future connections.
type Proxy struct {
	listener net.Listener
	target   string
	wg       sync.WaitGroup

	mu       sync.Mutex
	resumed  *sync.Cond
	paused   bool
	refusing bool
	closed   bool
	conns    map[net.Conn]struct{}
}

// NewProxy starts a proxy to the host and port of the URL; it is closed when the test ends.
func NewProxy(t testing.TB, rawURL string) *Proxy {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatalf("proxy target: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxy: %v", err)
	}
	p := &Proxy{listener: l, target: u.Host, conns: map[net.Conn]struct{}{}}
	p.resumed = sync.NewCond(&p.mu)
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(p.Close)
	return p
}

// Addr is the proxy's host and port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the URL with the proxy's host and port in place of its own.
func (p *Proxy) URL(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "" // a URL that NewProxy would have refused
	}
	u.Host = p.Addr()
	return u.String()
}

// Cut resets every present connection on both sides, as a crashed router does, and returns how many clients there were.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.conns) / 2 // each client has a connection to the server
	p.closeAll()
	return n
}

// Pause stops reading from both sides: connections stay open, but nothing arrives, and writers block when buffers are full.
func (p *Proxy) Pause() { p.set(func() { p.paused = true }) }

// Resume undoes Pause; what was written meanwhile arrives.
func (p *Proxy) Resume() { p.set(func() { p.paused = false }) }

// Refuse resets new connections at once; present ones live on.
func (p *Proxy) Refuse() { p.set(func() { p.refusing = true }) }

// Accept undoes Refuse.
func (p *Proxy) Accept() { p.set(func() { p.refusing = false }) }

// Close cuts everything and returns when no goroutine of the proxy is left.
func (p *Proxy) Close() {
	p.set(func() {
		p.closed = true
		_ = p.listener.Close() // fails only when closed before
		p.closeAll()
	})
	p.wg.Wait()
}

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.resumed.Broadcast()
}

// closeAll is called with the lock held.
func (p *Proxy) closeAll() {
	for conn := range p.conns {
		reset(conn)
	}
	clear(p.conns)
	p.resumed.Broadcast()
}

// reset closes with RST, so that the peer sees a failure and not an orderly end.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // the close below matters more
	}
	_ = conn.Close()
}

func (p *Proxy) accept() {
	defer p.wg.Done()
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the client gave up before it was accepted
		}
		p.mu.Lock()
		refusing := p.refusing
		p.mu.Unlock()
		if refusing {
			reset(client)
			continue
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			reset(client) // as a refused connection would look without the proxy
			continue
		}
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			reset(client)
			reset(server)
			return
		}
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.wg.Add(2)
		go p.forward(client, server)
		go p.forward(server, client)
	}
}

func (p *Proxy) forward(from, to net.Conn) {
	defer p.wg.Done()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.waitWhilePaused(from)
		if n > 0 {
			if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
				err = writeErr
			}
		}
		if err == nil {
			continue
		}
		p.mu.Lock()
		delete(p.conns, from)
		delete(p.conns, to)
		p.mu.Unlock()
		if errors.Is(err, io.EOF) {
			_ = to.Close()
			_ = from.Close()
			return
		}
		reset(to)
		reset(from)
		return
	}
}

// waitWhilePaused returns when the proxy forwards, or the connection was cut.
func (p *Proxy) waitWhilePaused(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.paused {
		if _, alive := p.conns[conn]; !alive {
			return
		}
		p.resumed.Wait()
	}
}
