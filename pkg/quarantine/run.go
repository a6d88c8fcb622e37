package quarantine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/pkg/service"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	amqp "github.com/rabbitmq/amqp091-go"
)

// summary stands behind the items of a run.
type summary struct {
	DryRun  bool       `json:"dryRun"`
	Run     *uuid.UUID `json:"run"` // names the run in the audit; null for a dry one
	Matched int        `json:"matched"`
	Done    int        `json:"done"` // replayed or discarded; in a dry run, those that would be
	Refused int        `json:"refused"`
	Failed  int        `json:"failed"`           // with an unknown outcome among them
	Missing []string   `json:"missing"`          // ids that name nothing here
	All     bool       `json:"all,omitzero"`     // there was no filter, so this is about every message
	Stopped string     `json:"stopped,omitzero"` // why the run ended before it was through
}

// work is one run, dry or not, over the messages that a filter means.
//
// It goes through a queue in rounds, and mostly one is enough. A round is a look that takes chunk after chunk in hand, chooses from each the
// messages that are meant, carries them out, and in the end gives back what stays. What came into the queue since the run
// began stands behind all of that and is not looked at: a run never chases what it parks again itself.
type work struct {
	*Quarantine
	hold     *hold
	stream   *service.Stream
	filter   filter
	began    time.Time
	confirm  bool
	prepare  func(context.Context, []*task) error // decides what is to be done with each
	carryOut func(context.Context, *chunk, []*task) error
	checked  func(context.Context, string, []*task) error // its canaries, after a round, with nothing held; ends the run with an error
	size     int                                          // messages that a round chooses at most; 0: as many as are meant
	taken    int
	found    map[string]bool
	summary  summary
}

// longRound is how long a round may hold messages unacknowledged: a broker closes the channel of who does so for half an hour.
const longRound = 10 * time.Minute

// stopped ends a run early and says why; what is done stays done.
type stopped struct{ why string }

func (s *stopped) Error() string { return s.why }

// through goes through the queues.
func (w *work) through(ctx context.Context, queues []string) error {
	w.found = map[string]bool{}
	for _, queue := range queues {
		for r := (&round{work: w, queue: queue, left: -1}); r.left != 0 && w.taken < w.filter.limit; {
			err := r.pass(ctx)
			if err == nil && w.checked != nil {
				err = w.checked(ctx, queue, r.canaries)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// round is where a run stands in a queue.
type round struct {
	*work
	queue    string
	kept     int     // messages at the head that earlier rounds have seen and left there
	left     int     // messages behind them that were there at the beginning and have not been seen yet
	chosen   int     // in the round that goes on
	canaries []*task // of it
}

// pass is one round.
func (r *round) pass(ctx context.Context) error {
	l, err := r.look(ctx, r.queue)
	if err != nil {
		return err
	}
	defer l.close()
	if r.left < 0 {
		r.left = l.depth
	}
	for l.taken < r.kept && l.left() > 0 && err == nil {
		_, _, err = l.take(ctx, min(l.next(), r.kept-l.taken))
	}
	r.chosen, r.canaries = 0, nil
	for began := time.Now(); err == nil && r.room() > 0 && r.left > 0 && l.left() > 0; {
		if err = r.handle(ctx, l); time.Since(began) > r.keeping {
			break
		}
	}
	switch {
	case errors.Is(err, errTooFar):
		return &stopped{l.tooFar()}
	case err == nil && l.left() == 0 && r.room() > 0:
		r.left = 0
	}
	return err
}

// handle takes a chunk in hand and does what is to be done with it.
func (r *round) handle(ctx context.Context, l *look) error {
	n := l.next()
	if r.confirm {
		n = r.handful
	}
	c, messages, err := l.take(ctx, min(n, r.left))
	if err != nil {
		return err
	}
	var tasks []*task
	for room := r.room(); len(messages) > 0 && len(tasks) < room; messages = messages[1:] {
		r.left--
		r.kept++
		if t := r.meant(r.queue, messages[0]); t != nil {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	r.taken += len(tasks)
	r.chosen += len(tasks)
	if err := r.prepare(ctx, tasks); err != nil {
		return err
	}
	held := c.held
	err = r.carryOut(ctx, c, tasks)
	r.kept -= held - c.held
	c.drop()
	for _, t := range tasks {
		if t.Canary && t.Outcome == replayed {
			r.canaries = append(r.canaries, t)
		}
	}
	return err
}

// room is how many more messages the round may choose.
func (r *round) room() int {
	room := r.filter.limit - r.taken
	if r.size > 0 {
		room = min(room, r.size-r.chosen)
	}
	return room
}

// meant makes a task of a message that the filter means. One that was replayed since the run began has been in its hands already.
func (w *work) meant(queue string, d *amqp.Delivery) *task {
	p := read(queue, d)
	if p.replayedSince(w.began) || !w.filter.matches(p, w.began) {
		return nil
	}
	w.summary.Matched++
	for _, id := range w.filter.IDs {
		if p.named(id) {
			w.found[id] = true
		}
	}
	return &task{parked: p}
}

// say sends the verdicts to the client.
func (w *work) say(tasks []*task) error {
	for _, t := range tasks {
		switch t.Outcome {
		case replayed, discarded, wouldReplay, wouldDiscard:
			w.summary.Done++
		case refused:
			w.summary.Refused++
		default:
			w.summary.Failed++
		}
		if _, err := w.tell(w.stream, t.parked, t.result()); err != nil {
			return err
		}
	}
	return w.flush()
}

func (w *work) flush() error {
	if err := w.stream.Flush(); err != nil {
		return errors.Join(errClient, err)
	}
	return nil
}

// answer ends the answer of a run.
func (w *work) answer(c echo.Context, err error) error {
	if err != nil && errors.Is(err, errClient) {
		return nil // nobody is left to be told
	}
	s := &w.summary
	if err != nil && !w.stream.Begun() && !isStopped(err) {
		return w.refuse(err, nil)
	}
	if err != nil {
		s.Stopped = whyStopped(err)
		w.Logger.WarnContext(c.Request().Context(), "a run over the quarantine has stopped early", "run", s.Run, "error", err)
	}
	s.Missing, s.All = []string{}, !w.filter.narrow()
	whole := err == nil && w.taken < w.filter.limit // else an id that was not met may be there
	for _, id := range w.filter.IDs {
		if whole && !w.found[id] {
			s.Missing = append(s.Missing, id)
		}
	}
	_ = w.stream.End(s) // a client that is gone has the audit
	return nil
}

func isStopped(err error) bool {
	var early *stopped
	return errors.As(err, &early) || errors.Is(err, service.ErrStopping)
}

func whyStopped(err error) string {
	var early *stopped
	switch {
	case errors.As(err, &early):
		return early.why
	case errors.Is(err, service.ErrStopping):
		return "the service is stopping; the same call goes on with what is left"
	}
	return plainReason(err) + "; the audit tells what became of what is not listed"
}

// finish gives the steps of a batch that has begun the time to end, whatever becomes of the client: a message that is sent and not acked
// is a copy that nobody needs.
func finish(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
}

// record logs what a batch has come to.
func (w *work) record(ctx context.Context, r *run, tasks []*task) {
	for _, t := range tasks {
		w.Logger.InfoContext(ctx, "quarantined message handled", "run", r.id, "action", r.action, "outcome", t.outcome, "queue", t.Queue,
			"message_id", t.Key, "transfer_id", t.TransferID, "operator", r.operator, "target", t.Target, "detail", t.Detail)
	}
}

func newRun(c echo.Context, action, because string) *run {
	// To the millisecond, as a message says when it was replayed.
	return &run{id: uuid.New(), action: action, operator: operatorOf(c), because: because, began: time.Now().Truncate(time.Millisecond)}
}

// crash ends a run between two steps, when a test says so.
func (q *Quarantine) crash(s step) error {
	if err := q.at(s); err != nil {
		return fmt.Errorf("stopped between two steps: %w", err)
	}
	return nil
}
