// Package runs has exercises run by the bank's keeper and remembers what they told, so that every page can see it: one that is opened in
// the middle, one that was loaded again, and that of somebody else.
//
// The console runs nothing itself. An exercise needs the services' database, the broker as its operator, and the right to kill processes;
// a web page that anybody on the machine can open should hold none of them. The keeper of "bank up" has them all and takes orders at a
// door of its own, so the console passes the order on and hears, line by line, what happens. When it goes away, its call breaks
// off, and the keeper puts everything back.
package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"example.com/banking/services/console/upstream"
)

// State is how far a run is.
type State string

// The states.
const (
	Running  State = "running"
	Looking  State = "looking"  // nothing has been put back yet, so that people can look around
	Stopping State = "stopping" // on order; everything is put back
	Passed   State = "passed"
	Failed   State = "failed"
	Stopped  State = "stopped"
	Broken   State = "broken" // the keeper has gone in the middle of it
)

// Over says whether nothing more comes.
func (s State) Over() bool { return s == Passed || s == Failed || s == Stopped || s == Broken }

// Run is a run as pages are told of it, without its events.
type Run struct {
	Exercise int        `json:"exercise"`
	State    State      `json:"state"`
	Started  time.Time  `json:"startedAt"`
	Ended    *time.Time `json:"endedAt,omitzero"`
	Said     string     `json:"said,omitzero"`    // the last word
	Dropped  int        `json:"dropped,omitzero"` // events that were too many to be kept
}

// Why an order is refused.
var (
	ErrNoKeeper   = errors.New("the console was started without CONTROL_URL, the address of the keeper of a bank from \"make up\"")
	ErrBusy       = errors.New("an exercise is running already")
	ErrNotRunning = errors.New("this exercise is not running")
)

// Config of Runs.
type Config struct {
	Keeper *upstream.Upstream // nil: nothing can be run
	Token  string             // the admin token, which is the keeper's as well
	Answer time.Duration      // for the keeper to begin its answer; 0 means 7 s
	Look   time.Duration      // how long a run waits for people who look around before it puts things back
	Poke   func(topics ...string)
	Logger *slog.Logger
}

// Runs knows the last run of each exercise, and the one that goes on.
type Runs struct {
	cfg   Config
	ctx   context.Context // of all runs
	stop  context.CancelFunc
	going sync.WaitGroup

	m      sync.Mutex
	last   map[int]*run
	now    *run // nil: none
	closed bool
}

// run is a Run with what it told. Guarded by the mutex of Runs.
type run struct {
	Run
	events  []jsontext.Value
	bytes   int
	verdict State // how it has ended; it is over when the keeper is free for the next
}

// New makes one.
func New(cfg Config) *Runs {
	if cfg.Answer <= 0 {
		cfg.Answer = orderTime
	}
	r := &Runs{cfg: cfg, last: map[int]*run{}}
	r.ctx, r.stop = context.WithCancel(context.Background())
	return r
}

// Run ends what is running when ctx ends. The keeper then puts everything back.
func (r *Runs) Run(ctx context.Context) error {
	<-ctx.Done()
	r.m.Lock()
	r.closed = true
	r.m.Unlock()
	r.stop()
	r.going.Wait()
	return nil
}

// Possible says whether exercises can be run at all.
func (r *Runs) Possible() bool { return r.cfg.Keeper != nil }

// Start has the exercise run. It returns when the keeper has begun, or what it refused.
func (r *Runs) Start(number int) (Run, error) {
	if r.cfg.Keeper == nil {
		return Run{}, ErrNoKeeper
	}
	begun := &run{Run: Run{Exercise: number, State: Running, Started: time.Now().UTC()}}
	r.m.Lock()
	if r.now != nil {
		busy := r.now.Exercise
		r.m.Unlock()
		return Run{}, fmt.Errorf("%w: number %d", ErrBusy, busy)
	}
	if r.closed {
		r.m.Unlock()
		return Run{}, context.Canceled
	}
	before := r.last[number]
	r.now, r.last[number] = begun, begun
	r.going.Add(1)
	seen := begun.Run
	r.m.Unlock()

	answer, end, err := r.order(number, "run?look="+r.cfg.Look.String())
	if err != nil {
		r.m.Lock()
		if r.now, r.last[number] = nil, before; before == nil {
			delete(r.last, number)
		}
		r.m.Unlock()
		r.changed(number)
		r.going.Done()
		return Run{}, err
	}
	r.cfg.Logger.Info("an exercise is running", "exercise", number)
	r.changed(number)
	go func() {
		defer r.going.Done()
		defer end()
		r.follow(begun, answer)
	}()
	return seen, nil
}

// Stop ends the run; it is over when everything has been put back.
func (r *Runs) Stop(number int) error { return r.tell(number, "stop", Stopping) }

// Continue ends the look around of a run.
func (r *Runs) Continue(number int) error { return r.tell(number, "continue", Running) }

func (r *Runs) tell(number int, verb string, next State) error {
	r.m.Lock()
	now := r.now
	r.m.Unlock()
	if now == nil || now.Exercise != number {
		return ErrNotRunning
	}
	answer, end, err := r.order(number, verb)
	if err != nil {
		return err
	}
	_ = answer.Close()
	end()
	r.m.Lock()
	if !now.State.Over() && now.State != Stopping {
		now.State = next
	}
	r.m.Unlock()
	r.changed(number)
	return nil
}

// orderTime is below what a page is promised an answer in.
const orderTime = 7 * time.Second

// order makes a call of the keeper. The body is the caller's, and so is end, when there is no error.
func (r *Runs) order(number int, what string) (body io.ReadCloser, end func(), err error) {
	ctx, cancel := context.WithCancel(r.ctx)
	late := time.AfterFunc(r.cfg.Answer, cancel)
	header := http.Header{"Authorization": {"Bearer " + r.cfg.Token}}
	answer, err := r.cfg.Keeper.Do(ctx, http.MethodPost, "/exercises/"+strconv.Itoa(number)+"/"+what, nil, header)
	if err != nil || !late.Stop() {
		if err == nil {
			_ = answer.Body.Close()
			err = &upstream.Silent{Name: r.cfg.Keeper.Name, Cause: context.DeadlineExceeded}
		}
		cancel()
		return nil, nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer cancel()
		defer func() { _ = answer.Body.Close() }()
		refusal := &upstream.Refusal{Name: r.cfg.Keeper.Name, Status: answer.StatusCode}
		content, err := io.ReadAll(io.LimitReader(answer.Body, longestLine))
		if err == nil {
			_ = json.Unmarshal(content, refusal) // what is no problem document is told by its status
		}
		return nil, nil, refusal
	}
	return answer.Body, cancel, nil
}
