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
// It goes through a queue in rounds. A round looks at what was there when the run began and is left of it, takes the next messages that
// are meant, as many as fit into little memory, and carries them out while the look holds everything. What came into the
// queue since then stands behind all of that and is not looked at: a run never chases what it parks again itself.
type work struct {
	*Quarantine
	hold     *hold
	stream   *service.Stream
	filter   filter
	began    time.Time
	confirm  bool
	prepare  func(context.Context, []*task) error // decides what is to be done with each
	carryOut func(context.Context, *look, []*task) error
	checked  func(context.Context, string, []*task) error // after a round, with nothing held; ends the run with an error
	size     int                                          // messages that the next round takes at most
	taken    int
	found    map[string]bool
	summary  summary
}

// windowBytes bounds the bodies of one round.
const windowBytes = 16 << 20

// stopped ends a run early and says why; what is done stays done.
type stopped struct{ why string }

func (s *stopped) Error() string { return s.why }

// through goes through the queues. In each, kept are the messages at its head that have been looked at and stay; left are those that were
// there at the beginning and have not been looked at yet.
func (w *work) through(ctx context.Context, queues []string) error {
	w.found = map[string]bool{}
	for _, queue := range queues {
		for kept, left := 0, -1; w.taken < w.filter.limit && left != 0; {
			r, err := w.round(ctx, queue, kept, left)
			kept, left = r.kept, r.left
			if err == nil && w.checked != nil {
				err = w.checked(ctx, queue, r.tasks)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// round is what one look has come to.
type round struct {
	kept, left int
	tasks      []*task
}

func (w *work) round(ctx context.Context, queue string, kept, left int) (r round, err error) {
	r.kept, r.left = kept, left
	// The look outlives a client that goes away: a batch that has begun needs it to end well.
	l, err := w.look(context.WithoutCancel(ctx), queue)
	if err != nil {
		return r, err
	}
	defer l.close()
	if r.left < 0 {
		r.left = l.depth
	}
	position, size := 0, 0
	err = l.each(ctx, r.kept+r.left, func(d *amqp.Delivery) (bool, error) {
		if position++; position <= kept {
			return true, nil
		}
		r.left--
		r.kept++
		if t := w.meant(queue, d); t != nil {
			r.tasks = append(r.tasks, t)
			size += len(d.Body)
		}
		return len(r.tasks) < w.room() && size < windowBytes, nil
	})
	if err != nil {
		return r, err
	}
	full := len(r.tasks) >= w.room() || size >= windowBytes
	w.taken += len(r.tasks)
	if len(r.tasks) > 0 {
		if err := w.prepare(ctx, r.tasks); err != nil {
			return r, err
		}
		err = w.carryOut(ctx, l, r.tasks)
		r.kept -= l.acked
	}
	switch {
	case full:
	case l.depth > furthest && r.left > 0 && l.acked == 0:
		err = errors.Join(err, &stopped{fmt.Sprintf("%s holds %d messages; a look reaches the first %d", queue, l.depth, furthest)})
	case l.depth <= furthest:
		r.left = 0
	}
	return r, err
}

// room is how many more messages a round may take.
func (w *work) room() int { return min(w.size, w.filter.limit-w.taken) }

// meant makes a task of a message that the filter means. One that was replayed since the run began has been in its hands already. (A time
// that is yet to come was not written by this run.)
func (w *work) meant(queue string, d *amqp.Delivery) *task {
	p := read(queue, d)
	again := !p.told.ReplayedAt.Before(w.began) && !p.told.ReplayedAt.After(time.Now())
	if again || !w.filter.matches(p, w.began) {
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
