package exercises

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"example.com/banking/internal/invariants"
	"example.com/banking/internal/supervise"
)

// An exercise that passes while a check was not judged would call a bank sound of which nobody knows that it is.
func TestARunPassesOnlyWhenEveryInvariantHolds(t *testing.T) {
	t.Parallel()
	held := invariants.Check{Name: "conserved", Verdict: invariants.Held}
	broken := invariants.Check{Name: "balanced", Verdict: invariants.Broken, Offenders: []string{"account A"}}
	unread := invariants.Check{Name: "quarantine", Verdict: invariants.NotJudged, Detail: "could not be read: somebody is at it"}
	waits := invariants.Check{Name: "agreement", Verdict: invariants.NotJudged, Detail: "1 waits", Offenders: []string{"transfer T waits"}}
	for name, c := range map[string]struct {
		report invariants.Report
		want   Reason
		said   []string
	}{
		"all hold":         {invariants.Report{OK: true, Quiet: true, Checks: []invariants.Check{held}}, "", nil},
		"one is broken":    {invariants.Report{Quiet: true, Checks: []invariants.Check{held, broken, unread}}, Broken, []string{"balanced", "account A"}},
		"traffic":          {invariants.Report{OK: true, Checks: []invariants.Check{held, waits}}, NotRecovered, []string{"still moving"}},
		"one was not read": {invariants.Report{OK: true, Quiet: true, Checks: []invariants.Check{held, unread}}, NotRecovered, []string{"quarantine", "somebody is at it"}},
		"one waits for a message": {invariants.Report{OK: true, Quiet: true, Checks: []invariants.Check{waits, held}}, NotRecovered,
			[]string{"agreement", "1 waits", "transfer T waits"}},
	} {
		var told Event
		r := &run{
			Bank:   &Bank{Verify: func(context.Context) (invariants.Report, error) { return c.report, nil }},
			report: func(e Event) { told = e },
		}
		err := r.verify(t.Context())
		if got := reasonOf(err); got != c.want || told.OK == nil || *told.OK != (c.want == "") {
			t.Errorf("%s: %v (%s), told %+v", name, err, got, told)
		}
		for _, part := range c.said {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
	}
	failed := errors.New("no database")
	r := &run{Bank: &Bank{Verify: func(context.Context) (invariants.Report, error) { return invariants.Report{}, failed }}, report: func(Event) {}}
	if err := r.verify(t.Context()); !errors.Is(err, failed) {
		t.Errorf("when it cannot look: %v", err)
	}
}

// The database that exercise 8 stops holds no lock; the second run must be kept away all the same, and a third may begin after it.
func TestASecondRunIsKeptAwayWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "exercise.lock")
	first, err := supervise.TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	r := &run{Bank: &Bank{LockFile: path, TransferDatabaseURL: "postgres://127.0.0.1:1/none"}}
	if _, err := r.lock(t.Context()); !errors.Is(err, ErrBusy) {
		t.Errorf("beside another run: %v", err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lock(t.Context()); err == nil || errors.Is(err, ErrBusy) {
		t.Errorf("after it, without a database: %v", err)
	}
	if again, err := supervise.TryLock(path); err != nil {
		t.Errorf("a run that could not begin keeps the lock: %v", err)
	} else if err := again.Unlock(); err != nil {
		t.Error(err)
	}
}

// Who interrupts a run wants to know whether everything is well again, and not that a context was canceled.
func TestAnInterruptionSaysWhatBecameOfTheBank(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	stopped := errors.New("rabbitmq is stopped")
	for _, c := range []struct {
		played, putBack error
		want            string
	}{
		{nil, nil, "interrupted, and everything is put back"}, // while people looked around
		{fmt.Errorf("asking: %w", ctx.Err()), nil, "interrupted, and everything is put back"},
		{ErrNoFault, nil, ErrNoFault.Error() + "\ninterrupted, and everything is put back"},
		{ctx.Err(), stopped, "interrupted\nrabbitmq is stopped"},
	} {
		if err := interruption(ctx, c.played, c.putBack); err.Error() != c.want || reasonOf(err) != Interrupted {
			t.Errorf("%v, %v: %q (%s), want %q", c.played, c.putBack, err, reasonOf(err), c.want)
		}
	}
}
