package messaging

import (
	"errors"
	"time"
)

// stop ends an attachment in good order: nothing new is taken, what waits goes back unspent, what is at work is waited
// for, and its verdicts are carried out.
func (a *attachment) stop() {
	a.stopping = true
	if a.deliveries != nil {
		a.cancelNow()
		for d := range a.deliveries { // what has been prefetched; the library closes it after the cancel
			a.take(d)
		}
	}
	a.giveBack(append(a.ready, a.takeWaiting()...))
	a.ready = nil
	a.finish()
	a.flush()
	a.closeChannel()
}

// cancelNow ends the subscription and waits for the broker to say so: what it has sent until then is known here and can be excused, what
// comes later would be flagged as handed out before without a word. A broker that does not answer must not hold up the stop, and
// is no reason to give the link up, which the outbox may need for its last messages.
func (a *attachment) cancelNow() {
	cancelled := make(chan error, 1)
	go func() { cancelled <- a.ch.Cancel(a.tag, false) }()
	patience := time.NewTimer(a.consumer.Grace / 8)
	defer patience.Stop()
	select {
	case err := <-cancelled:
		a.check(err)
		return
	case <-patience.C:
	case <-a.link.broken:
	}
	a.consumer.session.Logger.Warn("the broker did not say in time that it sends no more, what still comes counts as a start when it comes back", "queue", a.consumer.Queue)
	a.check(a.ch.Cancel(a.tag, true))
}

// takeWaiting is all that is held here; nothing is any more.
func (a *attachment) takeWaiting() []*delivery {
	ds := append(a.waiting, a.unsent...)
	a.waiting, a.unsent = nil, nil
	return ds
}

// excuse notes that deliveries go back because we stop: if this was the start of one, it does not count as a crash. A database
// that is away must not hold up the stop, so it gets little time, and is not asked again when it fails.
func (a *attachment) excuse(ds []*delivery) {
	if len(ds) == 0 || a.unexcused {
		return
	}
	if err := a.consumer.notes.excuse(ds, min(endTimeout, a.consumer.Grace/8)); err != nil {
		a.unexcused = true
		a.consumer.session.Logger.Warn("the stop could not be noted, it will count as a start of the messages that are given back",
			"queue", a.consumer.Queue, "messages", len(ds), "error", plainText(err.Error(), maxLastError))
	}
}

// finish waits for the workers and the last publishings.
func (a *attachment) finish() {
	var over <-chan time.Time
	done := a.live.Done()
	for a.publishCopies(); a.busy > 0 || a.published != nil; a.publishCopies() {
		select {
		case ds := <-a.results:
			a.busy--
			a.settle(ds)
		case r := <-a.published:
			a.copiesPublished(r)
		case <-done:
			done, over = nil, time.After(lastSecond)
		case <-over:
			return // closing the channel gives back what is left
		case <-a.link.broken:
			return
		}
		a.giveBack(a.takeWaiting())
		a.flush()
	}
}

// closeChannel gives back what the broker still counts as ours. The session goes on: others publish over it.
func (a *attachment) closeChannel() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = a.ch.Close() // an error says that it was closed already
	}()
	select {
	case <-closed:
	case <-a.link.broken:
	case <-time.After(a.consumer.session.CloseTimeout):
		a.link.fail(errors.New("the broker does not answer"))
	}
}
