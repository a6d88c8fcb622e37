package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"example.com/banking/internal/invariants"
	"example.com/banking/pkg/messaging"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	amqp "github.com/rabbitmq/amqp091-go"
)

// quarantines shows the invariants what the broker holds. Into a quarantine it looks through the service that owns it: that one keeps all who
// look and who replay out of each other's way. Where no service answers it looks itself.
type quarantines struct {
	*broker
	services []*api // none without their addresses and the token
	admin    []string

	// While a service is read: how often it is asked whether it lives, how long it may take to say so, and for how long it is left alone
	// when it did not.
	aliveEvery, aliveTime, silentTime time.Duration
	silent                            map[*api]time.Time // until when
}

func newQuarantines(b *broker, to *endpoints) *quarantines {
	q := &quarantines{broker: b, aliveEvery: 2 * time.Second, aliveTime: 8 * time.Second, silentTime: 30 * time.Second, silent: map[*api]time.Time{}}
	if to.need("ADMIN_TOKEN", "ACCOUNT_URL", "TRANSFER_URL") == nil {
		q.services, q.admin = append([]*api{to.account(), to.transfer()}, to.others()...), asAdmin(to)
	}
	return q
}

// errOccupied says that somebody else holds messages of the quarantine right now, so that nobody can say what is in it.
var errOccupied = errors.New("somebody else looks into it, or replays from it")

// errSilent says that a service takes calls and answers none, not even whether it lives: it is paused, or hangs.
var errSilent = errors.New("does not answer, not even whether it lives")

// Parked visits each message of a quarantine queue; nothing is taken.
func (q *quarantines) Parked(ctx context.Context, queue string, visit func(invariants.Parked)) error {
	var silent error
	for _, service := range q.services {
		seen := 0
		err := q.through(ctx, service, queue, func(p invariants.Parked) {
			seen++
			visit(p)
		})
		switch {
		case err == nil:
			return nil
		case refusedWith(err, http.StatusConflict):
			return fmt.Errorf("%s: %w", queue, errOccupied)
		case seen > 0 || ctx.Err() != nil:
			return err
		case errors.Is(err, errSilent):
			silent = errors.Join(silent, err)
		}
		// It is another service's queue, or the service is away and in nobody's way.
	}
	if silent != nil { // the queue may be its own, and it may hold messages of it
		return fmt.Errorf("%s: %w", queue, silent)
	}
	return q.peek(ctx, queue, func(message amqp.Delivery) { visit(parkedIn(queue, message)) })
}

// through asks a service for all the messages of a queue. They come in few large pages, read one by one: a page costs the broker a look at
// all that stands before it.
func (q *quarantines) through(ctx context.Context, service *api, queue string, visit func(invariants.Parked)) error {
	if time.Now().Before(q.silent[service]) {
		return fmt.Errorf("the %s service %w", service.name, errSilent)
	}
	ctx, cancel := context.WithTimeout(ctx, throughTime) // a stream has no deadline of its own
	defer cancel()
	ctx, stop := q.whileAlive(ctx, service)
	defer stop()
	query := url.Values{"queue": {queue}, "limit": {"100000"}}
	for {
		var end parkedEnd
		err := service.stream(ctx, http.MethodGet, "/admin/quarantine?"+query.Encode(), nil, func(item jsontext.Value) error {
			var m parkedMessage
			if err := json.Unmarshal(item, &m); err != nil {
				return err
			}
			visit(invariants.Parked{Queue: queue, MessageID: m.MessageID, Type: m.Type, TransferID: m.TransferID, Reason: m.Reason})
			return nil
		}, &end, q.admin...)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errSilent):
			q.silent[service] = time.Now().Add(q.silentTime)
			return fmt.Errorf("the %s service %w", service.name, errSilent)
		case err != nil:
			return err
		case end.Incomplete != "":
			return fmt.Errorf("the %s service does not show all of %s: %s", service.name, queue, foreign(end.Incomplete))
		case end.Next == nil:
			return nil
		}
		query.Set("after", *end.Next)
	}
}

// whileAlive ends the context when the service no longer says that it lives. A deep queue may keep one silent for long, a paused service
// says nothing at all; without the difference a look at every queue of a paused one would take throughTime.
func (q *quarantines) whileAlive(ctx context.Context, service *api) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var asking sync.WaitGroup
	asking.Go(func() {
		tick := time.NewTicker(q.aliveEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			once, done := context.WithTimeout(ctx, q.aliveTime)
			_, err := service.do(once, http.MethodGet, "/healthz", nil, nil)
			if err != nil && errors.Is(once.Err(), context.DeadlineExceeded) { // who refuses lives, and who is gone ends the call itself
				cancel(errSilent)
			}
			done()
		}
	})
	return ctx, func() { cancel(nil); asking.Wait() }
}

const (
	throughTime = 2 * time.Minute // for what a service has to say of a queue
	// peekChunk is how many messages may be on their way at once. A body has a MiB at most, and the client library takes in all that comes.
	peekChunk = 64
	// peekPause is how long the next message of a queue may take to come. The broker pushes thousands in a second, but it first has to take
	// back what somebody has just looked at, and its machine may be busy.
	peekPause = 15 * time.Second
)

// peek shows every message that waits in a queue and leaves them there: each is fetched and none acknowledged. They are pushed, because to
// ask for one at a time would take half a minute for 10,000, and meanwhile the quarantine looks empty to everybody else; and in chunks, each
// to a channel of its own. The channels are closed in the order of what they hold, because that is the order in which it stands then.
func (b *broker) peek(ctx context.Context, name string, visit func(amqp.Delivery)) error {
	conn, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	asking, err := conn.Channel()
	if err != nil {
		return err
	}
	waiting, err := b.depth(asking, name)
	if err != nil {
		return fmt.Errorf("counting queue %s: %w", name, err)
	}
	var held []*amqp.Channel
	defer func() {
		for _, channel := range held {
			_ = channel.Close()
		}
	}()
	for waiting > 0 {
		n := min(waiting, peekChunk)
		channel, err := conn.Channel()
		if err != nil {
			return fmt.Errorf("looking into queue %s: %w", name, err)
		}
		held = append(held, channel)
		if err := chunk(ctx, channel, name, int(n), visit); err != nil {
			return fmt.Errorf("looking into queue %s: %w", name, err)
		}
		waiting -= n
	}
	return nil
}

// chunk shows n messages. They are held until the channel is closed.
func chunk(ctx context.Context, channel *amqp.Channel, name string, n int, visit func(amqp.Delivery)) error {
	if err := channel.Qos(n, 0, false); err != nil {
		return err
	}
	messages, err := channel.ConsumeWithContext(ctx, name, "bank", false, false, false, false, nil)
	if err != nil {
		return err
	}
	patience := time.NewTimer(peekPause)
	defer patience.Stop()
	for range n {
		select {
		case message, open := <-messages:
			if !open {
				return errors.New("the broker has ended it")
			}
			visit(message)
			patience.Reset(peekPause)
		case <-patience.C:
			return errOccupied // and was quicker with the rest
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return channel.Cancel("bank", false)
}

// parkedIn reads as much of a message as the invariants want to know.
func parkedIn(queue string, message amqp.Delivery) invariants.Parked {
	parked := invariants.Parked{Queue: queue, Reason: messaging.ReadParked(message.Headers).Reason}
	var body struct {
		MessageID string `json:"messageId"`
		Type      string `json:"type"`
		Data      struct {
			TransferID string `json:"transferId"`
		} `json:"data"`
	}
	if json.Unmarshal(message.Body, &body) == nil {
		parked.MessageID, parked.Type, parked.TransferID = body.MessageID, body.Type, body.Data.TransferID
	}
	return parked
}
