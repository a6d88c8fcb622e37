package messaging

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// wire is the network connection under an AMQP connection. Writing to it only fills a buffer, which one goroutine empties.
//
// The client library writes each frame for itself, under one lock, and without a limit in time. A peer that stops reading
// would hold whoever writes, then everyone who waits for that lock, and last the library's own heartbeat, so that it
// takes a living broker for dead. Here nobody waits for the peer, a peer that takes nothing for too long ends the
// connection, and what is written while a packet is under way travels together in the next one.
type wire struct {
	net.Conn
	timeout time.Duration // of a peer that takes nothing
	failed  func(error)   // told once why writing ended
	patient atomic.Bool   // while the broker blocks publishing, taking nothing is its right
	changes atomic.Int64  // of patience so far
	last    atomic.Int64  // deadline set from outside, in Unix nanoseconds; 0 is none
	drained chan struct{} // closed when the writing goroutine has ended

	m       sync.Mutex
	changed *sync.Cond // pending, broken or closing changed
	pending []byte
	broken  error
	closing bool
}

// maxPending is how many bytes wait before a writer does. It lets memory stay small when the broker is slow.
const maxPending = 1 << 20

// lastWords is how long closing waits for what is still in the buffer.
const lastWords = 100 * time.Millisecond

func newWire(conn net.Conn, timeout time.Duration, failed func(error)) *wire {
	w := &wire{Conn: conn, timeout: timeout, failed: failed, drained: make(chan struct{})}
	w.changed = sync.NewCond(&w.m)
	go w.run()
	return w
}

// Write takes p over. While the broker blocks publishing it never waits: the caller may hold locks that the
// heartbeat needs.
func (w *wire) Write(p []byte) (int, error) {
	w.m.Lock()
	defer w.m.Unlock()
	for len(w.pending) > maxPending && !w.patient.Load() && w.broken == nil && !w.closing {
		w.changed.Wait()
	}
	switch {
	case w.broken != nil:
		return 0, w.broken
	case w.closing:
		return 0, net.ErrClosed
	}
	w.pending = append(w.pending, p...)
	w.changed.Broadcast()
	return len(p), nil
}

// run writes what is pending until the connection is closed or broken.
func (w *wire) run() {
	defer close(w.drained)
	var out []byte
	for {
		w.m.Lock()
		for len(w.pending) == 0 && !w.closing {
			w.changed.Wait()
		}
		if len(w.pending) == 0 {
			w.m.Unlock()
			return
		}
		out, w.pending = w.pending, out[:0]
		w.changed.Broadcast()
		w.m.Unlock()
		if err := w.send(out); err != nil {
			w.fail(err)
			return
		}
		if cap(out) > maxPending {
			out = nil // a burst is no reason to keep its memory
		}
	}
}

func (w *wire) fail(err error) {
	w.m.Lock()
	w.broken = err
	closing := w.closing
	w.changed.Broadcast()
	w.m.Unlock()
	if !closing {
		w.failed(err)
		_ = w.Conn.Close() // the library's reader finds it
	}
}

func (w *wire) send(p []byte) error {
	for {
		last, changes := w.last.Load(), w.changes.Load()
		deadline := time.Now().Add(w.timeout)
		if last != 0 {
			deadline = time.Unix(0, last)
		}
		if err := w.Conn.SetWriteDeadline(deadline); err != nil {
			return err
		}
		if w.last.Load() != last {
			continue // a deadline from outside came in between and has just been overwritten
		}
		n, err := w.Conn.Write(p)
		p = p[n:]
		late := errors.Is(err, os.ErrDeadlineExceeded) && w.last.Load() == 0
		if err == nil || !late {
			return err
		}
		// The time during which the broker blocked does not count, so after that the peer has all of it again.
		if n == 0 && !w.patient.Load() && w.changes.Load() == changes {
			return err
		}
	}
}

// setPatient says whether the broker blocks publishing.
func (w *wire) setPatient(patient bool) {
	w.m.Lock()
	defer w.m.Unlock()
	w.patient.Store(patient)
	w.changes.Add(1)
	w.changed.Broadcast()
}

// SetDeadline is used by the client library for the handshake and for the last words before closing. No write outlasts it.
func (w *wire) SetDeadline(t time.Time) error {
	if t.IsZero() {
		w.last.Store(0)
	} else {
		w.last.Store(t.UnixNano())
	}
	return w.Conn.SetDeadline(t)
}

// SetWriteDeadline does nothing: writing has its own limits, and TLS would cut off its own good-bye.
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// Close closes the connection once the last words are out, or have had their time.
func (w *wire) Close() error {
	w.m.Lock()
	first := !w.closing
	w.closing = true
	w.changed.Broadcast()
	w.m.Unlock()
	if first {
		_ = w.SetDeadline(time.Now().Add(lastWords)) // fails only on a connection that is closed
		<-w.drained
	}
	return w.Conn.Close()
}
