package messaging

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"example.com/banking/pkg/retry"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Publish sends all messages and waits for the broker's confirms, many outstanding at once. outcomes[i] is what became of
// messages[i]. The error says why some are Unknown and is nil when none is. It returns when every outcome is known, or
// when ctx or the session's PublishTimeout ends; without a session, or with a broker that blocks publishing, it waits
// until then.
//
// A message that the broker refuses for itself, e.g. for a body above its size limit, takes the outcomes of everything that was
// outstanding along and is in the error as a *Refused; publish one by one to find the culprit. A message that cannot be put on
// the wire at all is not sent and is named by an *Unpublishable in the error. No other error holds either of them. Publish is
// safe for concurrent use.
func (s *Session) Publish(ctx context.Context, messages []Publishing) (outcomes []Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.PublishTimeout)
	defer cancel()
	for generation := uint64(0); ; {
		l, err := s.await(ctx, generation)
		if err != nil {
			outcomes = make([]Outcome, len(messages))
			s.Metrics.count(outcomes)
			return outcomes, publishError(err)
		}
		outcomes, err = l.publish(ctx, messages)
		if !errors.Is(err, errNotStarted) {
			return outcomes, err
		}
		generation = l.generation
	}
}

// errNotStarted says that a link broke before it took a job; nothing of it has been sent.
var errNotStarted = errors.New("the session broke")

func publishError(err error) error {
	if err == nil {
		return nil
	}
	return retry.Wrap(retry.Timeout, fmt.Errorf("publish: %w", err))
}

// publish is Session.Publish over one link.
func (l *link) publish(ctx context.Context, messages []Publishing) ([]Outcome, error) {
	outcomes := make([]Outcome, len(messages))
	if len(messages) == 0 {
		return outcomes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, l.session.PublishTimeout)
	defer cancel()
	j := &job{messages: messages, sent: make([]sending, len(messages)), written: make(chan struct{})}
	err := l.publisher.publish(ctx, j, outcomes)
	if !errors.Is(err, errNotStarted) {
		l.session.Metrics.count(outcomes)
	}
	return outcomes, publishError(err)
}

// Unpublishable names a message that was never sent because AMQP cannot carry it: a property over 255 bytes, headers
// of an unknown type, or too many of them for one frame. Its class is VALIDATION.
type Unpublishable struct {
	Index int // in the slice given to Publish
	Err   error
}

func (u *Unpublishable) Error() string { return fmt.Sprintf("message %d: %v", u.Index, u.Err) }

func (u *Unpublishable) Unwrap() error { return u.Err }

// Refused says that the broker closed the channel for publishing because of a message that was outstanding on it: its body is
// too large (311 or 406, depending on the version), or a property makes no sense. The same message would be refused again.
// A connection that broke, a missing exchange or right, and a broker that shuts down are never a Refused.
type Refused struct {
	Exception *amqp.Error // the broker's words
}

func (r *Refused) Error() string { return r.Exception.Error() }

// refusal is why a channel for publishing closed. What is no refusal of a message is only text, so that nobody takes the
// client library's own *amqp.Error for a lost connection (501, 504) for the broker's word about a message.
func refusal(exception *amqp.Error, connected bool) error {
	const what = "channel for publishing"
	if exception != nil && exception.Server && connected {
		switch exception.Code {
		case amqp.ContentTooLarge, amqp.PreconditionFailed:
			return fmt.Errorf("%s closed: %w", what, &Refused{exception})
		}
	}
	return blameless(closeError(what, exception))
}

// blameless keeps the text of a cause and hides what it is.
func blameless(cause error) error { return fmt.Errorf("%v", cause) }

// unpublishables finds the messages that an error of Publish names, by index.
func unpublishables(err error) map[int]error {
	found := map[int]error{}
	var search func(error)
	search = func(err error) {
		if u, ok := err.(*Unpublishable); ok {
			found[u.Index] = u.Err
			return
		}
		switch wrapping := err.(type) {
		case interface{ Unwrap() error }:
			search(wrapping.Unwrap())
		case interface{ Unwrap() []error }:
			for _, part := range wrapping.Unwrap() {
				search(part)
			}
		}
	}
	search(err)
	return found
}

// job is one call of Publish on its way through the writer.
type job struct {
	messages []Publishing
	sent     []sending     // by index; valid once written is closed
	written  chan struct{} // closed when all has been handed to the broker, or will never be
	channel  *confirming
	err      error // valid once written is closed
	dropped  bool  // the caller has gone; guarded by publisher.m
}

// sending is one message between its writing and its confirm.
type sending struct {
	confirm     *amqp.DeferredConfirmation // nil: not sent
	correlation string                     // "" unless mandatory
	returned    bool                       // guarded by publisher.m
}

// publisher writes everything that a link publishes.
//
// One goroutine writes, so that a caller is never inside a write, which no context can interrupt: it hands its job over
// and waits, and is free at its deadline. Confirms are waited for by the callers, each for its own.
type publisher struct {
	link    *link
	jobs    chan *job
	channel *confirming // the writer's own

	m        sync.Mutex
	inFlight map[string]*sending // mandatory messages by correlation
	numbered uint64
}

func newPublisher(l *link) *publisher {
	return &publisher{link: l, jobs: make(chan *job), inFlight: map[string]*sending{}}
}

// run writes jobs until the link breaks. A channel exception is the end of one channel: the outcomes of what was
// outstanding on it are unknown, and the next channel starts its confirms anew.
func (p *publisher) run() {
	for {
		select {
		case j := <-p.jobs:
			p.write(j)
			close(j.written)
		case <-p.channel.ended:
			if err := p.reopen(); err != nil {
				p.link.fail(err)
				return
			}
		case <-p.link.broken:
			return
		}
	}
}

// unblocked waits while the broker blocks publishing; it is false when the link broke meanwhile.
func (p *publisher) unblocked() bool {
	for p.link.blocked.Load() != nil {
		select {
		case <-p.link.resumed:
		case <-p.link.broken:
			return false
		}
	}
	return true
}

func (p *publisher) reopen() error {
	err := p.channel.err
	if p.link.publishing.IsClosed() || p.channel.exception == nil || p.channel.exception.Code == amqp.NotFound {
		return err // the connection, or an exchange is gone: only a new session declares it
	}
	p.link.session.Logger.Error("broker refused a publishing and closed the channel", "error", err)
	return p.open()
}

func (p *publisher) open() error {
	ch, err := p.link.publishing.Channel()
	if err != nil {
		return fmt.Errorf("open channel for publishing: %w", err)
	}
	if err := ch.Confirm(false); err != nil {
		return fmt.Errorf("ask for confirms: %w", err)
	}
	p.channel = &confirming{
		conn:    p.link.publishing,
		ch:      ch,
		returns: ch.NotifyReturn(make(chan amqp.Return, 256)),
		closed:  ch.NotifyClose(make(chan *amqp.Error, 1)),
		fences:  make(chan chan struct{}),
		ended:   make(chan struct{}),
	}
	go p.channel.listen(p.markReturned)
	return nil
}

func (p *publisher) write(j *job) {
	j.channel = p.channel
	for i := range j.messages {
		if !p.unblocked() {
			j.err = blameless(p.link.why)
			return
		}
		if err := p.writeOne(j, i); err != nil {
			j.err = errors.Join(j.err, err)
			var unpublishable *Unpublishable
			if !errors.As(err, &unpublishable) {
				return // the channel is gone, or the caller
			}
		}
	}
}

func (p *publisher) writeOne(j *job, i int) error {
	m := j.messages[i]
	if err := fitForWire(&m); err != nil {
		return &Unpublishable{Index: i, Err: retry.Wrap(retry.Validation, err)}
	}
	if !p.register(j, i, &m) {
		return context.Canceled
	}
	confirm, err := j.channel.ch.PublishWithDeferredConfirm(m.Exchange, m.RoutingKey, m.Mandatory, false, m.Publishing)
	j.sent[i].confirm = confirm
	if err != nil {
		return blameless(err) // the reason is heard when the channel closes
	}
	return nil
}

// register makes a message known to those who hear of returns. A return carries no tag, only the message, so it is told
// apart by messageId. Where that is missing or already in flight the message gets a number in a header of its own.
func (p *publisher) register(j *job, i int, m *Publishing) bool {
	p.m.Lock()
	defer p.m.Unlock()
	if j.dropped {
		return false
	}
	if !m.Mandatory {
		return true
	}
	correlation := m.MessageId
	if p.inFlight[correlation] != nil || correlation == "" {
		for correlation == "" || p.inFlight[correlation] != nil {
			p.numbered++
			correlation = "#" + strconv.FormatUint(p.numbered, 10)
		}
		headers := make(amqp.Table, len(m.Headers)+1)
		for name, value := range m.Headers {
			headers[name] = value
		}
		headers[headerCorrelation] = correlation
		m.Headers = headers
	}
	j.sent[i].correlation = correlation
	p.inFlight[correlation] = &j.sent[i]
	return true
}

func (p *publisher) markReturned(r amqp.Return) {
	correlation := text(r.Headers, headerCorrelation)
	if correlation == "" {
		correlation = r.MessageId
	}
	p.m.Lock()
	defer p.m.Unlock()
	if s := p.inFlight[correlation]; s != nil {
		s.returned = true
	}
}

// publish is the caller's side of a job.
func (p *publisher) publish(ctx context.Context, j *job, outcomes []Outcome) error {
	if err := ctx.Err(); err != nil {
		return p.link.waiting(err) // select would toss a coin
	}
	select {
	case p.jobs <- j:
	case <-p.link.broken:
		return errors.Join(errNotStarted, blameless(p.link.why))
	case <-ctx.Done():
		return p.link.waiting(ctx.Err())
	}
	defer p.drop(j)
	select {
	case <-j.written:
	case <-p.link.broken:
		return blameless(p.link.why) // the writer may be stuck; it ends with the connection
	case <-ctx.Done():
		return p.link.waiting(ctx.Err())
	}
	err := p.collect(ctx, j, outcomes)
	if p.anyReturned(j, outcomes) {
		p.link.mend()
	}
	return errors.Join(j.err, err)
}

// waiting explains a deadline that ended.
func (l *link) waiting(err error) error {
	if reason := l.blocked.Load(); reason != nil {
		return fmt.Errorf("the broker blocks publishing (%s): %w", *reason, err)
	}
	return err
}

func (p *publisher) drop(j *job) {
	p.m.Lock()
	defer p.m.Unlock()
	j.dropped = true
	for i := range j.sent {
		if correlation := j.sent[i].correlation; correlation != "" {
			delete(p.inFlight, correlation)
		}
	}
}
