package main

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/internal/load"
)

// pace is how a load went under one condition.
type pace struct {
	rate   float64 // transfers per second
	cpu    float64 // of all the bank's processes, seconds per transfer
	others float64 // share of the machine's CPU time that others used
}

// together is the pace of several equal loads as one.
func together(paces ...pace) (p pace) {
	var rates []float64
	for _, one := range paces {
		rates = append(rates, one.rate)
		p.cpu += one.cpu / float64(len(paces))
		p.others += one.others / float64(len(paces))
	}
	p.rate = overall(rates...)
	return p
}

// addPace adds the figures of a condition. The CPU time shows what a busy machine hides in the rate, and the others' share how busy it was.
func (r *result) addPace(condition string, p pace) {
	r.add(condition, p.rate, "/s")
	r.add(condition+": CPU of all per transfer", p.cpu*1000, "ms")
	r.add(condition+": share of the machine that others used", p.others*100, "%")
}

// takeTurns measures under two conditions twice each, one after the other, so that a busy moment of the machine is less likely to hit one
// side alone.
func takeTurns(first, second func() (pace, error)) (a, b pace, err error) {
	var paces [2][]pace
	for range 2 {
		for i, measure := range []func() (pace, error){first, second} {
			p, err := measure()
			if err != nil {
				return a, b, err
			}
			paces[i] = append(paces[i], p)
		}
	}
	return together(paces[0]...), together(paces[1]...), nil
}

// market is a system with accounts that pay each other.
type market struct {
	*system
	load load.Config
}

// openMarket opens the accounts and warms the system up.
func (b *bench) openMarket(ctx context.Context, s *system) (*market, error) {
	accounts, err := s.open(ctx, customers, 1_000_000_00)
	if err != nil {
		return nil, err
	}
	m := &market{system: s, load: load.Config{Accounts: accounts, Currency: "EUR"}}
	if _, err := m.burst(ctx, b.WarmUp); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	return m, nil
}

// burstResult is what a burst has shown.
type burstResult struct {
	rate     float64            // transfers per second, from the first request to the last that ended
	accepted float64            // the same to the last answer
	cpu      map[string]float64 // seconds per transfer
	others   float64            // share of the machine's CPU time that was used by none of the parts
}

func (m *market) pace(ctx context.Context, n int) (pace, error) {
	r, err := m.burst(ctx, n)
	return pace{rate: r.rate, cpu: ofBank(r.cpu), others: r.others}, err
}

// burst makes n transfers as fast as the system answers, and returns when the last has ended. None may be open before.
func (m *market) burst(ctx context.Context, n int) (r burstResult, err error) {
	ended, open, err := m.transfers(ctx)
	if err != nil {
		return r, err
	}
	if open > 0 {
		return r, fmt.Errorf("%d transfers are still open", open)
	}
	before, err := measure()
	if err != nil {
		return r, err
	}
	began := time.Now()
	c := m.load
	c.URL = m.urls["transfer"]
	sent, err := load.Burst(ctx, c, n, connections)
	if err == nil && sent.Accepted != n {
		err = fmt.Errorf("%d of %d accepted; the last failure: %s", sent.Accepted, n, sent.Error)
	}
	if err != nil {
		return r, err
	}
	if err := m.awaitEnds(ctx, 10*time.Minute); err != nil {
		return r, err
	}
	after, err := measure()
	if err != nil {
		return r, err
	}
	wall := time.Since(began).Seconds()
	last, err := m.lastEnd(ctx)
	if err != nil {
		return r, err
	}
	now, _, err := m.transfers(ctx)
	if err == nil && now != ended+n {
		err = fmt.Errorf("%d transfers have ended, want %d", now-ended, n)
	}
	if err != nil {
		return r, err
	}
	used := after.since(before)
	r = burstResult{
		rate: float64(n) / last.Sub(began).Seconds(), accepted: float64(n) / sent.Sending.Seconds(),
		cpu: used.cpu, others: used.others() / (wall * cores),
	}
	for part := range r.cpu {
		r.cpu[part] /= float64(n)
	}
	return r, nil
}

// awaitEnds waits until no transfer is open. It asks seldom, and not for numbers, because counting is work for the database.
func (s *system) awaitEnds(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return await(ctx, 250*time.Millisecond, "the transfers to end", func() (bool, error) {
		var some bool
		err := s.pools["transfer"].QueryRow(ctx, "select exists (select from transfers where outcome is null)").Scan(&some)
		return !some, err
	})
}

// lastEnd is when the last transfer ended.
func (s *system) lastEnd(ctx context.Context) (last time.Time, err error) {
	err = s.pools["transfer"].QueryRow(ctx, "select max(updated_at) from transfers").Scan(&last)
	return last, err
}
