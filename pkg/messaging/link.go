package messaging

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is one life of a session: two connections to one broker. It is never repaired. When anything in it breaks, it is
// closed as a whole and a link of the next generation takes its place, so no ack or confirm can ever be taken for
// one of another life.
type link struct {
	session    *Session
	generation uint64
	address    string // host and vhost, without credentials

	brokerMajor int // first number of the broker's version, 0 when it does not say

	publishing, consuming *amqp.Connection
	publishWire           *wire
	publisher             *publisher

	m     sync.Mutex
	wires []*wire
	isCut bool

	broken  chan struct{} // closed when the link is to be given up
	once    sync.Once
	why     error // valid once broken is closed
	blocked atomic.Pointer[string]
	resumed chan struct{}   // gets a token when the broker ends blocking
	asks    chan chan error // wants to know whether the queues exist
	mended  chan struct{}   // wants the topology declared again
}

// connect dials the brokers in turn and sets up the first that lets it.
func (s *Session) connect(ctx context.Context) (*link, error) {
	var failures []error
	for _, b := range s.brokers {
		l, err := s.open(ctx, b)
		if err == nil {
			return l, nil
		}
		var conflict *TopologyConflict
		if errors.As(err, &conflict) || ctx.Err() != nil {
			return nil, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", b.address(), err))
	}
	return nil, errors.Join(failures...)
}

func (s *Session) open(ctx context.Context, b broker) (*link, error) {
	s.generation++
	l := &link{
		session: s, generation: s.generation, address: b.address(),
		broken: make(chan struct{}), resumed: make(chan struct{}, 1), asks: make(chan chan error), mended: make(chan struct{}, 1),
	}
	err := l.within(ctx, "set up", func() (err error) {
		if l.consuming, _, err = l.dial(ctx, b, "consume"); err != nil {
			return err
		}
		l.brokerMajor = majorVersion(l.consuming.Properties["version"])
		if l.publishing, l.publishWire, err = l.dial(ctx, b, "publish"); err != nil {
			return err
		}
		if err := l.declare(); err != nil {
			return err
		}
		l.publisher = newPublisher(l)
		return l.publisher.open()
	})
	if err != nil {
		l.close(err)
		return nil, err
	}
	go l.watch()
	go l.publisher.run()
	return l, nil
}

func (l *link) dial(ctx context.Context, b broker, purpose string) (*amqp.Connection, *wire, error) {
	var w *wire
	conn, err := l.session.handshake(ctx, b, purpose, func(conn net.Conn) net.Conn {
		w = newWire(conn, l.session.WriteTimeout, func(err error) { l.fail(fmt.Errorf("write to the %s connection: %w", purpose, err)) })
		l.track(w)
		return w
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", purpose, err)
	}
	return conn, w, nil
}

// within bounds calls to the broker, which the client library lets wait for ever: when the time is over or ctx ends, the
// network connections are cut, and whatever waits for an answer fails.
func (l *link) within(ctx context.Context, what string, call func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*l.session.ConnectTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		l.fail(fmt.Errorf("%s: %w", what, context.Cause(ctx)))
		l.cut()
	})
	err := call()
	if !stop() {
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	}
	return err
}

func (l *link) track(w *wire) {
	l.m.Lock()
	defer l.m.Unlock()
	l.wires = append(l.wires, w)
	if l.isCut {
		_ = w.Close()
	}
}

func (l *link) cut() {
	l.m.Lock()
	defer l.m.Unlock()
	l.isCut = true
	for _, w := range l.wires {
		_ = w.Close()
	}
}

// declare declares the topology on a channel of its own.
func (l *link) declare() error {
	ch, err := l.consuming.Channel()
	if err != nil {
		return fmt.Errorf("open channel: %w", err)
	}
	if err := l.session.Topology.declare(ch); err != nil {
		return err
	}
	return ch.Close()
}

// fail gives the link up; the first reason counts.
func (l *link) fail(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.broken)
	})
}

// watch hears what the broker says about the connections themselves.
func (l *link) watch() {
	consumingClosed := l.consuming.NotifyClose(make(chan *amqp.Error, 1))
	publishingClosed := l.publishing.NotifyClose(make(chan *amqp.Error, 1))
	blockings := l.publishing.NotifyBlocked(make(chan amqp.Blocking, 8))
	for {
		select {
		case err := <-consumingClosed:
			l.fail(closeError("consuming connection", err))
			return
		case err := <-publishingClosed:
			l.fail(closeError("publishing connection", err))
			return
		case b, open := <-blockings:
			if !open {
				blockings = nil
				continue
			}
			l.block(b)
		case <-l.broken:
			return
		}
	}
}

func (l *link) block(b amqp.Blocking) {
	if b.Active {
		l.blocked.Store(&b.Reason)
		l.publishWire.setPatient(true)
		l.session.Logger.Warn("broker blocks publishing", "reason", b.Reason)
		return
	}
	l.blocked.Store(nil)
	l.publishWire.setPatient(false)
	select {
	case l.resumed <- struct{}{}:
	default:
	}
	l.session.Logger.Info("broker takes publishings again")
}

func closeError(what string, err *amqp.Error) error {
	if err == nil {
		return fmt.Errorf("%s closed", what)
	}
	if err.Code == amqp.SyntaxError && !err.Server {
		// The library gives a connection up that brings a frame it cannot read. The guard lets none through that is known; if there
		// is one, the message stays where it is and is met again.
		return fmt.Errorf("%s closed: a message at the head of a queue cannot be read; take it out by the management page: %w", what, err)
	}
	return fmt.Errorf("%s closed: %w", what, err)
}

// close says good-bye within the session's CloseTimeout, whatever the peer does.
func (l *link) close(why error) {
	l.fail(why)
	deadline := time.Now().Add(l.session.CloseTimeout)
	var closing sync.WaitGroup
	for _, conn := range []*amqp.Connection{l.publishing, l.consuming} {
		if conn != nil {
			closing.Go(func() { _ = conn.CloseDeadline(deadline) }) // an error says that it was broken already
		}
	}
	cut := time.AfterFunc(l.session.CloseTimeout+l.session.CloseTimeout/4, l.cut)
	closing.Wait()
	cut.Stop()
	l.cut()
}
