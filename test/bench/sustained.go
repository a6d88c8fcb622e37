package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/internal/load"
)

// The work of a sustained run: so many transfers after a warm-up, among so many accounts, asked for over so many connections.
const (
	warmUp      = 5_000
	transfers   = 20_000
	customers   = 1_000
	connections = 32
)

var sustained = scenario{
	name: "sustained",
	about: fmt.Sprintf("%d transfers among %d accounts, over HTTP with %d connections, after %d to warm up. The clock runs from the first request to the last COMPLETED.",
		transfers, customers, connections, warmUp),
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, nil, func(s *system) error {
			accounts, err := s.open(ctx, customers, 1_000_000_00)
			if err != nil {
				return err
			}
			r, err := s.burst(ctx, load.Config{Accounts: accounts})
			if err != nil {
				return err
			}
			found.add("transfers per second", r.rate, "/s")
			found.add("accepted per second", r.accepted, "/s")
			all := 0.0
			for _, part := range []string{"account", "transfer", partPostgres, partBroker} {
				found.add("CPU of "+part+" per transfer", r.cpu[part]*1000, "ms")
				all += r.cpu[part] * 1000
			}
			found.add("CPU of all per transfer", all, "ms")
			found.add("CPU of the client per transfer", r.cpu[partClient]*1000, "ms")
			for _, part := range []string{"account", "transfer"} {
				found.add("memory of "+part, r.rss[part]/(1<<20), "MB")
			}
			return nil
		})
		return found, err
	},
}

var hot = scenario{
	name:  "hot",
	about: "The sustained load twice on one system: spread over all accounts, and with four of five transfers paying into one account.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, nil, func(s *system) error {
			accounts, err := s.open(ctx, customers, 1_000_000_00)
			if err != nil {
				return err
			}
			even, err := s.burst(ctx, load.Config{Accounts: accounts})
			if err != nil {
				return err
			}
			uneven, err := s.burst(ctx, load.Config{Accounts: accounts, Hot: 0.8})
			if err != nil {
				return err
			}
			found.add("spread", even.rate, "/s")
			found.add("one hot account", uneven.rate, "/s")
			found.add("ratio", uneven.rate/even.rate, "")
			return nil
		})
		return found, err
	},
}

// burstResult is what a burst has shown.
type burstResult struct {
	rate     float64            // transfers per second, from the first request to the last that ended
	accepted float64            // the same to the last answer
	cpu      map[string]float64 // seconds per transfer
	rss      map[string]float64 // bytes, at the end
}

// burst warms the system up, and then measures the sustained load.
func (s *system) burst(ctx context.Context, c load.Config) (r burstResult, err error) {
	c.URL, c.Currency = s.urls["transfer"], "EUR"
	if _, err = s.burstOf(ctx, c, warmUp); err != nil {
		return r, fmt.Errorf("warm-up: %w", err)
	}
	return s.burstOf(ctx, c, transfers)
}

func (s *system) burstOf(ctx context.Context, c load.Config, n int) (r burstResult, err error) {
	ended, open, err := s.transfers(ctx)
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
	sent, err := load.Burst(ctx, c, n, connections)
	if err == nil && sent.Accepted != n {
		err = fmt.Errorf("%d of %d accepted; the last failure: %s", sent.Accepted, n, sent.Error)
	}
	if err != nil {
		return r, err
	}
	if err := s.awaitEnded(ctx, ended+n); err != nil {
		return r, err
	}
	after, err := measure()
	if err != nil {
		return r, err
	}
	var last time.Time
	if err := s.pools["transfer"].QueryRow(ctx, "select max(updated_at) from transfers").Scan(&last); err != nil {
		return r, err
	}
	used := after.since(before)
	for part := range used.cpu {
		used.cpu[part] /= float64(n)
	}
	return burstResult{
		rate: float64(n) / last.Sub(began).Seconds(), accepted: float64(n) / sent.Sending.Seconds(), cpu: used.cpu, rss: used.rss,
	}, nil
}

// awaitEnded waits until so many transfers have ended. It asks seldom, because counting is work for the database.
func (s *system) awaitEnded(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		ended, open, err := s.transfers(ctx)
		if err != nil {
			return err
		}
		if ended >= n && open == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d transfers have ended: %w", ended, n, ctx.Err())
		}
	}
}

// withSystem runs do on a new system, verifies it, and stops it.
func (b *bench) withSystem(ctx context.Context, env []string, do func(*system) error) error {
	s, err := startSystem(ctx, b.programs, env...)
	if err != nil {
		return err
	}
	err = do(s)
	if err == nil {
		err = s.verify(ctx)
	}
	return errors.Join(err, s.stop())
}
