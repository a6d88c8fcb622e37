package exercises

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
)

func said(ok bool) *bool { return &ok }

func (r *run) say(e Event) {
	e.At, e.Exercise = time.Now().UTC(), r.exercise.Number
	r.report(e)
}

// do says what is being done.
func (r *run) do(format string, args ...any) {
	r.say(Event{Kind: Doing, Text: fmt.Sprintf(format, args...)})
}

// saw tells something that was observed, and where people can see it.
func (r *run) saw(where, text string, figures ...Figure) {
	r.say(Event{Kind: Saw, Text: text, Where: where, Figures: figures})
}

// inject breaks something. It is the only thing that a run without its fault leaves out.
func (r *run) inject(what string, do func() error) error {
	if r.WithoutFault {
		r.do("Left out: %s", what)
		return nil
	}
	r.do("%s", what)
	if err := do(); err != nil {
		return fmt.Errorf("injecting the fault: %w", err)
	}
	return nil
}

// happened checks a proof that the fault was there.
func (r *run) happened(ok bool, text string, figures ...Figure) error {
	return r.check(TheFault, ErrNoFault, ok, text, figures)
}

// recovered checks a proof that the bank got over it.
func (r *run) recovered(ok bool, text string, figures ...Figure) error {
	return r.check(TheRecovery, ErrNotRecovered, ok, text, figures)
}

func (r *run) check(proves Proof, failure error, ok bool, text string, figures []Figure) error {
	r.say(Event{Kind: Checked, Proves: proves, OK: said(ok), Text: text, Figures: figures})
	if ok {
		return nil
	}
	var seen []string
	for _, f := range figures {
		seen = append(seen, f.Name+": "+f.Value)
	}
	if len(seen) > 0 {
		text += " Seen was " + strings.Join(seen, ", ") + "."
	}
	return fmt.Errorf("%w. It should be so: %s", failure, text)
}

// errWaited says that something did not come within the time that it was given.
var errWaited = errors.New("waited in vain")

// patience is how long to wait for what happens with the fault and without it: never so short that a slow machine looks like a failure.
func (r *run) patience() time.Duration { return max(r.Patience, time.Minute) }

const lookEvery = 50 * time.Millisecond

// await asks until the answer is yes. Who is asked may be down for a while; what it said last is in the error.
func (r *run) await(ctx context.Context, patience time.Duration, ask func(context.Context) (bool, error)) error {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		yes, err := ask(ctx)
		if yes && err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-limit.C:
			if err != nil {
				return fmt.Errorf("%w for %s; the last answer: %w", errWaited, patience, err)
			}
			return fmt.Errorf("%w for %s", errWaited, patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitFault waits for a proof that the fault is there.
func (r *run) awaitFault(ctx context.Context, text string, ask func(context.Context) (bool, error)) error {
	return r.awaitCheck(ctx, r.Patience, TheFault, ErrNoFault, text, ask)
}

// awaitRecovery waits for a proof that the bank gets over it.
func (r *run) awaitRecovery(ctx context.Context, text string, ask func(context.Context) (bool, error)) error {
	return r.awaitCheck(ctx, r.patience(), TheRecovery, ErrNotRecovered, text, ask)
}

func (r *run) awaitCheck(ctx context.Context, patience time.Duration, proves Proof, failure error, text string, ask func(context.Context) (bool, error)) error {
	began := time.Now()
	err := r.await(ctx, patience, ask)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if failed := r.check(proves, failure, err == nil, text, []Figure{figure("after", time.Since(began))}); failed != nil {
		return fmt.Errorf("%w (%w)", failed, err)
	}
	return nil
}

// ours begins the ids of messages that exercises make up, so that what a killed run has left is known for what it is.
const ours = "exercise-"

// fresh is an id that no earlier run has used.
func fresh(name string) string { return ours + name + "-" + strings.ToLower(rand.Text()[:8]) }
