package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/janitor"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/retry"
)

// begin notes a start and wants it to be the n-th.
func begin(t *testing.T, s *Starts, consumer, body string, first, want int) {
	t.Helper()
	got, err := s.Begin(t.Context(), consumer, sha256.Sum256([]byte(body)), first)
	if err != nil || got != want {
		t.Errorf("start of %q: number %d, want %d: %v", body, got, want, err)
	}
}

func keysOf(bodies ...string) (keys [][32]byte) {
	for _, body := range bodies {
		keys = append(keys, sha256.Sum256([]byte(body)))
	}
	return keys
}

func TestStartsAreCountedUntilTheyEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := NewStarts(b.pool)
	begin(t, s, "a", "seen before", 1, 2)
	begin(t, s, "a", "seen before", 1, 3)
	begin(t, s, "a", "new", 0, 1)
	begin(t, s, "a", "new", 1, 2) // what the caller thinks of the first one counts only once
	begin(t, s, "b", "new", 0, 1) // another consumer's business
	if err := s.End(t.Context(), "a", keysOf("seen before", "new", "never begun")...); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "a", "seen before", 1, 2)
	begin(t, s, "b", "new", 0, 2)
	if n := b.number(t, "select count(*) from starts"); n != 2 {
		t.Errorf("%d rows", n)
	}
}

func TestStopInGoodOrderIsNoStart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := NewStarts(b.pool)
	begin(t, s, "a", "running", 1, 2)
	begin(t, s, "a", "noted", 1, 2)
	if err := s.Excuse(t.Context(), "a", keysOf("running"), keysOf("noted", "waiting", "waiting")); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "a", "running", 1, 2) // one of them was excused
	begin(t, s, "a", "noted", 1, 3)   // none
	begin(t, s, "a", "waiting", 1, 1) // known now, with none
	for range 3 {
		if err := s.Excuse(t.Context(), "a", keysOf("waiting"), nil); err != nil {
			t.Fatal(err)
		}
	}
	begin(t, s, "a", "waiting", 1, 1) // never below none
}

func TestReplicasCountTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var replicas sync.WaitGroup
	for range 10 {
		s := NewStarts(connect(t, b.pool.Config().ConnString(), nil))
		replicas.Go(func() {
			if _, err := s.Begin(t.Context(), "a", sha256.Sum256([]byte("m")), 1); err != nil {
				t.Error(err)
			}
			if err := s.Excuse(t.Context(), "a", nil, keysOf("x", "y", "m", "z")); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	begin(t, NewStarts(b.pool), "a", "m", 1, 12)
}

func TestDatabaseThatIsAwayIsATimeout(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := NewStarts(b.pool)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	_, begun := s.Begin(ctx, "a", [32]byte{}, 1)
	for name, err := range map[string]error{"Begin": begun, "End": s.End(ctx, "a", [32]byte{}), "Excuse": s.Excuse(ctx, "a", keysOf("m"), nil)} {
		if class := retry.ClassOf(err); class != retry.Timeout {
			t.Errorf("%s: class %s of %v", name, class, err)
		}
	}
}

func TestSweepForgetsStartsThatNeverCameBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := NewStarts(b.pool)
	begin(t, s, "a", "old", 1, 2)
	if _, err := b.pool.Exec(t.Context(), "update starts set noted_at = now() - interval '25 hours'"); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "a", "young", 1, 2)
	j := NewJanitor(janitor.Config{Pool: b.pool, Retention: 24 * time.Hour, Pause: time.Microsecond})
	if _, err := j.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin(t, s, "a", "old", 1, 2)
	begin(t, s, "a", "young", 1, 3)
}

// A commit that is not answered may have been made; whatever does not come so far has not been.
func TestBeginSaysWhetherTheStartMayHaveBeenNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := NewStarts(b.pool)
	locked, err := b.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = locked.Rollback(context.Background()) }()
	if _, err := locked.Exec(t.Context(), "lock table starts in access exclusive mode"); err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), time.Second) // time to connect, and to send it
	defer cancel()
	if _, err := s.Begin(bounded, "a", [32]byte{}, 1); !errors.Is(err, messaging.ErrPerhapsNoted) || retry.ClassOf(err) != retry.Timeout {
		t.Errorf("no answer: %v", err)
	}
	if _, err := s.Begin(bounded, "a", [32]byte{}, 1); err == nil || errors.Is(err, messaging.ErrPerhapsNoted) {
		t.Errorf("not sent: %v", err)
	}
	if err := locked.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), "no text: \x00", [32]byte{}, 1); err == nil || errors.Is(err, messaging.ErrPerhapsNoted) {
		t.Errorf("refused: %v", err)
	}
	b.pool.Close()
	if _, err := s.Begin(t.Context(), "a", [32]byte{}, 1); err == nil || errors.Is(err, messaging.ErrPerhapsNoted) {
		t.Errorf("no connection: %v", err)
	}
}
