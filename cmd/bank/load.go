package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/internal/load"
)

// loadCommand makes traffic.
type loadCommand struct {
	Rate     float64       `required:"" help:"Transfers per second, whether earlier ones have been answered or not."`
	Duration time.Duration `default:"30s" help:"For how long."`
	Accounts int           `default:"100" help:"Among how many accounts of its own; they are opened when missing. 2 to 100,000."`
	Hot      float64       `default:"0" help:"Share of the transfers that pay into one account, 0 to 1."`
	Drain    time.Duration `default:"30s" help:"How long the last transfers may take to end."`
}

// loadResult is the JSON form of a load's end. Durations are in milliseconds.
type loadResult struct {
	Rate     float64        `json:"rate"`
	Seconds  float64        `json:"seconds"`
	Sent     int            `json:"sent"`
	Accepted int            `json:"accepted"`
	Failed   int            `json:"failed"`
	TimedOut int            `json:"timedOut"`
	Error    string         `json:"error,omitzero"`
	Ended    map[string]int `json:"ended"`
	Open     int            `json:"open"`
	Blind    bool           `json:"blind,omitzero"` // the broker's news of ends did not come at the end
	Asked    int            `json:"asked,omitzero"` // ended and no news came, found out by asking
	AnswerMS milliseconds   `json:"answerMs"`
	EndMS    milliseconds   `json:"endMs"`
}

type milliseconds struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func inMilliseconds(l load.Latencies) milliseconds {
	ms := func(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / float64(time.Millisecond) }
	return milliseconds{ms(l.P50), ms(l.P90), ms(l.P99), ms(l.P999), ms(l.Max)}
}

func (c *loadCommand) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	if c.Accounts < 2 || c.Accounts > 100_000 {
		return errors.New("--accounts must be from 2 to 100000")
	}
	if err := to.need("ACCOUNT_URL", "TRANSFER_URL", "AMQP_URL"); err != nil {
		return err
	}
	accounts, err := loadAccounts(ctx, to.account(), c.Accounts, openPatience, func(text string) { _, _ = fmt.Fprintln(term.err, text) })
	if err != nil {
		return err
	}
	b, err := newBroker(to)
	if err != nil {
		return err
	}
	watching, forget := context.WithCancel(ctx)
	defer forget()
	ended, err := load.Follow(watching, b.dial, func(err error) { _, _ = fmt.Fprintln(term.err, err) })
	if err != nil {
		return err
	}
	config := load.Config{
		URL: to.TransferURL, Accounts: accounts, Currency: "EUR", Rate: c.Rate, Duration: c.Duration, Hot: c.Hot, Drain: c.Drain, Ended: ended,
	}
	if !out.json {
		began := time.Now()
		fmt.Fprintln(out, "   time      sent     ended   open  failed   p50 ms   p99 ms")
		config.Progress = func(r load.Report) {
			end := inMilliseconds(r.End)
			fmt.Fprintf(out, "%5.0f s  %8d  %8d  %5d  %6d  %7.1f  %7.1f\n", time.Since(began).Seconds(), r.Sent, total(r.Ended), r.Open, r.Failed, end.P50, end.P99)
		}
	}
	r, err := load.Run(ctx, config)
	if err != nil {
		return err
	}
	result := loadResult{
		Rate: c.Rate, Seconds: r.Sending.Seconds(), Sent: r.Sent, Accepted: r.Accepted, Failed: r.Failed, TimedOut: r.TimedOut, Error: r.Error,
		Ended: r.Ended, Open: r.Open, Blind: r.Blind, Asked: r.Asked, AnswerMS: inMilliseconds(r.Answer), EndMS: inMilliseconds(r.End),
	}
	if err := result.print(out); err != nil {
		return err
	}
	if r.Failed > 0 || r.Open > 0 {
		return exitError(1)
	}
	return nil
}

func (r loadResult) print(out *output) error {
	if out.json {
		return out.document(r)
	}
	fmt.Fprintf(out, "\n%d transfers sent in %.1f s, %d accepted, %d failed\n", r.Sent, r.Seconds, r.Accepted, r.Failed)
	if r.Error != "" {
		fmt.Fprintln(out, out.bad("the last failure: "+foreign(r.Error)))
	}
	if r.TimedOut > 0 {
		fmt.Fprintln(out, out.bad(fmt.Sprintf("%d of them were not answered in time; they took longest, and are in none of the figures below", r.TimedOut)))
	}
	for _, status := range []string{"COMPLETED", "REJECTED", "REFUNDED"} {
		if n := r.Ended[status]; n > 0 {
			fmt.Fprintf(out, "  %-9s %d\n", status, n)
		}
	}
	if r.Asked > 0 {
		fmt.Fprintf(out, "  %d of them ended without news of it from the broker (asked for), and are in none of the figures of ends\n", r.Asked)
	}
	switch {
	case r.Blind:
		fmt.Fprintln(out, out.bad(fmt.Sprintf("  %d are not known to have ended: the connection to the broker was lost; bank verify tells", r.Open)))
	case r.Open > 0:
		fmt.Fprintln(out, out.bad(fmt.Sprintf("  %d have not ended", r.Open)))
	}
	fmt.Fprintln(out)
	row := func(name string, m milliseconds) []string {
		return []string{name, fmt.Sprintf("%.1f", m.P50), fmt.Sprintf("%.1f", m.P90), fmt.Sprintf("%.1f", m.P99), fmt.Sprintf("%.1f", m.P999), fmt.Sprintf("%.1f", m.Max)}
	}
	return out.table([]string{"MILLISECONDS UNTIL", "P50", "P90", "P99", "P99.9", "MAX"}, [][]string{row("accepted", r.AnswerMS), row("ended", r.EndMS)})
}

func total(counts map[string]int) (n int) {
	for _, count := range counts {
		n += count
	}
	return n
}
