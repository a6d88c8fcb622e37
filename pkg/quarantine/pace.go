package quarantine

import (
	"net"
	"sync"
)

// pace keeps what is on its way to a look small. The client library buffers deliveries without a limit and the broker sends as fast
// as the network takes it, so a queue of large bodies would be in memory as a whole before the first of them has been
// looked at. The connection is therefore not read on while more than paceWindow bytes were received and not yet looked at,
// unless the look waits for more: one message may be larger than the window.
type pace struct {
	net.Conn
	m      sync.Mutex
	seen   sync.Cond
	ahead  int // bytes received and not known to be looked at
	hungry bool
	closed bool
}

const (
	paceWindow = 8 << 20
	// paceExtra stands for the frames around a message and its properties. It is more than they can be, so that what is ahead is never
	// overestimated for long and reading never stops for good.
	paceExtra = 4 << 10
)

func newPace() *pace {
	p := &pace{}
	p.seen.L = &p.m
	return p
}

func (p *pace) wrap(conn net.Conn) net.Conn {
	p.Conn = conn
	return p
}

// Read waits until the look has caught up.
func (p *pace) Read(b []byte) (int, error) {
	p.m.Lock()
	for p.ahead > paceWindow && !p.hungry && !p.closed {
		p.seen.Wait()
	}
	p.m.Unlock()
	n, err := p.Conn.Read(b)
	p.m.Lock()
	p.ahead += n
	p.m.Unlock()
	return n, err
}

// looked says that a message of this size has been looked at.
func (p *pace) looked(size int) {
	p.m.Lock()
	defer p.m.Unlock()
	p.ahead = max(0, p.ahead-size-paceExtra)
	p.seen.Signal()
}

// wants says whether the look waits for a message.
func (p *pace) wants(more bool) {
	p.m.Lock()
	defer p.m.Unlock()
	p.hungry = more
	p.seen.Signal()
}

// free lets everything through from now on.
func (p *pace) free() {
	p.m.Lock()
	defer p.m.Unlock()
	p.closed = true
	p.seen.Broadcast()
}

// Close closes the connection and ends a reader that waits.
func (p *pace) Close() error {
	p.free()
	return p.Conn.Close()
}
