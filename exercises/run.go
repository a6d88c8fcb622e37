package exercises

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/control"
	"example.com/banking/internal/invariants"
	"example.com/banking/internal/supervise"
)

// run is one run of an exercise.
type run struct {
	*Bank
	exercise          Exercise
	report            Reporter
	account, transfer *service
	broker            *broker
	control           *control.Client // nil where there is none
	resets            []reset
}

// reset puts one thing back.
type reset struct {
	phase phase
	what  string // "" is not worth a word
	do    func(context.Context) error
}

// phase orders what is put back: each needs what comes before it.
type phase int

const (
	waking     phase = iota // processes run, so that they can be asked
	disarming               // nothing is made to fail any more
	settling                // processes have their usual settings
	rest                    // what can be done on a bank that works
	discarding              // what is left over can be thrown away once nothing moves
)

// resetTime is how long putting everything back may take. It goes on after an interruption.
const resetTime = 3 * time.Minute

// Run runs the exercise on a bank. It returns when everything that it changed has been put back and the invariants have been checked.
// An interruption (ctx) ends what is shown and checked, not the putting back.
func (e Exercise) Run(ctx context.Context, b *Bank, to Reporter) error {
	r := &run{Bank: b.withDefaults(), exercise: e, report: to}
	r.say(Event{Kind: Begun, Text: e.Question})
	err := r.whole(ctx)
	text := fmt.Sprintf("Exercise %d passed: the fault happened, and the bank got over it.", e.Number)
	if err != nil {
		text = fmt.Sprintf("Exercise %d has not passed: %s", e.Number, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	r.say(Event{Kind: Ended, Text: text, OK: said(err == nil), Reason: reasonOf(err)})
	return err
}

func (b *Bank) withDefaults() *Bank {
	filled := *b
	filled.Outage = cmp.Or(filled.Outage, time.Minute)
	filled.Patience = cmp.Or(filled.Patience, time.Minute)
	return &filled
}

func (r *run) whole(ctx context.Context) (err error) {
	if err := r.connect(); err != nil {
		return err
	}
	defer r.broker.close()
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := r.tidy(ctx); err != nil {
		return fmt.Errorf("putting back what an earlier run left: %w", err)
	}
	err = r.provide(ctx)
	if err == nil {
		err = r.exercise.play(ctx, r)
		if r.BeforeReset != nil && ctx.Err() == nil {
			r.BeforeReset(ctx)
		}
	}
	putting, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetTime)
	defer cancel()
	failed := r.putBack(putting)
	if ctx.Err() != nil {
		return interruption(ctx, err, failed)
	}
	return errors.Join(err, failed, r.verify(ctx))
}

// interruption is how a run ends that was interrupted: who did so knows why nothing was proved, and wants to know whether all is well again.
func interruption(ctx context.Context, played, putBack error) error {
	if errors.Is(played, ctx.Err()) {
		played = nil
	}
	if putBack != nil {
		return errors.Join(played, ErrInterrupted, putBack)
	}
	return errors.Join(played, fmt.Errorf("%w, and everything is put back", ErrInterrupted))
}

func (r *run) connect() (err error) {
	for name, value := range map[string]string{"ACCOUNT_URL": r.AccountURL, "TRANSFER_URL": r.TransferURL, "AMQP_URL": r.AMQPURL,
		"RABBITMQ_MANAGEMENT_URL": r.ManagementURL, "ACCOUNT_DATABASE_URL": r.AccountDatabaseURL, "TRANSFER_DATABASE_URL": r.TransferDatabaseURL,
		"ADMIN_TOKEN": r.AdminToken} {
		if value == "" {
			return fmt.Errorf("%w: %s is not known: start a bank with \"make up\"", ErrNeeds, name)
		}
	}
	r.account, r.transfer = newService("account", r.AccountURL, r.AdminToken), newService("transfer", r.TransferURL, r.AdminToken)
	if r.broker, err = newBroker(r.AMQPURL, r.ManagementURL); err != nil {
		return err
	}
	if r.ControlURL != "" {
		r.control = control.NewClient(r.ControlURL, r.AdminToken)
	}
	return nil
}

// lock keeps a second run away: two faults at once would prove nothing. One lock is a file's, for exercise 8 cuts the other, which is in
// the database and keeps away who works on the same bank from another folder. Each ends with its run, however that ends.
func (r *run) lock(ctx context.Context) (unlock func(), err error) {
	if r.LockFile == "" {
		return r.lockDatabase(ctx)
	}
	file, err := supervise.TryLock(r.LockFile)
	if errors.Is(err, supervise.ErrLocked) {
		return nil, ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("locking the bank for the exercise: %w", err)
	}
	if err := r.tidyPostgres(ctx); err != nil {
		return nil, errors.Join(err, file.Unlock())
	}
	inDatabase, err := r.lockDatabase(ctx)
	if err != nil {
		return nil, errors.Join(err, file.Unlock())
	}
	return func() {
		inDatabase()
		_ = file.Unlock() // the end of the process would do it
	}, nil
}

// lockDatabase takes a lock of a connection's, which ends with it.
func (r *run) lockDatabase(ctx context.Context) (unlock func(), err error) {
	conn, err := pgx.Connect(ctx, r.TransferDatabaseURL)
	if err != nil {
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	unlock = func() { _ = conn.Close(context.WithoutCancel(ctx)) } // which exercise 8 has cut
	const (
		exercise = 0x6578
		last     = 2 * time.Second // a run that has just ended may still hold it
	)
	free := false
	err = r.await(ctx, last, func(ctx context.Context) (bool, error) {
		err := conn.QueryRow(ctx, "select pg_try_advisory_lock($1)", exercise).Scan(&free)
		return free, err
	})
	if !free {
		unlock()
		if errors.Is(err, errWaited) {
			return nil, ErrBusy
		}
		return nil, fmt.Errorf("locking the bank for the exercise: %w", err)
	}
	return unlock, nil
}

// onReset notes what has to be put back, before it is changed.
func (r *run) onReset(p phase, what string, do func(context.Context) error) {
	r.resets = append(r.resets, reset{p, what, do})
}

// putBack undoes what was changed, as much of it as can be.
func (r *run) putBack(ctx context.Context) error {
	slices.SortStableFunc(r.resets, func(a, b reset) int { return int(a.phase - b.phase) })
	var failed error
	for _, back := range r.resets {
		if back.what != "" {
			r.say(Event{Kind: Reset, Text: back.what})
		}
		if err := back.do(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("putting things back: %w", err))
		}
	}
	for _, s := range []*service{r.account, r.transfer} {
		if err := r.await(ctx, time.Minute, s.ready); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s is not ready again: %w", s.name, err))
		}
	}
	return failed
}

// verify does what "bank verify" does, and demands that the bank has come to rest.
func (r *run) verify(ctx context.Context) error {
	report, err := r.Verify(ctx)
	if err != nil {
		return fmt.Errorf("checking the invariants: %w", err)
	}
	var broken, open []string
	held := 0
	for _, check := range report.Checks {
		told := fmt.Sprintf("%s (%s)", check.Name, strings.Join(slices.Concat([]string{check.Detail}, check.Offenders), "; "))
		switch check.Verdict {
		case invariants.Held:
			held++
		case invariants.Broken:
			broken = append(broken, told)
		default:
			open = append(open, told)
		}
	}
	well := report.OK && report.Quiet && len(open) == 0
	r.say(Event{Kind: Checked, Proves: TheInvariants, OK: said(well), Where: "bank verify",
		Text:    "Nothing is lost, nothing doubled: every invariant of both services holds.",
		Figures: []Figure{figure("held", held), figure("not judged", len(open)), figure("quarantined", report.Counts.Quarantined)}})
	switch {
	case len(broken) > 0:
		return fmt.Errorf("%w: %s", ErrBroken, strings.Join(broken, ", "))
	case !report.Quiet:
		return fmt.Errorf("%w: messages are still moving, so that not everything can be judged", ErrNotRecovered)
	case !well:
		return fmt.Errorf(`%w: not everything could be judged, and what was not has not been shown to hold ("bank verify" says when it is): %s`,
			ErrNotRecovered, strings.Join(open, ", "))
	}
	return nil
}
