package messaging

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/retry"
)

// ConsumerConfig says what one consumer takes and what it does when that fails.
type ConsumerConfig struct {
	Queue   string
	Handler Handler
	Policy  retry.Policy
	Road    Road
	Service string // named in quarantined messages (x-service); default the session's name

	Prefetch       int           // deliveries the broker hands out without an ack; default 200, and no more than a minute's of RateLimit
	Concurrency    int           // batches handled at the same time; default 2
	BatchSize      int           // messages in one batch at most; default 50, and never more than Prefetch
	BatchWait      time.Duration // how long a batch that is not full waits for more; default 0, it takes what is there
	HandlerTimeout time.Duration // deadline of one call of the handler; default 30 s
	Grace          time.Duration // how long running handlers may go on after the stop; default 15 s

	Classifiers []retry.Classifier // recognise errors of libraries; those of the AMQP client are known (Classify)

	Breaker   *retry.BreakerConfig // stops the consumer while its dependency is sick; nil: nothing does
	Budget    bool                 // retries are a bounded share of the work
	RateLimit float64              // messages started per second at most; 0: no limit

	// Probe says whether the dependency behind the handler is there; it is given two seconds. With it the breaker knows sooner, and
	// messages that fail while it is not there spend no attempt. nil: only failures tell.
	Probe func(context.Context) error
	// Starts keeps note of messages that may be ending the process; nil: one that does comes back for ever.
	Starts Starts
	// Observe is told of every attempt that did not end well, when it is decided what becomes of the message. It is called between the
	// handler and the ack, so it must neither wait nor fail. nil: nobody is told.
	Observe func(Attempt)

	Faults *fault.Points // fail on order before and after an ack; default none

	maxHold time.Duration // for how long a delivery is held that is not started; default defaultMaxHold
}

// defaultMaxHold is well below the broker's consumer_timeout, 30 minutes by default.
const defaultMaxHold = 10 * time.Minute

// mostHeld is for how long a delivery is held in all, its waits between two attempts included: 25 minutes. What would wait for longer
// does not wait here.
func (c *ConsumerConfig) mostHeld() time.Duration { return c.maxHold * 5 / 2 }

// Consumer takes the messages of one queue through a handler.
type Consumer struct {
	ConsumerConfig
	session *Session
	metrics queueMetrics
	dampers *dampers
	notes   notes
	rnd     func() float64
	now     func() time.Time

	attached atomic.Uint64          // generation of the link it consumes from; 0 is none
	stuck    atomic.Pointer[string] // why messages that are given up cannot leave
}

// fetchAhead is for how long the deliveries last that a consumer with a rate limit takes at once.
const fetchAhead = time.Minute

// NewConsumer makes a consumer of this session; call it before Run.
func (s *Session) NewConsumer(c ConsumerConfig) (*Consumer, error) {
	c.Service = cmp.Or(c.Service, s.Name)
	c.Prefetch = cmp.Or(c.Prefetch, 200)
	c.Concurrency = cmp.Or(c.Concurrency, 2)
	c.BatchSize = cmp.Or(c.BatchSize, 50)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 30*time.Second)
	c.Grace = cmp.Or(c.Grace, 15*time.Second)
	c.maxHold = cmp.Or(c.maxHold, defaultMaxHold)
	switch {
	case c.Queue == "" || len(c.Queue) > maxShort || c.Handler == nil:
		return nil, errors.New("a consumer needs a handler and a queue, whose name has 255 bytes at most")
	case c.Prefetch < 1 || c.Prefetch > 65535 || c.Concurrency < 1 || c.BatchSize < 1 || c.BatchWait < 0:
		return nil, fmt.Errorf("consumer of %s: prefetch must be 1 to 65535, concurrency and batch size at least 1", c.Queue)
	case c.RateLimit < 0 || math.IsNaN(c.RateLimit) || math.IsInf(c.RateLimit, 0):
		return nil, fmt.Errorf("consumer of %s: the rate limit must be a number of messages per second, or 0 for none", c.Queue)
	case c.Policy.MaxAttempts < 1 || c.Policy.MaxAttempts > mostSpent:
		return nil, fmt.Errorf("consumer of %s: the policy must allow 1 to %d attempts", c.Queue, mostSpent)
	}
	if err := c.Road.check(); err != nil {
		return nil, fmt.Errorf("consumer of %s: %w", c.Queue, err)
	}
	if c.RateLimit > 0 {
		// What is held for longer than the broker's consumer_timeout costs the channel, so no more is taken than can be started soon.
		c.Prefetch = int(min(float64(c.Prefetch), max(1, c.RateLimit*fetchAhead.Seconds())))
	}
	c.BatchSize = min(c.BatchSize, c.Prefetch)
	c.Classifiers = append(slices.Clone(c.Classifiers), Classify)
	consumer := &Consumer{
		ConsumerConfig: c, session: s, metrics: s.Metrics.of(c.Queue), dampers: newDampers(c, s), notes: notes{starts: c.Starts, consumer: c.Queue},
		rnd: rand.Float64, now: time.Now,
	}
	s.Metrics.tell(c)
	s.m.Lock()
	defer s.m.Unlock()
	s.consumers = append(s.consumers, consumer)
	return consumer, nil
}

// Run consumes until ctx ends, attaching anew to each session. When ctx ends it takes no more, lets running handlers finish
// on a live context for at most Grace, gives everything else back without spending an attempt, and returns nil.
func (c *Consumer) Run(ctx context.Context) error {
	live, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopGrace := context.AfterFunc(ctx, func() {
		grace := time.NewTimer(c.Grace)
		defer grace.Stop()
		select {
		case <-grace.C:
			cancel() // what still runs is told to stop
		case <-live.Done():
		}
	})
	defer stopGrace()

	// The workers outlive the attachments: a handler that is at work when the session breaks finishes, and no second set
	// of workers competes with it.
	work := make(chan *batch, c.Concurrency)
	var workers sync.WaitGroup
	for range c.Concurrency {
		workers.Go(func() {
			for b := range work {
				c.handle(live, b)
			}
		})
	}
	workers.Go(func() { c.dampers.watch(ctx) })
	var generation uint64
	for {
		l, err := c.session.await(ctx, generation)
		if err != nil {
			break
		}
		generation = l.generation
		a, err := c.attach(l, work, live)
		if err != nil {
			l.fail(fmt.Errorf("consume %s: %w", c.Queue, err))
			continue
		}
		a.run(ctx)
		c.attached.Store(0)
	}
	close(work)
	return c.waitFor(&workers, live)
}

// waitFor waits for the workers: until the grace is over, and then a little for those that heed their context.
func (c *Consumer) waitFor(workers *sync.WaitGroup, live context.Context) error {
	idle := make(chan struct{})
	go func() {
		workers.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-live.Done():
	}
	select {
	case <-idle:
		return nil
	case <-time.After(lastSecond):
		return fmt.Errorf("a handler of %s does not end", c.Queue)
	}
}

// lastSecond is what a handler gets to return after its context has ended.
const lastSecond = time.Second

// ready says whether this consumer takes messages from the present session, and can get rid of those it gives up.
func (c *Consumer) ready(generation uint64) error {
	if c.attached.Load() != generation {
		return fmt.Errorf("the consumer of %s is not running", c.Queue)
	}
	if why := c.dampers.paused(c.now()); why != nil {
		return fmt.Errorf("the consumer of %s is paused: %w", c.Queue, why)
	}
	if reason := c.stuck.Load(); reason != nil {
		return fmt.Errorf("the consumer of %s cannot get rid of a message: %s", c.Queue, *reason)
	}
	return nil
}
