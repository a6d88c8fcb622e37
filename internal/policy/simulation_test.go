package policy

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// someOutage draws settings that are allowed, small enough to be quick.
func someOutage(t *rapid.T) values {
	given := map[string]string{
		"failure":  rapid.SampledFrom([]string{"down", "busy"}).Draw(t, "failure"),
		"outage":   fmt.Sprint(rapid.IntRange(1, 15).Draw(t, "outage")),
		"rate":     fmt.Sprint(rapid.IntRange(1, 8).Draw(t, "rate")),
		"capacity": fmt.Sprint(rapid.IntRange(10, 40).Draw(t, "capacity")),
		"attempts": fmt.Sprint(rapid.IntRange(1, 10).Draw(t, "attempts")),
		"seed":     fmt.Sprint(rapid.IntRange(1, 1000).Draw(t, "seed")),
	}
	v, err := read(dampers.Settings, given)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Whatever happens, under whatever dampers: every message ends once, every call is counted once, and the same settings give the same
// outcome.
func TestEveryMessageEndsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := someOutage(t)
		kind := rapid.SampledFrom(damperKinds).Draw(t, "damper")
		f := simulate(kind, v)
		if f.Done+f.Parked != f.Messages {
			t.Fatalf("%d arrived, %d done and %d parked", f.Messages, f.Done, f.Parked)
		}
		if f.Calls-f.Wasted != f.Done {
			t.Fatalf("%d calls went well, for %d messages that are done", f.Calls-f.Wasted, f.Done)
		}
		calls, failed := 0, 0
		for _, second := range f.Load {
			calls += second.Calls
			failed += second.Failed
		}
		if calls != f.Calls+f.Probes || failed != f.Wasted {
			t.Fatalf("in all seconds %d calls and %d failures, in all %d calls, %d probes and %d failures", calls, failed, f.Calls, f.Probes, f.Wasted)
		}
		// An attempt that was spent is a call that failed. Only a breaker can tell that one is not the message's fault.
		if f.Spent > f.Wasted || !kind.breaker && f.Spent != f.Wasted || f.Spent < f.Parked*v.number("attempts") {
			t.Fatalf("%d calls failed, %d attempts were spent, %d messages parked", f.Wasted, f.Spent, f.Parked)
		}
		if again := simulate(kind, v); !reflect.DeepEqual(f, again) {
			t.Fatal("the same settings gave something else")
		}
	})
}

// While the dependency is down and the breaker open, nothing calls but the probe, about once a second, and the one message that it takes
// when its pause of 15 s is over. What had been called before it opened fails unspent, so nothing is parked.
func TestAnOpenBreakerOnlyProbes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := someOutage(t)
		v["failure"], v["outage"], v["capacity"] = "down", "30", "1000" // nothing is refused once it is up
		f := simulate(damper{name: "breaker", breaker: true}, v)
		opened, failed := false, 0
		for second := 20; second < 50; second++ {
			load := f.Load[second]
			if opened {
				if failed += load.Failed; failed > 1 || load.Calls > 4 {
					t.Fatalf("second %d: %+v, %d failures since the breaker has opened", second, load, failed)
				}
			}
			opened = opened || load.Failed > 0
		}
		if f.Parked != 0 || f.Spent != 0 || f.Probes > 45 {
			t.Fatalf("%d parked, %d attempts spent, %d probes", f.Parked, f.Spent, f.Probes)
		}
	})
}

// Nothing is wrong until something fails: no damper changes anything when the dependency is well, and the load before the outage is that
// of the messages.
func TestDampersKeepOutOfTheWay(t *testing.T) {
	t.Parallel()
	v, err := read(dampers.Settings, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := simulate(damperKinds[0], v)
	for _, kind := range damperKinds {
		f := simulate(kind, v)
		if f.Messages != first.Messages || f.Before != first.Before || f.Before < 40 || f.Before > 60 {
			t.Errorf("%s: %d messages, %.1f calls a second before the outage; without dampers %d and %.1f", kind.name, f.Messages, f.Before, first.Messages, first.Before)
		}
	}
}

// What the page says about the dampers is so: each bounds what it is there to bound, and only together they do all of it.
func TestWhatEachDamperIsFor(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{"1", "2"} {
		v, err := read(dampers.Settings, map[string]string{"seed": seed})
		if err != nil {
			t.Fatal(err)
		}
		by := map[string]DamperFigures{}
		for _, kind := range damperKinds {
			by[kind.name] = simulate(kind, v)
		}
		none, all := by["none"], by["all"]
		for name, holds := range map[string]bool{
			"without dampers the outage's messages are parked": none.Parked >= 1000 && none.Recovers < 1,
			"backoff saves most of them":                       by["backoff"].Parked < none.Parked/4,
			"and still calls all the time":                     by["backoff"].During > 100,
			"a budget bounds the calls":                        by["budget"].During < 10,
			"a breaker leaves only probes":                     by["breaker"].During < 2,
			"a rate limit bounds the rate":                     by["rate limit"].During < 110,
			"together nothing is parked":                       all.Parked == 0,
			"next to nothing is wasted":                        all.Wasted < 50,
			"and the backlog goes at the dependency's pace":    all.Recovers > 25 && all.Recovers < 60,
		} {
			if !holds {
				t.Errorf("seed %s: not so: %s: %+v", seed, name, summary(by))
			}
		}
	}
}

func summary(by map[string]DamperFigures) (lines []string) {
	for name, f := range by {
		lines = append(lines, fmt.Sprintf("%s: %.1f/s, %d wasted, %d parked, %.1f s", name, f.During, f.Wasted, f.Parked, f.Recovers))
	}
	return lines
}
