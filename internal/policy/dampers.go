package policy

import (
	"fmt"
	"strings"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const dampersTitle = "Load on a dependency that fails, under each damper"

// dampers shows what a dependency has to bear before, during and after an outage.
var dampers = Plot{
	Name: "dampers", Title: dampersTitle,
	Settings: []Setting{
		{Name: "failure", Label: "What fails", Default: "down", Choices: []string{"down", "busy"}},
		{Name: "outage", Label: "Outage, in seconds", Default: "30", Least: 1, Most: 60},
		{Name: "rate", Label: "Messages a second", Default: "50", Least: 1, Most: 100},
		{Name: "capacity", Label: "Calls a second that the dependency bears", Default: "100", Least: 10, Most: 1000},
		{Name: "attempts", Label: "Attempts of a message", Default: "4", Least: 1, Most: 10},
		seed,
	},
	compute: computeDampers,
}

const (
	before = 20 * time.Second // the outage
	after  = 60 * time.Second // messages go on arriving for so long
)

// damper is a way of running the consumer.
type damper struct {
	name    string
	about   string
	backoff bool // delays with jitter; else a retry is made at once
	breaker bool
	budget  bool
	limit   bool
}

var damperKinds = []damper{
	{name: "none", about: "a failed message is tried again at once"},
	{name: "backoff", about: "1 s, 5 s, 25 s, spread by ±20 %", backoff: true},
	{name: "budget", about: "100 retries, and one more for five successes", budget: true},
	{name: "breaker", about: "opens when it is down, probes each second", breaker: true},
	{name: "rate limit", about: "what the dependency bears, halved when it asks for less", limit: true},
	{name: "all", about: "all four together", backoff: true, breaker: true, budget: true, limit: true},
}

// DamperFigures is how one outage went.
type DamperFigures struct {
	Damper   string   `json:"damper"`
	Messages int      `json:"messages"`
	Done     int      `json:"done"`
	Parked   int      `json:"parked"`
	Calls    int      `json:"calls"`
	Wasted   int      `json:"wasted"` // calls that failed
	Spent    int      `json:"spent"`  // attempts; what failed while the dependency was known to be down is not among them
	Probes   int      `json:"probes"`
	Before   float64  `json:"before"` // calls a second, probes included
	During   float64  `json:"during"`
	Peak     int      `json:"peak"`     // most in a second since the outage began
	Recovers float64  `json:"recovers"` // seconds after the outage until no more than a second's messages are in the system
	Slowest  float64  `json:"slowest"`  // seconds from the arrival of a message to its success
	Load     []Second `json:"load"`     // until messages no longer arrive
}

// Second is the load of one second.
type Second struct {
	Calls  int `json:"calls"`
	Failed int `json:"failed"`
}

// simulate lets one consumer go through an outage.
func simulate(d damper, v values) DamperFigures {
	from := start.Add(before)
	to := from.Add(v.seconds("outage"))
	s := &simulation{
		policy: retry.Policy{MaxAttempts: v.number("attempts"), Classify: true},
		on:     &dependency{capacity: v.number("capacity"), from: from, to: to, busy: v.word("failure") == "busy"},
		rnd:    random(v.number("seed"), 0),
		now:    start,
	}
	s.arrive(v.number("rate"), to.Add(after), random(v.number("seed"), 1)) // the same for each damper
	if d.backoff {
		s.policy.Delays, s.policy.Jitter = inProcess.Delays, share
	}
	if d.breaker {
		s.breaker = retry.NewBreaker(retry.BreakerConfig{})
	}
	if d.budget {
		s.budget = retry.NewBudget(retry.BudgetConfig{})
	}
	if d.limit {
		s.limit = retry.NewRateLimit(float64(s.on.capacity))
	}
	o := s.run(v.number("rate"))
	f := DamperFigures{
		Damper: d.name, Messages: o.arrived, Done: o.done, Parked: o.parked, Calls: o.calls, Wasted: o.failed, Spent: o.spent, Probes: o.probes,
		Recovers: max(o.crowded.Sub(to), 0).Seconds(), Slowest: o.slowest.Seconds(),
	}
	begin, end := int(before/time.Second), int((before+v.seconds("outage"))/time.Second)
	for i, l := range o.perSecond {
		f.Load = append(f.Load, Second{l.calls, l.failed})
		switch {
		case i < begin:
			f.Before += float64(l.calls) / float64(begin)
		case i < end:
			f.During += float64(l.calls) / float64(end-begin)
		}
		if i >= begin {
			f.Peak = max(f.Peak, l.calls)
		}
	}
	return f
}

func computeDampers(v values) Report {
	outage := v.seconds("outage")
	drawing := plot.Panels{Title: dampersTitle, XLabel: "seconds"}
	table := Table{Caption: "The same outage under each damper", Columns: columns("damper", "which", "#calls/s in it", "#most in a second",
		"#calls wasted", "#parked", "#recovers after", "#slowest message")}
	var figures []DamperFigures
	var highest int
	var said []string
	for _, kind := range damperKinds {
		f := simulate(kind, v)
		shown := int((before + outage + after) / time.Second)
		f.Load = f.Load[:min(shown, len(f.Load))] // a backlog may take hours
		figures = append(figures, f)
		var calls, failed []plot.Point
		for i := range shown {
			var l Second
			if i < len(f.Load) {
				l = f.Load[i]
			}
			highest = max(highest, l.Calls)
			calls = append(calls, plot.Point{X: float64(i), Y: float64(l.Calls)})
			failed = append(failed, plot.Point{X: float64(i), Y: float64(l.Failed)})
		}
		table.Rows = append(table.Rows, []string{f.Damper, kind.about, decimal(f.During), count(f.Peak), count(f.Wasted), count(f.Parked),
			decimal(f.Recovers) + " s", decimal(f.Slowest) + " s"})
		said = append(said, fmt.Sprintf("%s: %s calls a second, %s parked", f.Damper, decimal(f.During), count(f.Parked)))
		drawing.Charts = append(drawing.Charts, plot.Chart{
			Title: kind.name + ": " + kind.about, YLabel: "calls a second",
			Spans: []plot.Span{{Name: v.word("failure"), From: before.Seconds(), To: (before + outage).Seconds()}},
			Series: []plot.Series{
				{Name: "calls that failed", Kind: plot.Bars, Points: failed},
				{Name: "calls and probes", Kind: plot.Step, Points: calls},
			},
		})
	}
	for i := range drawing.Charts {
		drawing.Charts[i].MaxY = float64(highest)
	}
	drawing.About = fmt.Sprintf("Calls a second on a dependency that is %s for %s, in the outage: %s.", v.word("failure"), span(outage), strings.Join(said, "; "))
	none, breaker, all := figures[0], figures[3], figures[5]
	return Report{
		About: drawing.About, Drawing: drawing, Figures: figures, Tables: []Table{table},
		See: fmt.Sprintf("The same %s arrive in each panel, %d a second; the dependency is %s in the shaded part, and bears %s calls a second otherwise. "+
			"Without a damper %s calls fail, and %s end in quarantine. The breaker alone makes that %s and %s, and takes %s s after the outage until "+
			"the backlog is gone: it keeps everything and lets it go at once. With all together %s calls fail, %s, and it takes %s s.",
			plural(none.Messages, "message"), v.number("rate"), v.word("failure"), count(v.number("capacity")), count(none.Wasted), plural(none.Parked, "message"),
			count(breaker.Wasted), count(breaker.Parked), decimal(breaker.Recovers), count(all.Wasted), plural(all.Parked, "message")+" end in quarantine", decimal(all.Recovers)),
		Means: "Who recovers soonest has not done best: without dampers the queue is soon empty because everything in it was given up. " +
			"Backoff moves attempts, and still spends them. The budget bounds the retries, not the loss. The breaker is what spends no attempt while the " +
			"dependency is down. What it has kept comes at once afterwards, and opens it again where that is more than the dependency bears: that is what the rate limit is for. " +
			"Each mends something the others do not. (The limit is what the dependency bears exactly, which one knows here and guesses elsewhere.)",
		Interview: "Retries are load on whatever is failing. Backoff spreads them, a budget bounds them, a breaker stops them, a rate limit lets the backlog in slowly; " +
			"I want all four, and I measure what was given up, not only how soon it is quiet.",
	}
}
