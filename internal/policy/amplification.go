package policy

import (
	"fmt"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const amplificationTitle = "Calls on the innermost dependency, by layers that retry"

// amplification shows what becomes of one request when every layer retries.
var amplification = Plot{
	Name: "amplification", Title: amplificationTitle,
	Settings: []Setting{
		{Name: "layers", Label: "Layers", Default: "4", Least: 1, Most: 6},
		{Name: "attempts", Label: "Attempts in each layer", Default: "3", Least: 1, Most: 6},
		{Name: "requests", Label: "Requests while it is down", Default: "1000", Least: 1, Most: 10_000},
	},
	compute: computeAmplification,
}

// AmplificationFigures are the calls that reach a dependency that is down.
type AmplificationFigures struct {
	Layers   int     `json:"layers"`
	Each     int     `json:"each"`     // calls for one request, when each layer retries
	One      int     `json:"one"`      // the same, when one layer does
	All      int     `json:"all"`      // calls for all requests, when each layer retries
	Budgeted int     `json:"budgeted"` // the same, when each layer has a budget
	Share    float64 `json:"share"`    // Budgeted for one request
}

// budgetedLayers are services that call each other. Each retries what fails as long as its budget lets it; the innermost one calls a
// dependency that is down.
type budgetedLayers struct {
	attempts int
	budgets  []*retry.Budget
	calls    int
}

// call is one request to a layer, counted from the outermost; it fails.
func (l *budgetedLayers) call(now time.Time, layer int) {
	for attempt := 1; attempt <= l.attempts; attempt++ {
		if attempt > 1 {
			if l.budgets[layer].Tokens(now) < 1 {
				return
			}
			l.budgets[layer].Spend(now, 1)
		}
		if layer == len(l.budgets)-1 {
			l.calls++
		} else {
			l.call(now, layer+1)
		}
	}
}

// budgeted counts the calls for so many requests, a hundred in a second.
func budgeted(layers, attempts, requests int) int {
	l := budgetedLayers{attempts: attempts}
	for range layers {
		l.budgets = append(l.budgets, retry.NewBudget(retry.BudgetConfig{}))
	}
	now := start
	for range requests {
		l.call(now, 0)
		now = now.Add(10 * time.Millisecond)
	}
	return l.calls
}

// start is when every simulation begins. The policy does not mind the date.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func computeAmplification(v values) Report {
	attempts, requests := v.number("attempts"), v.number("requests")
	table := Table{
		Caption: fmt.Sprintf("Calls with %s in each layer, everything failing", plural(attempts, "attempt")),
		Columns: columns("#layers", "#each layer retries", "#one layer retries", fmt.Sprintf("#%s, each layer retries", plural(requests, "request")), "#the same with budgets", "#for one request"),
	}
	var figures []AmplificationFigures
	var each, one, share []plot.Point
	var factors []int
	for layers := 1; layers <= v.number("layers"); layers++ {
		factors = append(factors, attempts)
		f := AmplificationFigures{Layers: layers, Each: retry.Amplification(factors...), One: retry.Amplification(attempts)}
		f.All = f.Each * requests
		f.Budgeted = budgeted(layers, attempts, requests)
		f.Share = float64(f.Budgeted) / float64(requests)
		figures = append(figures, f)
		table.Rows = append(table.Rows, []string{count(layers), count(f.Each), count(f.One), count(f.All), count(f.Budgeted), fmt.Sprintf("%.2f", f.Share)})
		x := float64(layers)
		each = append(each, plot.Point{X: x, Y: float64(f.Each)})
		one = append(one, plot.Point{X: x, Y: float64(f.One)})
		share = append(share, plot.Point{X: x, Y: f.Share})
	}
	last := figures[len(figures)-1]
	chart := plot.Chart{
		Title: amplificationTitle, XLabel: "layers", YLabel: "calls for one request, powers of ten", LogY: true,
		About: fmt.Sprintf("Calls for one request by number of layers: %s of %s each make %s; one layer that retries makes %s; budgets make %.2f.",
			plural(last.Layers, "layer"), plural(attempts, "attempt"), count(last.Each), count(last.One), last.Share),
		Series: []plot.Series{
			{Name: "each layer retries", Kind: plot.Marks, Points: each},
			{Name: "one layer retries", Kind: plot.Marks, Points: one},
			{Name: "each, with a budget", Kind: plot.Marks, Points: share},
		},
	}
	return Report{
		About: chart.About, Drawing: chart, Figures: figures, Tables: []Table{table},
		See: fmt.Sprintf("With %s in each of %s the dependency is called %s times for one request. When one layer retries, it is called %s times, however many "+
			"layers there are. With a budget of 100 retries in each, where a layer that has run out passes the failure on, %s come to %s calls: what budgets let through is added, "+
			"not multiplied.",
			plural(attempts, "attempt"), plural(last.Layers, "layer"), count(last.Each), count(last.One), plural(requests, "request"), count(last.Budgeted)),
		Means: "Nobody decides on the product; each layer has a reasonable number, and a library below it has another one. So retries belong in one layer, and the " +
			"others pass the failure on. Here that layer is the consumer: handlers and clients below it do not retry. (A deadlock is the exception, " +
			"which the database takes back on the spot, before it counts.)",
		Interview: fmt.Sprintf("Attempts multiply: %d in the client, %d in the service and %d at the broker are %s calls on something that is already down.",
			attempts, attempts, attempts, count(retry.Amplification(attempts, attempts, attempts))),
	}
}
