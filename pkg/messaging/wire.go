package messaging

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// wire is the network connection under an AMQP connection. The client library never limits a write, so a peer that stops
// reading would hold its writer, and with it everyone who waits for that writer's lock, for ever.
type wire struct {
	net.Conn
	timeout time.Duration // of one write
	patient atomic.Bool   // while the broker blocks publishing, not reading is its right: a write may wait
	last    atomic.Int64  // deadline set from outside, in Unix nanoseconds; 0 is none

	m      sync.Mutex
	corked bool
	buffer []byte
}

// maxCorked is how many bytes wait at most before they are sent nevertheless.
const maxCorked = 64 << 10

// SetDeadline is used by the client library for the handshake and for the last words before closing. No write outlasts it.
func (w *wire) SetDeadline(t time.Time) error {
	if t.IsZero() {
		w.last.Store(0)
	} else {
		w.last.Store(t.UnixNano())
	}
	return w.Conn.SetDeadline(t)
}

func (w *wire) Write(p []byte) (int, error) {
	w.m.Lock()
	defer w.m.Unlock()
	if !w.corked {
		return w.send(p)
	}
	w.buffer = append(w.buffer, p...)
	if len(w.buffer) >= maxCorked {
		if err := w.flush(); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// together sends everything that write writes in as few packets as possible: the client library writes each frame for
// itself, which is a system call for each message and each ack.
func (w *wire) together(write func()) {
	w.m.Lock()
	w.corked = true
	w.m.Unlock()
	write()
	w.m.Lock()
	defer w.m.Unlock()
	w.corked = false
	if err := w.flush(); err != nil {
		// Frames are gone that the library believes sent. Closing lets its reader find the connection broken.
		_ = w.Close()
	}
}

func (w *wire) flush() error {
	if len(w.buffer) == 0 {
		return nil
	}
	_, err := w.send(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

func (w *wire) send(p []byte) (written int, err error) {
	for {
		last := w.last.Load()
		deadline := time.Now().Add(w.timeout)
		if last != 0 {
			deadline = time.Unix(0, last)
		}
		if err := w.SetWriteDeadline(deadline); err != nil {
			return written, err
		}
		if w.last.Load() != last {
			continue // a deadline from outside came in between and has just been overwritten
		}
		n, err := w.Conn.Write(p[written:])
		written += n
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) || !w.patient.Load() || w.last.Load() != 0 {
			return written, err
		}
	}
}
