package policy

import (
	"fmt"
	"slices"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const jittersTitle = "Three kinds of jitter over the same backoff"

// jitters shows what the kinds of jitter make of the same backoff.
var jitters = Plot{
	Name: "jitter", Title: jittersTitle,
	Settings: []Setting{
		{Name: "retries", Label: "Retries to show", Default: "8", Least: 1, Most: 20},
		{Name: "base", Label: "First delay, in seconds", Default: "1", Least: 1, Most: 60},
		{Name: "cap", Label: "Longest delay, in seconds", Default: "60", Least: 1, Most: 3600},
		seed,
	},
	compute: computeJitters,
}

// jitter is a way of choosing the delay before a retry by chance.
type jitter struct {
	name  string
	about string
	// next is the delay before retry n, given the one before it (0: none) and a number by chance.
	next func(b retry.Backoff, n int, previous time.Duration, u float64) time.Duration
}

var noJitter = jitter{"none", "the backoff itself", func(b retry.Backoff, n int, _ time.Duration, _ float64) time.Duration { return b.Delay(n) }}

var jitterKinds = []jitter{
	{"full", "anything from nothing to the backoff", func(b retry.Backoff, n int, _ time.Duration, u float64) time.Duration {
		return retry.FullJitter(b.Delay(n), u)
	}},
	{"equal", "from half of the backoff to all of it", func(b retry.Backoff, n int, _ time.Duration, u float64) time.Duration {
		return retry.EqualJitter(b.Delay(n), u)
	}},
	{"decorrelated", "from the first delay to three times the previous one", func(b retry.Backoff, _ int, previous time.Duration, u float64) time.Duration {
		return retry.Decorrelated(previous, b.Base, b.Cap, u)
	}},
}

// JitterDelays are the delays that one kind of jitter chose, retry by retry.
type JitterDelays struct {
	Jitter string        `json:"jitter"`
	Delays []JitterDelay `json:"delays"`
}

// JitterDelay is what was chosen before one retry, in seconds: the least, the 5th, 50th and 95th of a hundred, and the most.
type JitterDelay struct {
	Retry int     `json:"retry"`
	Least float64 `json:"least"`
	P5    float64 `json:"p5"`
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Most  float64 `json:"most"`
}

// samples is how many messages are followed.
const samples = 2000

// chosen are the delays of so many messages, one slice for each retry, sorted.
func (j jitter) chosen(b retry.Backoff, retries int, rnd func() float64) [][]time.Duration {
	all := make([][]time.Duration, retries)
	for range samples {
		var previous time.Duration
		for n := range retries {
			previous = j.next(b, n+1, previous, rnd())
			all[n] = append(all[n], previous)
		}
	}
	for _, delays := range all {
		slices.Sort(delays)
	}
	return all
}

func computeJitters(v values) Report {
	base := v.seconds("base")
	backoff := retry.Backoff{Base: base, Factor: 2, Cap: max(v.seconds("cap"), base)}
	drawing := plot.Panels{Title: jittersTitle, XLabel: "retry"}
	table := Table{Caption: fmt.Sprintf("What %s messages waited, in seconds: median (5 %% to 95 %%)", count(samples)), Columns: columns("#retry", "#without")}
	var figures []JitterDelays
	for n := 1; n <= v.number("retries"); n++ {
		table.Rows = append(table.Rows, []string{count(n), decimal(backoff.Delay(n).Seconds())})
	}
	for i, kind := range jitterKinds {
		one := JitterDelays{Jitter: kind.name}
		var band, median, without []plot.Point
		for n, delays := range kind.chosen(backoff, v.number("retries"), random(v.number("seed"), uint64(i))) {
			of := func(share float64) float64 { return delays[int(share*float64(len(delays)-1))].Seconds() }
			d := JitterDelay{n + 1, of(0), of(0.05), of(0.5), of(0.95), of(1)}
			one.Delays = append(one.Delays, d)
			x := float64(n + 1)
			band = append(band, plot.Point{X: x, Low: d.P5, Y: d.P95})
			median = append(median, plot.Point{X: x, Y: d.P50})
			without = append(without, plot.Point{X: x, Y: backoff.Delay(n + 1).Seconds()})
			table.Rows[n] = append(table.Rows[n], fmt.Sprintf("%.1f (%.1f to %.1f)", d.P50, d.P5, d.P95))
		}
		table.Columns = append(table.Columns, Column{kind.name, true})
		figures = append(figures, one)
		drawing.Charts = append(drawing.Charts, plot.Chart{
			Title: kind.name + ": " + kind.about, YLabel: "seconds", MaxY: backoff.Cap.Seconds(),
			Series: []plot.Series{
				{Name: "90 of 100 messages", Kind: plot.Band, Points: band},
				{Name: "without jitter", Kind: plot.Line, Points: without},
				{Name: "median", Kind: plot.Marks, Points: median},
			},
		})
	}
	if highest := backoff.Delay(v.number("retries")).Seconds(); highest < backoff.Cap.Seconds() {
		for i := range drawing.Charts {
			drawing.Charts[i].MaxY = highest
		}
	}
	last := len(table.Rows) - 1
	drawing.About = fmt.Sprintf("Delays before each retry, as bands. Before retry %d without jitter %s s; full %s, equal %s, decorrelated %s.",
		last+1, table.Rows[last][1], table.Rows[last][2], table.Rows[last][3], table.Rows[last][4])
	return Report{
		About: drawing.About, Drawing: drawing, Figures: figures, Tables: []Table{table},
		See: "The dashed line is the backoff, the same in all three. The band holds what nine of ten messages wait. Full jitter uses everything below " +
			"the line, equal jitter the upper half, decorrelated jitter follows the previous wait and wanders.",
		Means: "Full jitter spreads over the whole of the interval and waits half as long on average; its price is that some come back almost at once. Equal jitter promises the " +
			"dependency a rest. Decorrelated jitter needs no counter of attempts, only the last wait. A broker's queues cannot choose " +
			"from a band: the tiers have three queues each, and a message gets one of them at random.",
		Interview: "Backoff says how long to wait, jitter says not all at the same time: without it everybody who failed together comes back together.",
	}
}
