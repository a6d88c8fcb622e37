package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/internal/load"
	"example.com/banking/internal/testenv/servers"
)

// Among how many accounts a sustained load moves money, and over how many connections it asks for that.
const (
	customers   = 1_000
	connections = 32
)

var sustained = scenario{
	name:  "sustained",
	about: "The sustained load. The clock runs from the first request to the last COMPLETED. CPU time is that of every process of the bank, its servers included.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return err
			}
			r, err := m.burst(ctx, b.Transfers)
			if err != nil {
				return err
			}
			found.add("transfers per second", r.rate, "/s")
			found.add("accepted per second", r.accepted, "/s")
			for _, part := range append(serviceNames, partPostgres, partBroker) {
				found.add("CPU of "+part+" per transfer", r.cpu[part]*1000, "ms")
			}
			found.add("CPU of all per transfer", r.bankCPU()*1000, "ms")
			found.add("CPU of the client per transfer", r.cpu[partClient]*1000, "ms")
			found.add("share of the machine that others used", r.others*100, "%")
			return nil
		})
		return found, err
	},
}

var hot = scenario{
	name:  "hot",
	about: "The sustained load in four turns on one system: spread over all accounts, and with four of five transfers paying into one account.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return err
			}
			uneven := *m
			uneven.load.Hot = 0.8
			even, oneHot, err := takeTurns(
				func() (float64, error) { return m.rate(ctx, b.Transfers/2) },
				func() (float64, error) { return uneven.rate(ctx, b.Transfers/2) },
			)
			if err != nil {
				return err
			}
			found.add("spread", even, "/s")
			found.add("one hot account", oneHot, "/s")
			found.add("ratio", oneHot/even, "")
			return nil
		})
		return found, err
	},
}

// takeTurns measures two rates twice each, one after the other, so that a busy moment of the machine is less likely to hit one side alone.
func takeTurns(first, second func() (float64, error)) (a, b float64, err error) {
	var rates [2][]float64
	for range 2 {
		for i, measure := range []func() (float64, error){first, second} {
			rate, err := measure()
			if err != nil {
				return 0, 0, err
			}
			rates[i] = append(rates[i], rate)
		}
	}
	return overall(rates[0]...), overall(rates[1]...), nil
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

// bankCPU is what all parts but the client have used, in seconds per transfer.
func (r burstResult) bankCPU() (sum float64) {
	for part, seconds := range r.cpu {
		if part != partClient {
			sum += seconds
		}
	}
	return sum
}

func (m *market) rate(ctx context.Context, n int) (float64, error) {
	r, err := m.burst(ctx, n)
	return r.rate, err
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

// withSystem runs do on a new system, verifies it, and stops it.
func (b *bench) withSystem(ctx context.Context, do func(*system) error) error {
	return b.withSystemOn(ctx, servers.Config{}, func(s *system) (int64, error) { return 0, do(s) })
}

// withSystemOn does the same on servers that are configured so; do says how many messages have been given up.
func (b *bench) withSystemOn(ctx context.Context, cfg servers.Config, do func(*system) (quarantined int64, err error)) error {
	s, err := b.startSystem(ctx, cfg)
	if err != nil {
		return err
	}
	quarantined, err := do(s)
	if err == nil {
		err = s.verify(ctx, quarantined)
	}
	return errors.Join(err, s.stop())
}
