package messaging

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// pair is a wire to a peer that reads only when the test does.
func pair(t *testing.T, timeout time.Duration) (w *wire, peer net.Conn, failed chan error) {
	t.Helper()
	ours, peer := net.Pipe()
	failed = make(chan error, 1)
	w = newWire(ours, timeout, func(err error) { failed <- err })
	t.Cleanup(func() {
		_ = w.Close()
		_ = peer.Close()
	})
	return w, peer, failed
}

func TestWireKeepsTheOrder(t *testing.T) {
	t.Parallel()
	w, peer, _ := pair(t, time.Minute)
	var want bytes.Buffer
	for i := range 1000 {
		frame := bytes.Repeat([]byte{byte(i)}, i)
		want.Write(frame)
		if n, err := w.Write(frame); n != len(frame) || err != nil {
			t.Fatal(n, err)
		}
	}
	got := make([]byte, want.Len())
	if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("the bytes differ: %v", err)
	}
}

func TestWireGivesUpAPeerThatTakesNothing(t *testing.T) {
	t.Parallel()
	w, _, failed := pair(t, 50*time.Millisecond)
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("failed with %v", err)
	}
	if _, err := w.Write([]byte("y")); err == nil {
		t.Error("takes more")
	}
}

func TestWireWaitsForABrokerThatBlocks(t *testing.T) {
	t.Parallel()
	w, peer, failed := pair(t, 10*time.Millisecond)
	w.setPatient(true)
	chunk := make([]byte, maxPending/4)
	for range 20 { // far more than is taken over without patience
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-failed:
		t.Fatalf("gave up: %v", err)
	case <-time.After(100 * time.Millisecond): // ten times what a peer has otherwise
	}
	if _, err := io.ReadFull(peer, make([]byte, 20*len(chunk))); err != nil {
		t.Error(err)
	}
}

// lateConn answers the first write with its deadline, as one that began before the broker blocked and ended after it.
type lateConn struct {
	net.Conn
	first func()
	once  sync.Once
}

func (c *lateConn) Write(p []byte) (n int, err error) {
	n, err = 0, os.ErrDeadlineExceeded
	late := false
	c.once.Do(func() { c.first(); late = true })
	if late {
		return n, err
	}
	return c.Conn.Write(p)
}

func TestWireGivesAPeerAllItsTimeAfterBlocking(t *testing.T) {
	t.Parallel()
	ours, peer := net.Pipe()
	defer peer.Close()
	conn := &lateConn{Conn: ours}
	w := newWire(conn, time.Minute, func(err error) { t.Errorf("gave up: %v", err) })
	conn.first = func() {
		w.setPatient(true)
		w.setPatient(false)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(peer, make([]byte, 1)); err != nil {
		t.Error(err)
	}
	_ = w.Close()
}

func TestWireHoldsAWriterBackWhenThePeerIsSlow(t *testing.T) {
	t.Parallel()
	w, peer, _ := pair(t, time.Minute)
	wrote := make(chan struct{}, 4)
	go func() {
		for range 4 {
			_, _ = w.Write(make([]byte, maxPending+1))
			wrote <- struct{}{}
		}
	}()
	<-wrote // on its way
	<-wrote // pending
	select {
	case <-wrote:
		t.Fatal("there is no limit")
	case <-time.After(50 * time.Millisecond):
	}
	if _, err := io.ReadFull(peer, make([]byte, 4*(maxPending+1))); err != nil {
		t.Error(err)
	}
	<-wrote
	<-wrote
}

func TestWireClosesInTime(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*wire){
		"with nothing to say":        func(*wire) {},
		"to a peer that is deaf":     func(w *wire) { _, _ = w.Write([]byte("x")) },
		"to a broker that blocks":    func(w *wire) { w.setPatient(true); _, _ = w.Write([]byte("x")) },
		"after a deadline was given": func(w *wire) { _ = w.SetDeadline(time.Now().Add(time.Hour)); _, _ = w.Write([]byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, _ := pair(t, time.Hour)
			prepare(w)
			began := time.Now()
			_ = w.Close()
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %v", took)
			}
			if _, err := w.Write([]byte("y")); err == nil {
				t.Error("takes more")
			}
		})
	}
}

func TestWireSendsItsLastWords(t *testing.T) {
	t.Parallel()
	w, peer, _ := pair(t, time.Minute)
	if _, err := w.Write([]byte("good-bye")); err != nil {
		t.Fatal(err)
	}
	heard := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(peer)
		heard <- string(all)
	}()
	_ = w.Close()
	if got := <-heard; got != "good-bye" {
		t.Errorf("heard %q", got)
	}
}
