package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/banking/pkg/retry"
)

// SessionConfig says how to reach the broker and what to declare there.
type SessionConfig struct {
	URLs     []string // AMQP URLs of the brokers of one cluster, tried in turn; their parameters win over what stands below
	Name     string   // of the service; shown by the broker beside each connection
	Topology Topology
	Logger   *slog.Logger // default slog.Default()
	Metrics  *Metrics     // default: counted, registered nowhere

	ConnectTimeout time.Duration // one attempt to connect, handshake included; default 10 s
	Heartbeat      time.Duration // a peer silent for three of these is dead; whole seconds, default 5 s
	WriteTimeout   time.Duration // a peer that takes no bytes for this long is dead; default 10 s
	PublishTimeout time.Duration // upper bound of one Publish; default 10 s
	CloseTimeout   time.Duration // upper bound of saying good-bye; default 3 s
	ReconnectMin   time.Duration // first pause before connecting anew; default 100 ms
	ReconnectMax   time.Duration // longest such pause; default 10 s
	CheckInterval  time.Duration // how often the topology is looked after; default 30 s
}

// Session owns the two connections to the broker, one that publishes and one that consumes: the broker stops reading from
// a publishing connection when it runs short of memory, and acks must not be stuck behind that. When anything closes, all
// of it is made anew under the next generation, and an ack of an earlier generation is dropped.
type Session struct {
	SessionConfig
	brokers    []broker
	urlError   error
	generation uint64 // of the last link; Run's own
	turns      turns  // of the consumers' batches

	m         sync.Mutex
	link      *link         // nil while there is none
	changed   chan struct{} // closed when link changes
	lost      error         // why there is none, or why there was none last
	failures  int           // attempts and short lives in a row
	relapses  int           // short lives among them
	since     time.Time     // when link came up
	consumers []*Consumer
}

// lasting is how long a link must hold before its predecessors' failures are forgotten. Until then the pauses between
// links grow: a message that breaks every connection which reads it must not become a hot loop.
const lasting = 10 * time.Second

// NewSession makes a session. Nothing is connected before Run.
func NewSession(c SessionConfig) *Session {
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, 10*time.Second)
	c.Heartbeat = cmp.Or(c.Heartbeat, 5*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 10*time.Second)
	c.PublishTimeout = cmp.Or(c.PublishTimeout, 10*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, 3*time.Second)
	c.ReconnectMin = cmp.Or(c.ReconnectMin, 100*time.Millisecond)
	c.ReconnectMax = cmp.Or(c.ReconnectMax, 10*time.Second)
	c.CheckInterval = cmp.Or(c.CheckInterval, 30*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.Metrics = cmp.Or(c.Metrics, NewMetrics())
	s := &Session{SessionConfig: c, turns: newTurns(), changed: make(chan struct{}), lost: errors.New("not started")}
	for i, url := range c.URLs {
		b, err := parseBroker(url)
		if err != nil {
			// The text of an URL holds a password, so neither it nor the parser's error is repeated.
			s.urlError = fmt.Errorf("AMQP URL number %d is not valid", i+1)
		}
		s.brokers = append(s.brokers, b)
	}
	if len(c.URLs) == 0 {
		s.urlError = errors.New("no AMQP URL")
	}
	return s
}

// Run connects and keeps connected until ctx ends; a broker that is missing is waited for, without limit. It returns nil
// after a clean close, or an error that no waiting can cure: a *TopologyConflict or an URL that is none.
func (s *Session) Run(ctx context.Context) error {
	if s.urlError != nil {
		return s.urlError
	}
	pauses := retry.Backoff{Base: s.ReconnectMin, Factor: 2, Cap: s.ReconnectMax}
	for ctx.Err() == nil {
		l, err := s.connect(ctx)
		if err == nil {
			s.up(l)
			err = l.serve(ctx)
			l.close(cmp.Or(err, errStopped))
		}
		var conflict *TopologyConflict
		if errors.As(err, &conflict) {
			s.down(err)
			return err
		}
		if ctx.Err() != nil {
			break
		}
		failures := s.down(err)
		pause := retry.Jitter(pauses.Delay(failures), 0.5, rand.Float64())
		s.Logger.Warn("broker session lost", "error", err, "failures", failures, "next_try", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	s.down(errStopped)
	return nil
}

var errStopped = errors.New("stopped")

func (s *Session) up(l *link) {
	s.m.Lock()
	defer s.m.Unlock()
	s.link, s.since = l, time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
	s.Metrics.up.Set(1)
	s.Metrics.sessions.Inc()
	s.Logger.Info("broker session up", "broker", l.address, "generation", l.generation)
}

// down notes why there is no link and returns how many attempts and short lives have failed in a row.
func (s *Session) down(why error) int {
	s.m.Lock()
	defer s.m.Unlock()
	if s.link != nil {
		s.relapses++
		if time.Since(s.since) >= lasting {
			s.failures, s.relapses = 0, 0
		}
	}
	s.failures++
	s.link, s.lost = nil, why
	s.Metrics.up.Set(0)
	return s.failures
}

// await waits for a link younger than a generation.
func (s *Session) await(ctx context.Context, after uint64) (*link, error) {
	for {
		s.m.Lock()
		l, changed, lost := s.link, s.changed, s.lost
		s.m.Unlock()
		if l != nil && l.generation > after {
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if l != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("not connected to the broker: %w", blameless(lost))
		}
	}
}

// Ready returns nil when messages can flow, else why not: not connected, blocked by the broker, a consumer not attached or
// stuck, a queue missing. Whether queues exist is asked at the broker at most every five seconds.
func (s *Session) Ready(ctx context.Context) error {
	s.m.Lock()
	l, lost, relapses, since, consumers := s.link, s.lost, s.relapses, s.since, s.consumers
	s.m.Unlock()
	if l == nil {
		return fmt.Errorf("not connected to the broker: %w", lost)
	}
	if relapses > 1 && time.Since(since) < lasting {
		return fmt.Errorf("the connection to the broker has broken %d times in a row: %w", relapses, lost)
	}
	if reason := l.blocked.Load(); reason != nil {
		return fmt.Errorf("the broker blocks publishing: %s", *reason)
	}
	for _, c := range consumers {
		if err := c.ready(l.generation); err != nil {
			return err
		}
	}
	return l.queuesExist(ctx)
}
