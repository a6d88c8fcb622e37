package messaging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/banking/pkg/retry"
	"golang.org/x/sync/semaphore"
)

// Starts notes how often the handling of a message has begun without coming to an end. A message that ends its process leaves
// no other trace: nothing is rejected, so no death is counted, and the broker only hands it out again. Neither does one that takes
// the dependency down, because what fails of that spends no attempt. The notes must outlive the process. A key is the SHA-256 of a body.
type Starts interface {
	// Begin notes a start before it is made, and answers how many have not ended, this one included. It returns when that is
	// durable. An unknown key counts as having first starts already. An error that is ErrPerhapsNoted leaves open whether the start
	// was noted; any other says that it was not.
	Begin(ctx context.Context, consumer string, key [32]byte, first int) (starts int, err error)
	// End forgets the keys: their handling has ended, however.
	End(ctx context.Context, consumer string, keys ...[32]byte) error
	// Excuse notes that a process stops in good order, or that an attempt has ended and another follows: the last start of the begun keys
	// does not count, and neither do the starts of held ones, which nobody has noted; those that are not known are known from now on, with no start.
	Excuse(ctx context.Context, consumer string, begun, held [][32]byte) error
}

// ErrPerhapsNoted is an error of Starts.Begin whose outcome nobody knows, such as a commit that was not answered.
var ErrPerhapsNoted = errors.New("the start may have been noted")

// maxStarts is how many starts without an end make a message one that takes its process down, or what that depends on.
const maxStarts = 3

var errCrashLoop = retry.Errorf(retry.Unknown, "the message did not come to an end %d times: its process or the database went away", maxStarts)

const (
	// beginTimeout bounds the note of a start. Everything else waits for a suspect to be done.
	beginTimeout = 5 * time.Second
	// endTimeout bounds the other notes. What could not be noted is noted later, or costs a message one of its starts.
	endTimeout = time.Second
)

// suspicion is how far a delivery has come that was handed out before: it may be what ended a process.
type suspicion int

const (
	unsuspected suspicion = iota // handed out for the first time, or no suspect any more; of its handling here nothing is noted
	unnoted                      // a suspect whose next start is not noted yet
	begun                        // a suspect whose start is noted
	ended                        // no suspect any more: its handling has ended, and that is still to be noted
)

// suspect says whether a delivery has to run alone.
func (d *delivery) suspect() bool { return d.suspicion == unnoted || d.suspicion == begun }

// turns is who may run in a session: ordinary batches side by side, or one suspect alone. If the process ends while a suspect
// runs, no other message can have been the reason. The rest of the service can: its relay, its HTTP calls and its looks into the
// quarantine go on beside it, and a suspect that was there three times when one of them ended the process is taken for guilty.
type turns struct{ *semaphore.Weighted }

const everybody = 1 << 20

func newTurns() turns { return turns{semaphore.NewWeighted(everybody)} }

func (t turns) begin(ctx context.Context, alone bool) error { return t.Acquire(ctx, weight(alone)) }

func (t turns) end(alone bool) { t.Release(weight(alone)) }

func weight(alone bool) int64 {
	if alone {
		return everybody
	}
	return 1
}

// runSuspect runs a delivery that the broker has handed out before. It was in the hands of a process that stopped, lost its
// connection, or was ended by one of the messages it held, perhaps by this one; so its start is noted first.
func (c *Consumer) runSuspect(live context.Context, d *delivery, brokerMajor int) {
	c.metrics.suspects.Inc()
	c.readHeaders(d)
	if !d.decoded {
		d.nameByProperties()
	}
	if d.err = d.badHeaders; d.err != nil { // which starts nothing: it is quarantined undecoded, and needs no note that may fail
		d.suspicion = unsuspected
		return
	}
	if d.err = c.noteStart(live, d, brokerMajor); d.err != nil {
		return
	}
	c.execute(live, []*delivery{d})
	switch class := c.classOfAttempt(live, d.err); {
	case class == retry.Cancelled:
		return // it has not ended, we have; the stop excuses it
	case unanswered(class) && c.dampers.dependencyDown(live):
		// The dependency was there for the note and went away under this message, which spends no attempt then. If it does so
		// each time, it is this message that takes it away, and it would come back for ever.
		return
	}
	d.suspicion = ended
}

// noteEnd notes that the start of a suspect has ended. It is a suspect no more, unless it is to run here again: then the next attempt
// may be the one that ends the process, and what it did to earlier processes is not forgotten for an attempt that only failed.
func (c *Consumer) noteEnd(d *delivery) {
	switch {
	case d.suspicion != ended:
	case d.verdict == retryHere:
		d.suspicion = unnoted
		c.notes.endOne(d.key)
	default:
		d.suspicion = unsuspected
		c.notes.end(d.key)
	}
}

// noteStart is an error when the delivery must not run. Nothing of the body has been decoded yet: that may be what kills.
func (c *Consumer) noteStart(live context.Context, d *delivery, brokerMajor int) error {
	ctx, cancel := context.WithTimeout(live, beginTimeout)
	defer cancel()
	d.key = sha256.Sum256(d.Body)
	starts, err := c.notes.begin(ctx, d.key, startsUnnoted(brokerMajor, d.past))
	if err != nil {
		return fmt.Errorf("note the start of a message that was handed out before: %w", err)
	}
	d.suspicion = begun
	if starts > maxStarts {
		d.attempt = int(d.past.spent) + maxStarts
		return errCrashLoop
	}
	return nil
}

// endCrashLoops forgets the starts of messages that are in quarantine for it now: if one is replayed it begins anew.
func (c *Consumer) endCrashLoops(r publishedCopies) {
	var keys [][32]byte
	for i, d := range r.deliveries {
		if d.suspicion == begun && r.outcomes[i] == Acked {
			keys = append(keys, d.key)
		}
	}
	if len(keys) > 0 {
		c.notes.end(keys...)
	}
}

// startsUnnoted is how often the handling of a redelivered message has begun before anybody took notes: once, where it was
// no suspect yet. RabbitMQ 4 flags every message that comes back from its lap, so there it was none at all.
func startsUnnoted(brokerMajor int, past history) int {
	if brokerMajor >= 4 && past.lapped {
		return 0
	}
	return 1
}

// majorVersion is the first number of a version, 0 when there is none.
func majorVersion(version any) int {
	text, _ := version.(string)
	first, _, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// notes are the starts of one consumer's messages, and what could not be noted about them yet. As long as this process knows of an
// end, or of a start that was not made, a database that was away at the wrong moment does not make it look like a crash.
type notes struct {
	starts   Starts // nil: nobody takes notes, and nobody is a suspect
	consumer string

	m       sync.Mutex
	ended   [][32]byte
	unbegun [][32]byte // of each the last start does not count: it was noted perhaps and not made, or has ended
}

func (n *notes) begin(ctx context.Context, key [32]byte, first int) (int, error) {
	if err := n.catchUp(ctx); err != nil {
		return 0, err
	}
	starts, err := n.starts.Begin(ctx, n.consumer, key, first)
	if errors.Is(err, ErrPerhapsNoted) {
		n.m.Lock()
		defer n.m.Unlock()
		n.unbegun = append(n.unbegun, key)
	}
	return starts, err
}

// end notes that messages have ended; if it cannot, the next call does.
func (n *notes) end(keys ...[32]byte) {
	n.m.Lock()
	n.ended = append(n.ended, keys...)
	n.m.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = n.catchUp(ctx)
}

// endOne notes that the last start of a message has ended, and leaves those before it; if it cannot, the next call does.
func (n *notes) endOne(key [32]byte) {
	n.m.Lock()
	n.unbegun = append(n.unbegun, key)
	n.m.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	_ = n.catchUp(ctx)
}

// catchUp notes what could not be noted before.
func (n *notes) catchUp(ctx context.Context) error {
	n.m.Lock()
	defer n.m.Unlock()
	if len(n.unbegun) > 0 { // before the ends, which make nothing of it
		if err := n.starts.Excuse(ctx, n.consumer, n.unbegun, nil); err != nil {
			return err
		}
		n.unbegun = n.unbegun[:0]
	}
	if len(n.ended) > 0 {
		if err := n.starts.End(ctx, n.consumer, n.ended...); err != nil {
			return err
		}
		n.ended = n.ended[:0]
	}
	return nil
}

// excuse says that deliveries go back because this process stops in good order. Suspects whose start this process has not
// noted are left as they are: nothing has happened to them here.
func (n *notes) excuse(ds []*delivery, timeout time.Duration) error {
	if n.starts == nil {
		return nil
	}
	var started, held [][32]byte
	for _, d := range ds {
		switch d.suspicion {
		case begun, ended:
			started = append(started, d.key)
		case unsuspected:
			held = append(held, sha256.Sum256(d.Body))
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := n.catchUp(ctx); err != nil || len(started)+len(held) == 0 {
		return err
	}
	return n.starts.Excuse(ctx, n.consumer, started, held)
}
