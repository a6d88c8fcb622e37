package runs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/banking/services/console/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A run ends as the keeper's last word says, and without one it is broken.
func TestHowARunEnds(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		lines []string
		state State
		said  string
	}{
		"passed":             {[]string{`{"kind":"begun","text":"q"}`, `{"kind":"ended","text":"well","ok":true}`}, Passed, "well"},
		"failed":             {[]string{`{"kind":"ended","text":"no fault","ok":false,"reason":"NO_FAULT"}`}, Failed, "no fault"},
		"interrupted":        {[]string{`{"kind":"ended","text":"stopped","ok":false,"reason":"INTERRUPTED"}`}, Stopped, "stopped"},
		"an end without ok":  {[]string{`{"kind":"ended","text":"?"}`}, Failed, "?"},
		"no end":             {[]string{`{"kind":"doing","text":"x"}`}, Broken, "The bank's keeper has gone"},
		"nothing at all":     {nil, Broken, "The bank's keeper has gone"},
		"no JSON, and well":  {[]string{"", "no JSON", `[1]`, `{"kind":"ended","text":"well","ok":true}`}, Passed, "well"},
		"a line of 70,000":   {[]string{`{"kind":"doing","text":"` + strings.Repeat("x", 70_000) + `"}`}, Broken, "The bank's keeper has gone"},
		"looked, and passed": {[]string{`{"kind":"looking","text":"l"}`, `{"kind":"reset","text":"r"}`, `{"kind":"ended","text":"well","ok":true}`}, Passed, "well"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			w := start(t, k, 0)
			w.begin(1)
			for _, line := range of.lines {
				k.tell <- line
			}
			close(k.tell)
			w.await("its end", func() bool { return w.run(1).State.Over() })
			seen := w.run(1)
			if seen.State != of.state || !strings.HasPrefix(seen.Said, of.said) || seen.Ended == nil || seen.Ended.Before(seen.Started) {
				t.Errorf("it has ended as %+v, want %s %q", seen, of.state, of.said)
			}
			if err := w.Stop(1); !errors.Is(err, ErrNotRunning) {
				t.Errorf("stopped when it is over: %v", err)
			}
		})
	}
}

// What it is doing is told state by state, its events in their order, and each with the topics that pages watch.
func TestAStoryInItsOrder(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 0)
	w.begin(12)
	w.awaitState(12, Running)
	for i := range 25 {
		k.tell <- fmt.Sprintf(`{"kind":"doing","text":"step %d"}`, i)
	}
	k.tell <- `{"kind":"looking","text":"look around"}`
	w.awaitState(12, Looking)
	k.tell <- `{"kind":"reset","text":"nobody came"}`
	w.awaitState(12, Running)
	if err := w.Stop(12); err != nil {
		t.Fatal(err)
	}
	w.awaitState(12, Stopping)
	k.tell <- `{"kind":"looking","text":"too late"}`
	k.tell <- `{"kind":"ended","text":"stopped","ok":false,"reason":"INTERRUPTED"}`
	close(k.tell)
	w.awaitState(12, Stopped)

	keys, values := w.parts("exercise:12")
	if len(keys) != 30 || keys[0] != "run" {
		t.Fatalf("keys %v", keys)
	}
	for i, key := range keys[1:] {
		if key != fmt.Sprint(i) {
			t.Errorf("event %d is called %s", i, key)
		}
	}
	for i, wanted := range map[int]string{0: "step 0", 24: "step 24", 25: "look around", 26: "nobody came", 27: "too late", 28: "stopped"} {
		if !strings.Contains(values[fmt.Sprint(i)], wanted) {
			t.Errorf("event %d is %s, want %s", i, values[fmt.Sprint(i)], wanted)
		}
	}
	if told := k.told(); !slices.Equal(told, []string{"Bearer token /exercises/12/run?look=1m0s", "Bearer token /exercises/12/stop"}) {
		t.Errorf("the keeper was told %q", told)
	}
}

// Of two that are started at once one runs, and the other is told which. When it is over the next may start, and both are remembered.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 0)
	const many = 8
	failed := make([]error, many+1)
	var starting sync.WaitGroup
	for number := 1; number <= many; number++ {
		starting.Go(func() { _, failed[number] = w.Start(number) })
	}
	starting.Wait()
	winner := 0
	for number := 1; number <= many; number++ {
		switch {
		case failed[number] == nil && winner == 0:
			winner = number
		case failed[number] == nil:
			t.Errorf("%d and %d run at once", winner, number)
		case !errors.Is(failed[number], ErrBusy):
			t.Errorf("%d: %v", number, failed[number])
		}
	}
	if winner == 0 {
		t.Fatal("none runs")
	}
	_, err := w.Start(9)
	if want := fmt.Sprintf("number %d", winner); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), want) {
		t.Errorf("beside it: %v, want %s", err, want)
	}
	for _, order := range []func(int) error{w.Stop, w.Continue} {
		if err := order(9); !errors.Is(err, ErrNotRunning) {
			t.Errorf("an order about another exercise: %v", err)
		}
	}
	k.tell <- `{"kind":"ended","text":"well","ok":true}`
	if _, err := w.Start(9); !errors.Is(err, ErrBusy) { // it has said its last word, and the keeper is not free yet
		t.Errorf("before its end: %v", err)
	}
	close(k.tell)
	w.awaitState(winner, Passed)
	w.begin(9) // told nothing at all
	w.awaitState(9, Broken)
	keys, _ := w.parts("exercises")
	if want := []string{fmt.Sprint(winner), "9"}; !slices.Equal(keys, want) {
		t.Errorf("remembered are %v, want %v", keys, want)
	}
}

// What was refused has not run: the run before it is what is remembered, and the next may start.
func TestWhatTheKeeperRefusesHasNotRun(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 0)
	w.begin(1)
	k.tell <- `{"kind":"ended","text":"well","ok":true}`
	close(k.tell)
	w.awaitState(1, Passed)

	for _, status := range []int{http.StatusConflict, http.StatusUnauthorized, http.StatusInternalServerError} {
		k.set(func(k *keeper) { k.refuse = status })
		_, err := w.Start(1)
		var refusal *upstream.Refusal
		if !errors.As(err, &refusal) || refusal.Status != status || refusal.Detail != "the keeper says no" {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := w.Start(2); !upstream.Is(err, status) {
			t.Errorf("another after a refusal: %v", err)
		}
	}
	if keys, _ := w.parts("exercises"); !slices.Equal(keys, []string{"1"}) || w.run(1).State != Passed {
		t.Errorf("remembered are %v, the first as %+v", keys, w.run(1))
	}
	k.set(func(k *keeper) { k.refuse = 0 })
	w.begin(2)
	w.awaitState(2, Broken)
}

// An order that the keeper refuses changes nothing about the run.
func TestAnOrderThatIsRefused(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 0)
	w.begin(1)
	k.tell <- `{"kind":"looking","text":"look around"}`
	w.awaitState(1, Looking)
	k.set(func(k *keeper) { k.refuse = http.StatusConflict })
	for _, order := range []func(int) error{w.Stop, w.Continue} {
		if err := order(1); !upstream.Is(err, http.StatusConflict) || w.run(1).State != Looking {
			t.Errorf("%v, and the run is %+v", err, w.run(1))
		}
	}
	k.set(func(k *keeper) { k.refuse = 0 })
	if err := w.Continue(1); err != nil {
		t.Fatal(err)
	}
	w.awaitState(1, Running)
}

// A keeper that does not answer is given up in time, and that is told from a refusal. It holds nobody else up.
func TestASilentKeeper(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 50*time.Millisecond)
	k.set(func(k *keeper) { k.silent = true })
	var silent *upstream.Silent
	if _, err := w.Start(1); !errors.As(err, &silent) {
		t.Errorf("a start: %v", err)
	}
	if keys, _ := w.parts("exercises"); len(keys) != 0 {
		t.Errorf("remembered are %v", keys)
	}
	k.set(func(k *keeper) { k.silent = false })
	patient := start(t, k, 0)
	patient.begin(1)
	k.tell <- `{"kind":"looking","text":"look around"}`
	patient.awaitState(1, Looking)
	k.server.CloseClientConnections() // it is gone in the middle
	patient.awaitState(1, Broken)
	k.server.Close()
	if _, err := patient.Start(1); !errors.As(err, &silent) || patient.run(1).State != Broken {
		t.Errorf("a start without a keeper: %v; the run before it is %+v", err, patient.run(1))
	}
}

// The console's end breaks off the call, by which the keeper puts everything back. After that nothing starts.
func TestTheEndBreaksTheCallOff(t *testing.T) {
	t.Parallel()
	k := newKeeper(t)
	w := start(t, k, 0)
	w.begin(1)
	k.tell <- `{"kind":"doing","text":"x"}`
	w.stop()
	select {
	case <-k.left:
	case <-time.After(time.Minute):
		t.Fatal("the keeper still runs it")
	}
	if w.run(1).State != Broken {
		t.Errorf("the run is %+v", w.run(1))
	}
	if _, err := w.Start(2); !errors.Is(err, context.Canceled) {
		t.Errorf("a start after the end: %v", err)
	}
}

func TestWithoutAKeeper(t *testing.T) {
	t.Parallel()
	w := start(t, nil, 0)
	if _, err := w.Start(1); !errors.Is(err, ErrNoKeeper) || w.Possible() {
		t.Errorf("possible %t, %v", w.Possible(), err)
	}
	if err := w.Stop(1); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a stop: %v", err)
	}
}

// What is kept of a run is bounded by number and by size; the end is always kept, and what is missing is counted.
func TestWhatIsKept(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		size, lines, kept int
	}{
		"by number": {10, mostEvents + 50, mostEvents},
		"by size":   {mostBytes / 10, 30, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper(t)
			w := start(t, k, 0)
			w.begin(1)
			for range of.lines {
				k.tell <- fmt.Sprintf(`{"kind":"doing","text":%q}`, strings.Repeat("x", of.size))
			}
			k.tell <- `{"kind":"ended","text":"well","ok":true}`
			close(k.tell)
			w.awaitState(1, Passed)
			keys, values := w.parts("exercise:1")
			if len(keys) != of.kept+2 || !strings.Contains(values[fmt.Sprint(of.kept)], "ended") || w.run(1).Dropped != of.lines-of.kept {
				t.Errorf("%d parts, %d dropped; want %d and %d, the end among them", len(keys), w.run(1).Dropped, of.kept+2, of.lines-of.kept)
			}
		})
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	w := start(t, nil, 0)
	for topic, wanted := range map[string]bool{
		"exercises": true, "exercise:1": true, "exercise:99": true, "exercise:0": false, "exercise:100": false, "exercise:01": false, "exercise:+1": false,
		"exercise:": false, "exercise": false, "exercise:one": false, "transfers": false, "": false,
	} {
		if _, ok := w.Find(topic); ok != wanted {
			t.Errorf("%q can be watched: %t", topic, ok)
		}
	}
	if keys, _ := w.parts("exercise:7"); len(keys) != 0 {
		t.Errorf("of what never ran %v is told", keys)
	}
}
