package main

import (
	"context"
	"fmt"
	"time"
)

var memory = scenario{
	name:  "memory",
	about: "What each service holds in memory (resident): at most in the course of the sustained load, and at the end of a rest after it.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return err
			}
			if _, err := m.burst(ctx, b.Transfers); err != nil {
				return err
			}
			for _, name := range serviceNames {
				peak, err := peakMemory(s.services[name].PID())
				if err != nil {
					return err
				}
				found.add(name+": most under full load", megabytes(peak), "MB")
			}
			b.say("rest for %s", b.Rest)
			select {
			case <-time.After(b.Rest): // what is measured is what the time alone does
			case <-ctx.Done():
				return ctx.Err()
			}
			for _, name := range serviceNames {
				rest, err := memoryOf(s.services[name].PID())
				if err != nil {
					return err
				}
				found.add(name+": after the rest", megabytes(rest), "MB")
			}
			found.notes = append(found.notes, fmt.Sprintf("The rest was %s", b.Rest))
			return nil
		})
		return found, err
	},
}

func megabytes(bytes float64) float64 { return bytes / 1e6 }
