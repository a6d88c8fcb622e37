package servers

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// Ports are the loopback TCP ports that a bank or a pair of servers has taken. Each is theirs until Release or the end of the process, also
// while nobody listens on it because a service is stopped or between two starts: were it given to another bank then, that one would
// get what people send to the address that they know, money and admin token included.
//
// What others see of it is the UDP port of the same number, for which nobody here has a use otherwise: it is bound to show that the TCP port
// is taken. That needs no file. It ends with the process, however that ends, it holds between users as well, and just as far as the
// TCP port itself, in a container no further than the container.
//
// The zero value has taken none. A pointer to it may be used by several goroutines.
type Ports struct {
	mu   sync.Mutex
	held map[int]io.Closer // nil: taken without being seen by others
}

// Take takes a port, unless somebody has taken it, we ourselves included, or listens on it.
func (p *Ports) Take(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ours := p.held[port]; ours {
		return false
	}
	// The mark comes first: looking whether anybody listens is itself listening for a moment, and would be in the way of whose port it is.
	mark, err := net.ListenPacket("udp4", loopback(port))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return false
	case err != nil: // a system that does not let us: then others have to see that somebody listens
		mark = nil
	}
	if !PortFree(port) {
		if mark != nil {
			_ = mark.Close()
		}
		return false
	}
	if p.held == nil {
		p.held = map[int]io.Closer{}
	}
	p.held[port] = mark
	return true
}

// Ports are chosen below the range from which systems take the local ends of outgoing connections (32768 upwards on
// Linux, 49152 elsewhere): such a connection could take the port of a server that is being restarted.
const lowestPort, highestPort = 15000, 32000

// TakeAny takes a port that is free.
func (p *Ports) TakeAny() (int, error) {
	for range 1000 {
		if port := lowestPort + rand.IntN(highestPort-lowestPort); p.Take(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", lowestPort, highestPort)
}

// Release gives all ports back.
func (p *Ports) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, mark := range p.held {
		if mark != nil {
			_ = mark.Close() // of a socket without data: nothing can be lost
		}
	}
	p.held = nil
}

// FreePort returns a loopback TCP port that nobody has taken or listens on and that is not in taken. It is not taken by that.
func FreePort(taken map[int]bool) (int, error) {
	var own Ports
	defer own.Release()
	for {
		port, err := own.TakeAny()
		if err != nil || !taken[port] {
			return port, err
		}
	}
}

// PortFree says whether a loopback TCP port can be listened on.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
