package outbox

import (
	"testing"
	"time"
)

func TestFrontierLagsBehind(t *testing.T) {
	t.Parallel()
	var f frontier
	start := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return start.Add(d) }
	expect := func(when time.Duration, want int64) {
		t.Helper()
		if got := f.low(at(when)); got != want {
			t.Errorf("after %s a claim starts at %d, want %d", when, got, want)
		}
	}
	expect(0, 0)
	f.finished(100, at(0))
	expect(settleTime-1, 0)
	f.finished(200, at(settleTime-1))
	f.finished(150, at(settleTime-1)) // another relay was faster with higher ids
	if f.high() != 200 {
		t.Errorf("high is %d", f.high())
	}
	// A transaction that took id 199 may be just about to commit.
	expect(settleTime, 0)
	expect(2*settleTime, 200)
	f.finished(300, at(2*settleTime))
	expect(3*settleTime-1, 200)
	expect(time.Hour, 200)            // nobody asked for an hour: what was finished last waits for its turn,
	expect(time.Hour+settleTime, 300) // and then counts
}

// What is released lies below what has been sent since: a claim finds it all the same, at once and for a while.
func TestFrontierGoesBackToWhatIsReleased(t *testing.T) {
	t.Parallel()
	var f frontier
	now := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	for range 4 {
		f.finished(100, now)
		now = now.Add(settleTime)
	}
	if low := f.low(now); low != 100 {
		t.Fatalf("a claim starts at %d, want 100", low)
	}
	f.released(40, now)
	for _, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 39}, {settleTime - 1, 39}, {settleTime, 39}, {2 * settleTime, 100}} {
		if low := f.low(now.Add(c.after)); low != c.want {
			t.Errorf("%s after the release a claim starts at %d, want %d", c.after, low, c.want)
		}
	}
}

// Under steady traffic the hint follows at a distance of one to two settle times.
func TestFrontierFollows(t *testing.T) {
	t.Parallel()
	var f frontier
	start := time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)
	const perStep, step = 10, 10 * time.Millisecond
	for i := range 1000 {
		now := start.Add(time.Duration(i) * step)
		f.finished(int64((i+1)*perStep), now)
		distance := f.high() - f.low(now)
		if low, high := int64(settleTime/step*perStep), int64((2*settleTime/step+1)*perStep); i > 100 && (distance < low || distance > high) {
			t.Fatalf("step %d: the hint is %d ids behind, want %d to %d", i, distance, low, high)
		}
	}
}
