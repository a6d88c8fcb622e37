package policy

import (
	"slices"
	"testing"
	"time"

	"example.com/banking/pkg/retry"
	"pgregory.net/rapid"
)

func followAll(class retry.Class, heals time.Duration, attempts, seed int) map[string]PlatformFigures {
	all := map[string]PlatformFigures{}
	for i, m := range mechanisms {
		all[m.name] = m.follow(class, heals, attempts, random(seed, uint64(i)))
	}
	return all
}

// One state machine: what ends a message for what reason, and after how many attempts, does not depend on the platform when nothing heals.
func TestTheDecisionsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		class := retry.Class(rapid.SampledFrom(platforms.Settings[0].Choices).Draw(t, "class"))
		attempts, seed := rapid.IntRange(1, 4).Draw(t, "attempts"), rapid.IntRange(1, 100).Draw(t, "seed")
		all := followAll(class, 0, attempts, seed)
		want := all["RabbitMQ, lap"]
		for name, f := range all {
			// NOT_FOUND may grow too old on the long waits of a tier before its attempts are used up.
			aged := class == retry.NotFound && f.Reason == retry.ReasonNotFoundAged && f.EndedAt >= notFoundMaxAge.Seconds()
			if !aged && (f.Reason != want.Reason || len(f.Attempts) != len(want.Attempts)) {
				t.Fatalf("%s: %d attempts, %s; lap: %d, %s", name, len(f.Attempts), f.Reason, len(want.Attempts), want.Reason)
			}
			now := 0.0
			for _, a := range f.Attempts {
				if a.At != now {
					// Sums of floats, from durations that were exact.
					if diff := a.At - now; diff > 1e-6 || diff < -1e-6 {
						t.Fatalf("%s: attempt at %v, expected at %v", name, a.At, now)
					}
				}
				now = a.At + a.Waited
			}
			if f.Ended == "done" || f.EndedAt != f.Attempts[len(f.Attempts)-1].At {
				t.Fatalf("%s: %+v", name, f)
			}
		}
	})
}

func TestWhatThePlatformsMakeOfADelay(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= 20; seed++ {
		all := followAll(retry.Timeout, 0, 4, seed)
		waits := func(name string) (w []float64) {
			for _, a := range all[name].Attempts[:3] {
				w = append(w, a.Waited)
			}
			return w
		}
		if got := waits("RabbitMQ, lap"); !slices.Equal(got, []float64{5, 5, 5}) {
			t.Errorf("lap: %v", got)
		}
		for i, w := range waits("RabbitMQ, tiers") {
			if queues := [][]float64{{4, 5, 6}, {24, 30, 36}, {240, 300, 360}}[i]; !slices.Contains(queues, w) {
				t.Errorf("tiers: waited %v, there are queues of %v", w, queues)
			}
		}
		for i, w := range waits("SQS") {
			decided := all["SQS"].Attempts[i].Decided
			if w != float64(int(w)) || w < decided || w >= decided+1 {
				t.Errorf("SQS: waited %v for %v", w, decided)
			}
		}
		if got := waits("Kafka, retry topics"); !slices.Equal(got, []float64{5, 30, 300}) {
			t.Errorf("retry topics: %v", got)
		}
		if f := all["Kafka, in place"]; f.Held != f.EndedAt || f.Held == 0 || all["SQS"].Held != 0 {
			t.Errorf("in place: %+v", f)
		}
		if all["SQS"].Ended != "redriven" || all["RabbitMQ, lap"].Ended != "copied" {
			t.Errorf("ended: SQS %s, lap %s", all["SQS"].Ended, all["RabbitMQ, lap"].Ended)
		}
	}
	// A queue that redrives cannot do so at the first of several receives.
	if f := followAll(retry.Validation, 0, 4, 1)["SQS"]; f.Ended != "copied" || len(f.Attempts) != 1 || f.Reason != retry.ReasonValidation {
		t.Errorf("VALIDATION: %+v", f)
	}
}

func TestWhatHeals(t *testing.T) {
	t.Parallel()
	all := followAll(retry.Timeout, 20*time.Second, 4, 1)
	if f := all["RabbitMQ, lap"]; f.Reason != retry.ReasonMaxAttempts || f.EndedAt != 15 {
		t.Errorf("lap: %+v", f)
	}
	for name, f := range all {
		if name != "RabbitMQ, lap" && (f.Ended != "done" || f.EndedAt < 20 || f.Reason != "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestEveryPartIsSaidOfEveryPlatform(t *testing.T) {
	t.Parallel()
	for _, table := range []Table{words, limits} {
		for _, row := range table.Rows {
			for _, cell := range row {
				if len(row) != len(table.Columns) || cell == "" {
					t.Errorf("%s: %q", table.Caption, row)
				}
			}
		}
	}
}
