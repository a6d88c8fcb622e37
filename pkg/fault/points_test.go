package fault

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// ledger counts in memory, or fails.
type ledger struct {
	mu    sync.Mutex
	left  map[uuid.UUID]int64
	noted int64
	err   error
}

func (l *ledger) Take(_ context.Context, id uuid.UUID) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || l.left[id] == 0 {
		return false, l.err
	}
	l.left[id]--
	return true, nil
}

func (l *ledger) Note(_ context.Context, _ uuid.UUID, firings int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.noted += firings
	}
	return l.err
}

// arm makes points at which the faults are armed, and the ledger that counts them.
func arm(faults ...Fault) (*Points, *ledger) {
	l := &ledger{left: map[uuid.UUID]int64{}}
	p := New(l, slog.New(slog.DiscardHandler))
	for i := range faults {
		faults[i].ID = uuid.New()
		if faults[i].Remaining != nil {
			l.left[faults[i].ID] = *faults[i].Remaining
		}
	}
	p.Arm(faults)
	return p, l
}

func times(n int64) *int64 { return &n }

var errAway = errors.New("the database is away")

func TestNoPointsNeverFail(t *testing.T) {
	t.Parallel()
	var p *Points
	for _, at := range AllPoints() {
		if err := p.At(t.Context(), at, "m1"); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestErrorAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range AllPoints() {
		for _, class := range AllClasses() {
			p, _ := arm(Fault{Point: point, Action: Error, Class: class})
			for _, at := range AllPoints() {
				err := p.At(t.Context(), at, "m1")
				if at != point && err != nil {
					t.Errorf("armed at %s, failed at %s", point, at)
				}
				if at == point && retry.ClassOf(err) != class {
					t.Errorf("at %s: class %q, want %q", at, retry.ClassOf(err), class)
				}
			}
		}
	}
}

func TestOnlyTheNamedMessageFails(t *testing.T) {
	t.Parallel()
	p, _ := arm(Fault{Point: Handler, Action: Error, Class: retry.Timeout, MessageID: "m1"})
	if err := p.At(t.Context(), Handler, "m2"); err != nil {
		t.Errorf("another message: %v", err)
	}
	if err := p.At(t.Context(), Handler, "m1"); err == nil {
		t.Error("its own message does not fail")
	}
}

func TestDelayTakesItsTimeOrEndsWithTheWork(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	p, _ := arm(Fault{Point: BeforeAck, Action: Delay, Delay: delay}, Fault{Point: AfterAck, Action: Delay, Delay: MaxDelay})
	began := time.Now()
	if err := p.At(t.Context(), BeforeAck, "m1"); err != nil || time.Since(began) < delay {
		t.Errorf("%v after %s, want nothing after %s", err, time.Since(began), delay)
	}
	ctx, cancel := context.WithTimeout(t.Context(), delay)
	defer cancel()
	err := p.At(ctx, AfterAck, "m1")
	if retry.ClassOf(err) != retry.Timeout || time.Since(began) >= MaxDelay {
		t.Errorf("%v after %s, want a timeout at once", err, time.Since(began))
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	p, l := arm(Fault{Point: Handler, Action: Panic})
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		if l.noted != 1 {
			t.Errorf("%d firings noted, want 1", l.noted)
		}
	}()
	_ = p.At(t.Context(), Handler, "m1")
}

// The count is taken before the process ends: it comes back to a table that knows.
func TestExitIsCountedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	p, l := arm(Fault{Point: AfterCommit, Action: Exit, Remaining: times(1)}, Fault{Point: BeforeCommit, Action: Exit})
	var codes []int
	p.exit = func(code int) {
		codes = append(codes, code)
		if len(codes) == 1 && l.left[(*p.armed.Load())[0].ID] != 0 {
			t.Error("the process ends before the firing is counted")
		}
		if len(codes) == 2 && l.noted != 1 {
			t.Error("the process ends before the firing is noted")
		}
	}
	for range 2 {
		_ = p.At(t.Context(), AfterCommit, "m1")
	}
	_ = p.At(t.Context(), BeforeCommit, "m1")
	if len(codes) != 2 || codes[0] != 137 || codes[1] != 137 {
		t.Errorf("exits %v, want twice 137", codes)
	}
}

func TestCountedFaultFiresExactlyThatOften(t *testing.T) {
	t.Parallel()
	const count, callers, calls = 7, 8, 20
	p, _ := arm(Fault{Point: Handler, Action: Error, Class: retry.Timeout, Remaining: times(count)})
	var failures atomic.Int64
	var running sync.WaitGroup
	for range callers {
		running.Go(func() {
			for range calls {
				if p.At(t.Context(), Handler, "m1") != nil {
					failures.Add(1)
				}
			}
		})
	}
	running.Wait()
	if failures.Load() != count {
		t.Errorf("fired %d times, want %d", failures.Load(), count)
	}
}

// A fault that cannot be counted does not fire; one that lasts asks nobody, so that it fires with the database away too.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	p, l := arm(Fault{Point: Handler, Action: Error, Class: retry.Timeout, Remaining: times(1)}, Fault{Point: BeforeAck, Action: Error, Class: retry.Timeout})
	l.err = errAway
	if err := p.At(t.Context(), Handler, "m1"); err != nil {
		t.Errorf("a fault that cannot be counted: %v", err)
	}
	if err := p.At(t.Context(), BeforeAck, "m1"); err == nil {
		t.Error("a lasting fault does not fire")
	}
	if err := p.NoteFired(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("noting: %v", err)
	}
	l.err = nil
	if err := p.At(t.Context(), Handler, "m1"); err == nil {
		t.Error("the counted fault does not fire when the database is back")
	}
	if err := p.NoteFired(t.Context()); err != nil || l.noted != 1 {
		t.Errorf("%d firings noted with %v, want 1: the failed note must not lose it", l.noted, err)
	}
}

// Firings that are not noted yet survive that the list is read again.
func TestArmingAgain(t *testing.T) {
	t.Parallel()
	lasting := Fault{Point: Handler, Action: Error, Class: retry.Timeout}
	p, l := arm(lasting)
	lasting.ID = (*p.armed.Load())[0].ID
	_ = p.At(t.Context(), Handler, "m1")
	p.Arm([]Fault{lasting, {ID: uuid.New(), Point: AfterAck, Action: Error, Remaining: times(0)}})
	_ = p.At(t.Context(), Handler, "m1")
	if err := p.NoteFired(t.Context()); err != nil || l.noted != 2 {
		t.Errorf("%d firings noted with %v, want 2", l.noted, err)
	}
	if err := p.At(t.Context(), AfterAck, "m1"); err != nil {
		t.Errorf("a fault with nothing left: %v", err)
	}
	p.Arm(nil)
	if err := p.At(t.Context(), Handler, "m1"); err != nil {
		t.Errorf("after it was deleted: %v", err)
	}
}

func TestFaultsMeetAtOnePoint(t *testing.T) {
	t.Parallel()
	const delay = 20 * time.Millisecond
	p, _ := arm(Fault{Point: Handler, Action: Delay, Delay: delay}, Fault{Point: Handler, Action: Error, Class: retry.Conflict},
		Fault{Point: Handler, Action: Error, Class: retry.Timeout})
	began := time.Now()
	if err := p.At(t.Context(), Handler, "m1"); retry.ClassOf(err) != retry.Conflict || time.Since(began) < delay {
		t.Errorf("%v after %s, want the first error after the delay", err, time.Since(began))
	}
}

func TestNamesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Point{
		"handler": Handler, "In Handler": Handler, "BEFORE_COMMIT": BeforeCommit, "after commit": AfterCommit, " before-ack ": BeforeAck,
		"After_Ack": AfterAck, "after-publish": AfterPublish, "after publish before mark": AfterPublish,
	} {
		if got, ok := ParsePoint(text); !ok || got != want {
			t.Errorf("point %q: %q, %v", text, got, ok)
		}
	}
	for text, want := range map[string]Action{"Error": Error, "delay": Delay, "PANIC": Panic, " exit": Exit} {
		if got, ok := ParseAction(text); !ok || got != want {
			t.Errorf("action %q: %q, %v", text, got, ok)
		}
	}
	for text, want := range map[string]retry.Class{"timeout": retry.Timeout, "rate-limited": retry.RateLimited, "NOT_FOUND": retry.NotFound} {
		if got, ok := ParseClass(text); !ok || got != want {
			t.Errorf("class %q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "handle", "after-publish-before", "beforecommit"} {
		if got, ok := ParsePoint(text); ok {
			t.Errorf("point %q is taken for %q", text, got)
		}
	}
	if _, ok := ParseAction("kill"); ok {
		t.Error("there is an action kill")
	}
	if _, ok := ParseClass("FATAL"); ok {
		t.Error("there is a class FATAL")
	}
}

// What is not used costs nothing, and what is armed elsewhere no allocation.
func TestAskingAllocatesNothing(t *testing.T) {
	armedElsewhere, _ := arm(Fault{Point: AfterPublish, Action: Exit}, Fault{Point: Handler, Action: Exit, MessageID: "another"})
	nothingArmed, _ := arm()
	ctx := t.Context()
	for name, p := range map[string]*Points{"off": nil, "nothing armed": nothingArmed, "armed elsewhere": armedElsewhere} {
		if n := testing.AllocsPerRun(1000, func() { _ = p.At(ctx, Handler, "m1") }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	armedElsewhere, _ := arm(Fault{Point: AfterPublish, Action: Exit}, Fault{Point: Handler, Action: Exit, MessageID: "another"})
	nothingArmed, _ := arm()
	ctx := b.Context()
	for _, c := range []struct {
		name string
		p    *Points
	}{{"off", nil}, {"nothing armed", nothingArmed}, {"armed elsewhere", armedElsewhere}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if c.p.At(ctx, Handler, "m1") != nil {
					b.Fatal("it fails")
				}
			}
		})
	}
}
