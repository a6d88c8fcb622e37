package messaging

import (
	"encoding/binary"
	"net"
	"slices"
	"sync/atomic"
)

// guard is the reading side of a connection: it sees the header of each message before the client library does.
//
// The library gives the whole connection up over headers that it cannot read. The broker then hands the same message to the
// next connection, so one message of a stranger's would stop a service. The guard takes out of such headers what cannot be
// read and names it in HeaderUnreadable, and the message can be judged like any other: its body has frames of its own, and
// settling it names the delivery. A header of that name which a client has sent is taken out as well, so that ours can be
// believed. All else passes as it came, without a copy but of the piece of a frame that two reads part.
type guard struct {
	net.Conn
	frameMax atomic.Int64 // the largest frame that the library takes, in bytes; 0 until it has been negotiated

	passing int64  // bytes of the current frame that are still to come and need no judgement
	foreign bool   // what comes is no AMQP, or ends within a frame; the library will say so
	err     error  // ended the connection
	held    []byte // read, not yet judged
	ready   []byte // judged, not yet handed out
	parted  []byte // memory for held
	long    []byte // memory for a frame that is longer than the reader's buffer
}

const (
	frameMethod, frameHeader, frameBody, frameHeartbeat = 1, 2, 3, 8

	frameStart    = 7              // type, channel and size
	frameOverhead = frameStart + 1 // and the mark behind the payload
	frameEnd      = 0xCE
	frameProposed = 128 << 10 // what the library and the broker propose as the largest frame
	// frameHeld bounds the memory for one frame. A header that has grown past the negotiated size is sent by the broker all
	// the same, but it does not grow to this.
	frameHeld = 1 << 20
)

// Read is part of net.Conn.
func (g *guard) Read(p []byte) (int, error) {
	for len(g.ready) == 0 && len(p) > 0 {
		if n := g.read(p); n > 0 {
			return n, nil
		}
		if len(g.ready) == 0 && g.err != nil {
			return 0, g.err
		}
	}
	n := copy(p, g.ready)
	g.ready = g.ready[n:]
	return n, nil
}

// read brings what may pass: into p, and says how much; or into ready. It brings nothing only when the connection has ended.
func (g *guard) read(p []byte) int {
	b, n, need := p, 0, 1
	for {
		for n < need && (g.err == nil || len(g.held) > 0) {
			n += g.next(b[n:])
		}
		g.foreign = g.foreign || n < need
		pass, next, size := g.judge(b[:n])
		switch {
		case n == 0:
			return 0
		case pass > 0:
			g.unread(b[pass:n])
			if len(b) > len(p) {
				g.ready = b[:pass]
				return 0
			}
			return pass
		case next == illegible:
			g.ready = mend(b[:size], g.largest())
			g.unread(b[size:n])
			return 0
		case next == incomplete:
			need = size
			if need > len(b) {
				g.long = append(slices.Grow(g.long[:0], need), b[:n]...)
				b = g.long[:need]
			}
		}
	}
}

// next reads on, at first what has been read before.
func (g *guard) next(p []byte) (n int) {
	if len(g.held) > 0 {
		n = copy(p, g.held)
		g.held = g.held[n:]
		return n
	}
	n, g.err = g.Conn.Read(p)
	return n
}

// unread puts p in front of what comes next.
func (g *guard) unread(p []byte) {
	switch {
	case len(p) == 0:
	case len(g.held) > 0: // some of it was too long for the reader's buffer
		g.held = slices.Concat(p, g.held)
	default:
		g.parted = append(g.parted[:0], p...)
		g.held = g.parted
	}
}

func (g *guard) largest() int {
	if n := int(g.frameMax.Load()); n > 0 {
		return n
	}
	return frameProposed
}

// obstacle is why bytes may not pass.
type obstacle int

const (
	noObstacle obstacle = iota // all may
	incomplete                 // the frame must have more bytes to be judged
	illegible                  // a header that the library cannot read
)

// judge answers how many bytes may pass, what is the matter with the frame behind them, and how many bytes that frame has: when it is
// incomplete, at least.
func (g *guard) judge(b []byte) (pass int, next obstacle, size int) {
	for pass < len(b) {
		if g.foreign {
			return len(b), noObstacle, 0
		}
		if g.passing > 0 {
			n := min(g.passing, int64(len(b)-pass))
			g.passing -= n
			pass += int(n)
			continue
		}
		frame := b[pass:]
		if len(frame) < frameStart {
			return pass, incomplete, frameStart
		}
		size = frameSize(frame)
		switch kind := frame[0]; {
		case kind == frameHeader && size <= frameHeld:
			if len(frame) < size {
				return pass, incomplete, size
			}
			if frame[size-1] != frameEnd {
				g.foreign = true
				continue
			}
			if !g.readable(frame[:size]) {
				return pass, illegible, size
			}
			pass += size
		case kind == frameMethod || kind == frameHeader || kind == frameBody || kind == frameHeartbeat:
			g.passing = int64(size)
		default:
			g.foreign = true
		}
	}
	return pass, noObstacle, 0
}

// frameSize is how long the frame is that b begins with.
func frameSize(b []byte) int { return int(binary.BigEndian.Uint32(b[3:])) + frameOverhead }

// readable says whether the library reads a header frame, and may: nothing in it passes for ours. Or it cannot be helped: what is wrong
// is not in the headers.
func (g *guard) readable(frame []byte) bool {
	from, to := headersOf(frame)
	return from == 0 || len(frame) <= g.largest() && readableTable(frame[from:to], 0) && !forged(frame[from:to])
}
