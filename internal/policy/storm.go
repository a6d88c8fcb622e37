package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const stormTitle = "Messages that failed together, and when they come back"

// storm lets many messages fail at the same moment and looks when they come back.
var storm = Plot{
	Name: "storm", Title: stormTitle,
	Settings: []Setting{
		{Name: "messages", Label: "Messages", Default: "1000", Least: 1, Most: 10_000},
		{Name: "jitter", Label: "Jitter", Default: "full", Choices: []string{"full", "equal", "decorrelated", "consumer", "tiers"}},
		{Name: "delay", Label: "First delay, in seconds", Default: "5", Least: 1, Most: 60},
		{Name: "retries", Label: "Retries of each", Default: "3", Least: 1, Most: 5},
		seed,
	},
	compute: computeStorm,
}

// share is by how much the services spread a consumer's delays both ways: RETRY_JITTER.
const share = 0.2

var consumerJitter = jitter{"consumer", "±20 %, as consumers do", func(b retry.Backoff, n int, _ time.Duration, u float64) time.Duration {
	return retry.Jitter(b.Delay(n), share, u)
}}

// tierJitter is what a broker's queues leave of it: a tier has three queues, and one is chosen.
var tierJitter = jitter{"tiers", "one of three queues of 0.8, 1 and 1.2 times the delay", func(b retry.Backoff, n int, _ time.Duration, u float64) time.Duration {
	return retry.Jitter(b.Delay(n), share, math.Floor(u*3)/2)
}}

// stormKinds are compared with each other.
var stormKinds = append([]jitter{noJitter}, append(append([]jitter(nil), jitterKinds...), consumerJitter, tierJitter)...)

// slot is how finely retries are counted.
const slot = 100 * time.Millisecond

// longest bounds the delays, and with them the drawing.
const longest = 5 * time.Minute

// StormFigures is what came back, with one kind of jitter.
type StormFigures struct {
	Jitter  string `json:"jitter"`
	Retries int    `json:"retries"`
	Peak    int    `json:"peak"`   // most within 100 ms
	Second  int    `json:"second"` // most within one second, at any time: what the dependency must bear
	First   Wave   `json:"first"`  // the first retry of each
	All     []int  `json:"all"`    // in each 100 ms after the failure
}

// Wave is one retry of every message.
type Wave struct {
	Peak int     `json:"peak"` // most within 100 ms
	From float64 `json:"from"` // seconds after the failure
	To   float64 `json:"to"`
}

// comeBack is when messages that failed at 0 are tried again, each time as if the dependency were still away.
func comeBack(kind jitter, b retry.Backoff, messages, retries int, rnd func() float64) StormFigures {
	f := StormFigures{Jitter: kind.name, Retries: messages * retries}
	first := make([]int, 0)
	at := func(counts []int, when time.Duration) []int {
		for i := int(when / slot); len(counts) <= i; {
			counts = append(counts, 0)
		}
		counts[when/slot]++
		return counts
	}
	f.First.From = math.Inf(1)
	for range messages {
		var now, previous time.Duration
		for n := 1; n <= retries; n++ {
			previous = kind.next(b, n, previous, rnd())
			now += previous
			f.All = at(f.All, now)
			if n == 1 {
				first = at(first, now)
				f.First.From, f.First.To = min(f.First.From, now.Seconds()), max(f.First.To, now.Seconds())
			}
		}
	}
	const second = int(time.Second / slot)
	within := 0
	for i, n := range f.All {
		f.Peak = max(f.Peak, n)
		if within += n; i >= second {
			within -= f.All[i-second]
		}
		f.Second = max(f.Second, within)
	}
	for _, n := range first {
		f.First.Peak = max(f.First.Peak, n)
	}
	return f
}

func computeStorm(v values) Report {
	messages, retries := v.number("messages"), v.number("retries")
	backoff := retry.Backoff{Base: v.seconds("delay"), Factor: 2, Cap: longest}
	var figures []StormFigures
	table := Table{Caption: "Retries at once, by kind of jitter",
		Columns: columns("jitter", "delay", "#most in 100 ms", "#most in a second", "#first retries")}
	for i, kind := range stormKinds {
		f := comeBack(kind, backoff, messages, retries, random(v.number("seed"), uint64(i)))
		figures = append(figures, f)
		table.Rows = append(table.Rows, []string{kind.name, kind.about, count(f.Peak), count(f.Second),
			fmt.Sprintf("%s s to %s s", decimal(f.First.From), decimal(f.First.To))})
	}
	none, picked := figures[0], figures[0]
	for _, f := range figures {
		if f.Jitter == v.word("jitter") {
			picked = f
		}
	}
	chart := plot.Chart{
		Title: stormTitle, XLabel: "seconds after the failure", YLabel: "retries in 100 ms",
		Series: []plot.Series{
			{Name: "without jitter", Kind: plot.Bars, Points: histogram(none.All)},
			{Name: "with jitter: " + picked.Jitter, Kind: plot.Step, Points: histogram(picked.All)},
		},
	}
	chart.About = fmt.Sprintf("Retries of %s in each tenth of a second. Without jitter %s at once, %s; with %s jitter at most %s.",
		plural(messages, "message"), count(none.Peak), plural(retries, "time"), picked.Jitter, count(picked.Peak))
	return Report{
		About: chart.About, Drawing: chart, Figures: figures, Tables: []Table{table},
		See: fmt.Sprintf("%s fail at 0 and are tried again %s, with a delay of %s that doubles. Without jitter they come as the bars: all in the same tenth "+
			"of a second, %s each time. With jitter (%s) the busiest tenth has %s, the busiest second %s.",
			plural(messages, "message"), plural(retries, "time"), span(backoff.Base), count(none.Peak), picked.Jitter, count(picked.Peak), count(picked.Second)),
		Means: "Backoff alone does not take the wave apart, it only moves it. A dependency that has just come back is hit by everything at once, fails " +
			"again, and the wave returns with twice the delay. What must be borne is the busiest second; jitter brings it down to what the delay allows.",
		Interview: fmt.Sprintf("A thousand clients that failed together retry together: exponential backoff synchronizes them, jitter does not let them; here it takes "+
			"the peak from %s to %s.", count(none.Peak), count(picked.Peak)),
	}
}

// histogram is what is drawn: the counts, or the highest of so many neighbours that there are no more than columns of them.
func histogram(counts []int) (points []plot.Point) {
	const columns = 600
	each := (len(counts) + columns - 1) / columns
	for i := 0; i < len(counts); i += each {
		highest := slices.Max(counts[i:min(i+each, len(counts))])
		points = append(points, plot.Point{X: (time.Duration(i) * slot).Seconds(), Y: float64(highest)})
	}
	return append(points, plot.Point{X: (time.Duration(len(counts)) * slot).Seconds()})
}
