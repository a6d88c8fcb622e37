package policy

import (
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const platformsTitle = "The same failure on RabbitMQ, SQS and Kafka"

// platforms shows what the same decisions look like on other platforms than ours.
var platforms = Plot{
	Name: "platforms", Title: platformsTitle,
	Settings: []Setting{
		{Name: "class", Label: "Class of the failure", Default: "TIMEOUT", Choices: []string{"TIMEOUT", "NOT_FOUND", "RATE_LIMITED", "CONFLICT", "UNKNOWN", "VALIDATION"}},
		{Name: "heals", Label: "Over after seconds, 0: never", Default: "20", Least: 0, Most: 3600},
		{Name: "attempts", Label: "Attempts", Default: "4", Least: 1, Most: 10},
		seed,
	},
	compute: computePlatforms,
}

// mechanism is how a platform carries the policy's decisions out. The decisions are the same everywhere.
type mechanism struct {
	name   string
	delays []time.Duration
	jitter float64
	// wait is what becomes of a delay that was decided: what the platform can do of it.
	wait func(d time.Duration, rnd func() float64) time.Duration
	// parks says how a message gets into quarantine.
	parks func(reason string) string
	holds bool // nothing behind the message goes on meanwhile
}

func exactly(d time.Duration, _ func() float64) time.Duration { return d }

// oneOfThree picks one of a tier's queues.
func oneOfThree(d time.Duration, rnd func() float64) time.Duration {
	return retry.Jitter(d, share, math.Floor(rnd()*3)/2)
}

// wholeSeconds is what a visibility timeout can be.
func wholeSeconds(d time.Duration, _ func() float64) time.Duration {
	return min((d + time.Second - 1).Truncate(time.Second), 12*time.Hour)
}

func byCopy(string) string { return "copied" }

// redriven is what the queue does by itself when a message has been received too often; all else is up to the consumer.
func redriven(reason string) string {
	if reason == retry.ReasonMaxAttempts {
		return "redriven"
	}
	return "copied"
}

var mechanisms = []mechanism{
	{name: "RabbitMQ, lap", delays: lap.Delays, wait: exactly, parks: byCopy},
	{name: "RabbitMQ, tiers", delays: tiered.Delays, wait: oneOfThree, parks: byCopy},
	{name: "SQS", delays: tiered.Delays, jitter: share, wait: wholeSeconds, parks: redriven},
	{name: "Kafka, retry topics", delays: tiered.Delays, wait: exactly, parks: byCopy},
	{name: "Kafka, in place", delays: tiered.Delays, jitter: share, wait: exactly, parks: byCopy, holds: true},
}

// PlatformFigures is what becomes of one message on a platform.
type PlatformFigures struct {
	Platform string            `json:"platform"`
	Attempts []PlatformAttempt `json:"attempts"`
	Ended    string            `json:"ended"` // done, or parked and how
	Reason   string            `json:"reason,omitempty"`
	EndedAt  float64           `json:"endedAt"`
	Held     float64           `json:"held"` // for how long nothing behind the message went on
}

// PlatformAttempt is one execution.
type PlatformAttempt struct {
	At      float64 `json:"at"`
	Decided float64 `json:"decided"` // the delay that the policy decided
	Waited  float64 `json:"waited"`  // what the platform made of it
}

// follow follows one message that fails until the trouble heals, if it does; heals of 0 is never.
func (m mechanism) follow(class retry.Class, heals time.Duration, attempts int, rnd func() float64) PlatformFigures {
	f := PlatformFigures{Platform: m.name}
	p := retry.Policy{MaxAttempts: attempts, Delays: m.delays, Jitter: m.jitter, MaxAge: maxAge, NotFoundMaxAge: notFoundMaxAge, Classify: true}
	var now time.Duration
	for attempt := 1; ; attempt++ {
		a := PlatformAttempt{At: now.Seconds()}
		if attempt > 1 && heals > 0 && now >= heals {
			f.Attempts = append(f.Attempts, a)
			f.Ended = "done"
			break
		}
		d := p.Decide(retry.Failure{Class: class, Attempt: attempt, Age: now}, rnd)
		if d.Action != retry.Retry {
			f.Attempts = append(f.Attempts, a)
			f.Ended, f.Reason = m.parks(d.Reason), d.Reason
			break
		}
		wait := m.wait(d.Delay, rnd)
		a.Decided, a.Waited = d.Delay.Seconds(), wait.Seconds()
		f.Attempts = append(f.Attempts, a)
		now += wait
	}
	f.EndedAt = now.Seconds()
	if m.holds {
		f.Held = f.EndedAt
	}
	return f
}

func computePlatforms(v values) Report {
	class := retry.Class(v.word("class"))
	drawing := plot.Timeline{Title: platformsTitle, XLabel: "seconds after the first attempt", Kinds: []string{"waits, others go on", "waits, and all behind it"}}
	table := Table{Caption: "What becomes of one message", Columns: columns("platform", "attempts, in seconds", "#ends after", "how", "#holds others for")}
	var figures []PlatformFigures
	var said []string
	for i, m := range mechanisms {
		f := m.follow(class, v.seconds("heals"), v.number("attempts"), random(v.number("seed"), uint64(i)))
		figures = append(figures, f)
		lane := plot.Lane{Name: f.Platform}
		var times []string
		for n, a := range f.Attempts {
			times = append(times, decimal(a.At))
			if a.Waited > 0 {
				kind := 0
				if m.holds {
					kind = 1
				}
				lane.Stretches = append(lane.Stretches, plot.Stretch{From: a.At, To: a.At + a.Waited, Kind: kind, Held: m.holds})
			}
			moment := plot.Moment{At: a.At, Label: fmt.Sprint(n + 1)}
			if n == len(f.Attempts)-1 {
				moment.Shape, moment.Label = 1, moment.Label+": parked"
				if f.Reason == "" {
					moment.Shape, moment.Label = 3, fmt.Sprint(n+1)+": done"
				}
			}
			lane.Moments = append(lane.Moments, moment)
		}
		drawing.Lanes = append(drawing.Lanes, lane)
		how := f.Ended
		if f.Reason != "" {
			how = "parked for " + f.Reason + ", " + f.Ended
		}
		table.Rows = append(table.Rows, []string{f.Platform, strings.Join(times, ", "), decimal(f.EndedAt) + " s", how, decimal(f.Held) + " s"})
		said = append(said, fmt.Sprintf("%s: %s, %s after %s s", f.Platform, plural(len(f.Attempts), "attempt"), how, decimal(f.EndedAt)))
	}
	drawing.About = "One message over time. " + strings.Join(said, "; ") + "."
	heals := "the trouble never ends"
	if n := v.number("heals"); n > 0 {
		heals = fmt.Sprintf("the trouble is over after %s", span(time.Duration(n)*time.Second))
	}
	return Report{
		About: drawing.About, Drawing: drawing, Figures: figures, Tables: []Table{table, words, limits},
		See: fmt.Sprintf("A message fails with %s; %s, and it may be tried %s. Numbers are attempts. All lanes take the same decisions from the same function; "+
			"what differs is who holds the message meanwhile, and what can be said about the wait.", class, heals, plural(v.number("attempts"), "time")),
		Means: "Retry after a delay, quarantine with a reason, give back unspent: the three decisions are not a broker's. Each platform has a word for most of " +
			"them and none for some, and there the consumer must do the work: copy, confirm, acknowledge. A log has no acknowledgement of a single record at all: " +
			"either the partition waits, or the record moves to another topic and loses its place. " +
			"(SQS and Kafka are not run here; their lanes follow what their documentation promises, without the time that polling takes.)",
		Interview: "The policy is a pure function; RabbitMQ, SQS and Kafka differ in who holds the message while it waits: a queue with a time to live, " +
			"a visibility timeout, or nobody, and then the partition stands still.",
	}
}
