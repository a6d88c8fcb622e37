package policy

import (
	"fmt"
	"strings"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/pkg/retry"
)

const delaysTitle = "How long a failing message waits, by profile"

// delays shows what each profile of the services waits.
var delays = Plot{
	Name: "delays", Title: delaysTitle,
	Settings: []Setting{{Name: "retries", Label: "Retries to show", Default: "6", Least: 1, Most: 20}},
	compute:  computeDelays,
}

// Delay is the wait before one retry, with the bounds that jitter gives it.
type Delay struct {
	Retry   int     `json:"retry"`
	Least   float64 `json:"least"`
	Middle  float64 `json:"middle"`
	Most    float64 `json:"most"`
	Applies bool    `json:"applies"` // false: the message has been given up by then, unless MAX_ATTEMPTS is raised
}

// ProfileDelays are the waits of one profile.
type ProfileDelays struct {
	Profile  string  `json:"profile"`
	Attempts int     `json:"attempts"`
	Delays   []Delay `json:"delays"`
	GivesUp  float64 `json:"givesUp"` // after the first failure, without jitter
}

// delayBefore asks the policy what it decides after a failure that costs an attempt. Attempts are not bounded here: it is the wait
// that is wanted.
func delayBefore(p retry.Policy, attempt int, u float64) time.Duration {
	p.MaxAttempts = attempt + 1
	return p.Decide(retry.Failure{Class: retry.Timeout, Attempt: attempt}, always(u)).Delay
}

func computeDelays(v values) Report {
	var figures []ProfileDelays
	chart := plot.Chart{Title: delaysTitle, XLabel: "retry", YLabel: "seconds, powers of ten", LogY: true}
	table := Table{Caption: "Waits before each retry", Columns: columns("profile", "waits", "delays", "#attempts", "#given up after")}
	var see []string
	for _, p := range profiles {
		one := ProfileDelays{Profile: p.name, Attempts: p.MaxAttempts}
		var band, middle []plot.Point
		var texts []string
		var total time.Duration
		for n := 1; n <= v.number("retries"); n++ {
			least, mid, most := delayBefore(p.Policy, n, 0), delayBefore(p.Policy, n, 0.5), delayBefore(p.Policy, n, nearlyOne)
			applies := n < p.MaxAttempts
			one.Delays = append(one.Delays, Delay{n, least.Seconds(), mid.Seconds(), most.Seconds(), applies})
			band = append(band, plot.Point{X: float64(n), Low: least.Seconds(), Y: most.Seconds()})
			middle = append(middle, plot.Point{X: float64(n), Y: mid.Seconds()})
		}
		for n := 1; n < p.MaxAttempts; n++ {
			wait := delayBefore(p.Policy, n, 0.5)
			total += wait
			texts = append(texts, span(wait))
		}
		one.GivesUp = total.Seconds()
		spread := ""
		if p.Jitter > 0 {
			spread = fmt.Sprintf(", ±%.0f %%", p.Jitter*100)
			chart.Series = append(chart.Series, plot.Series{Name: p.name + spread, Kind: plot.Band, Points: band})
			chart.Series = append(chart.Series, plot.Series{Name: p.name, Kind: plot.Marks, Points: middle})
		} else {
			chart.Series = append(chart.Series, plot.Series{Name: p.name, Kind: plot.Marks, Points: middle})
		}
		figures = append(figures, one)
		table.Rows = append(table.Rows, []string{p.name, p.waits, strings.Join(texts, ", ") + spread, count(p.MaxAttempts), span(total)})
		see = append(see, fmt.Sprintf("%s gives up %s after the first failure", p.name, span(total)))
	}
	chart.About = "Seconds before each retry. " + strings.Join(see, "; ") + "."
	return Report{
		About: chart.About, Drawing: chart, Figures: figures, Tables: []Table{table},
		See: "One line for each way of waiting that the services have. Account holds the message itself and waits longer each time. The lap has " +
			"one queue and so one delay, whatever the retry. The tiers have a queue for each delay, and three to each tier, which spreads them. " +
			"Beyond its last attempt a line shows what would be waited if MAX_ATTEMPTS were raised: the last delay, again and again.",
		Means: "What a delay must outlast decides what it has to be: milliseconds for a deadlock, seconds for an event that was overtaken, minutes for a " +
			"restart. No sum of delays outlasts every outage. That is the breaker's work, which spends no attempt.",
		Interview: "Delays grow because I do not know how long the trouble lasts; they have a cap because a message that waits for hours " +
			"is a message that somebody should see.",
	}
}
