package quarantine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/messaging"
	amqp "github.com/rabbitmq/amqp091-go"
)

// hand takes the whole queue in hand, in chunks of which some may be acked.
func (b *bench) hand(queue string) (l *look, chunks []*chunk, tasks [][]*task) {
	b.Helper()
	l, err := b.q.look(b.Context(), queue)
	if err != nil {
		b.Fatal(err)
	}
	for l.left() > 0 {
		c, messages, err := l.take(b.Context(), actable)
		if err != nil {
			b.Fatal(err)
		}
		var all []*task
		for _, d := range messages {
			all = append(all, &task{parked: read(queue, d)})
		}
		chunks, tasks = append(chunks, c), append(tasks, all)
	}
	return l, chunks, tasks
}

// What is acked stays away, though everything is closed at once: the broker forgets acks that it has heard, if there are many on a channel.
func TestAcksAreNotForgotten(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{amqp.QueueTypeQuorum, amqp.QueueTypeClassic} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			queue := "parked " + kind
			if _, err := b.ch.QueueDeclare(queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: kind}); err != nil {
				t.Fatal(err)
			}
			b.q.metrics = newMetrics([]string{queue}, time.Minute, nil)
			for try := range 30 {
				for _, id := range ids(0, 64) {
					b.publish("", queue, parkedEvent(id))
				}
				l, chunks, tasks := b.hand(queue)
				for i, c := range chunks {
					if err := c.ack(tasks[i]); err != nil {
						t.Fatal(err)
					}
				}
				l.close()
				l, _, tasks = b.hand(queue) // whoever comes next would have them
				if len(tasks) > 0 {
					t.Fatalf("look %d: %d messages are back that were acked", try, len(tasks[0]))
				}
				l.close()
			}
			b.hasDepth(queue, 0)
		})
	}
}

// A look at some of the messages, with or without acks, leaves the others in their order; the queue does not turn round.
func TestOrderIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.transport = nil
	want := ids(0, 300)
	b.parkAll(want...)
	for _, query := range []string{"?limit=1", "?limit=300", "?limit=1", "?limit=40&id=m-299", "?limit=150", "?limit=1"} {
		b.list(query)
	}
	if r := b.discard(order{"ids": []string{"m-003", "m-100"}, "because": "test", "confirm": true}); r.Done != 2 {
		t.Errorf("discarded %+v", r)
	}
	want = slices.DeleteFunc(want, func(id string) bool { return id == "m-003" || id == "m-100" })
	b.q.metrics.counted(lot, 400) // a measure that has to look as well
	b.q.metrics.counted(lot, 298)
	conn, err := b.session.Dial(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	b.q.measure(t.Context(), conn, lot)
	if got := b.list("?limit=1000").keys(); !slices.Equal(got, want) {
		t.Errorf("their order is now %q", got)
	}
}

// Everything that is reported as done has left, at any size and rate.
func TestDoneIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.transport = nil
	for try := range 10 {
		b.parkAll(ids(0, 50)...)
		if r := b.discard(order{"because": "test", "confirm": true}); r.Done != 50 || r.Matched != 50 {
			t.Fatalf("discard %d: %d of 50", try, r.Done)
		}
		if left := b.list("").keys(); len(left) > 0 {
			t.Fatalf("discard %d left %q", try, left)
		}
		b.parkAll(ids(0, 64)...)
		if r := b.replay(order{"confirm": true, "rate": 1000}); r.Done != 64 || r.Matched != 64 {
			t.Fatalf("replay %d: %d of 64", try, r.Done)
		}
		if left := b.list("").keys(); len(left) > 0 {
			t.Fatalf("replay %d left %q", try, left)
		}
	}
	b.hasDepth(work0, 640)
}

// lingering is a session whose connections are lost on our side some time before the broker notices.
type lingering struct {
	*messaging.Session
	lost atomic.Pointer[lostConn]
}

type lostConn struct {
	net.Conn
	gone chan struct{}
}

func (c *lostConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.gone:
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

// Close leaves the broker in its belief for as long as a look might be in a hurry.
func (c *lostConn) Close() error {
	select {
	case <-c.gone:
		time.AfterFunc(time.Second, func() { _ = c.Conn.Close() })
		return nil
	default:
		return c.Conn.Close()
	}
}

func (s *lingering) Dial(ctx context.Context, purpose string, _ ...func(net.Conn) net.Conn) (*amqp.Connection, error) {
	return s.Session.Dial(ctx, purpose, func(conn net.Conn) net.Conn {
		c := &lostConn{conn, make(chan struct{})}
		s.lost.Store(c)
		return c
	})
}

// A look that loses its connection keeps the lock until the messages are back: who looks next must not find the queue empty.
func TestLostLookHidesNothing(t *testing.T) {
	t.Parallel()
	session := &lingering{}
	b := newBench(t, func(c *Config) {
		session.Session = c.Session.(*messaging.Session)
		c.Session, c.LockWait = session, patience
	})
	b.transport = nil
	b.parkAll(ids(0, 500)...)
	h, err := b.q.hold(t.Context(), []string{lot})
	if err != nil {
		t.Fatal(err)
	}
	l, _, _ := b.hand(lot)
	next := make(chan answer)
	go func() { next <- b.call("GET", "/admin/quarantine?limit=1000", nil) }()
	lost := session.lost.Load()
	close(lost.gone)
	_ = lost.SetReadDeadline(time.Now()) // the reader wakes up, and sees that it is gone
	<-l.conn.NotifyClose(make(chan *amqp.Error, 1))
	if l.close(); b.depth(lot) != 500 {
		t.Error("the look was given up before the messages were back")
	}
	h.release()
	if a := <-next; a.status != http.StatusOK || len(decode[listed](b, a).Items) != 500 {
		t.Errorf("the next look finds %d messages: %d", len(decode[listed](b, a).Items), a.status)
	}
}

// What was lost and did not come back in time: the queue is not taken for empty, neither is it closed for ever.
func TestQueueThatLacksMessagesIsNotLookedInto(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.q.lost[lot] = lost{2, time.Now()}
	for _, a := range []answer{b.call("GET", "/admin/quarantine", nil), b.call("GET", "/admin/quarantine/"+lot+"/m-000", nil),
		b.call("POST", "/admin/quarantine/replay", order{"class": "TIMEOUT"})} {
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	b.parkAll(ids(0, 2)...)
	if got := b.list("").keys(); len(got) != 2 || len(b.q.lost) > 0 {
		t.Errorf("all are back, and listed are %q", got)
	}
	b.q.lost[lot] = lost{3, time.Now().Add(-lostFor)}
	if got := b.list("").keys(); len(got) != 2 {
		t.Errorf("later, listed are %q", got)
	}
}

// Waiting for the queue takes no connection of the database from those who work.
func TestWaitingKeepsNoConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(c *Config) { c.LockWait = patience })
	h, err := b.q.hold(t.Context(), []string{lot})
	if err != nil {
		t.Fatal(err)
	}
	const waiting = 40 // more than the pool has
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, waiting)
	for range waiting {
		go func() {
			_, err := b.q.hold(ctx, []string{lot})
			ended <- err
		}()
	}
	for range 20 {
		if _, err := b.pool.Exec(t.Context(), `select 1`); err != nil {
			t.Fatal(err)
		}
		if n := b.pool.Stat().AcquiredConns(); n > 1 {
			t.Fatalf("%d connections are taken", n)
		}
	}
	leave()
	for range waiting {
		if err := <-ended; err == nil {
			t.Error("two have the queue")
		}
	}
	h.release()
	if other, err := b.q.tryHold(t.Context(), lot); err != nil || other == nil {
		t.Errorf("afterwards nobody gets it: %v", fmt.Sprint(err))
	} else {
		other.release()
	}
}
