package main

import (
	"context"
	"fmt"
	"time"
)

var growth = scenario{
	name: "growth",
	about: "The sustained load on an empty bank; then on the same one with many ended transfers in its tables, and an inbox in each service that " +
		"is longer still. The history is written by SQL, as the services would have left it, and vacuumed on both sides.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			m, err := b.openMarket(ctx, s)
			if err != nil {
				return err
			}
			rested := func() (pace, error) {
				if err := s.vacuum(ctx); err != nil {
					return pace{}, err
				}
				if _, err := m.burst(ctx, b.WarmUp); err != nil { // neither side begins with cold caches
					return pace{}, err
				}
				return m.pace(ctx, b.Transfers)
			}
			empty, err := rested()
			if err != nil {
				return err
			}
			began := time.Now()
			h := history{
				transfers: roundUp(b.Grown, len(m.load.Accounts)), inbox: b.GrownInbox, accounts: m.load.Accounts, until: began.Add(-time.Hour),
			}
			if err := h.write(ctx, s.pools["account"], s.pools["transfer"]); err != nil {
				return err
			}
			b.say("wrote the history in %s", time.Since(began).Round(time.Second))
			grown, err := rested()
			if err != nil {
				return err
			}
			ratio := "ratio"
			if b.Grown < 1_000_000 || b.GrownInbox < 5_000_000 {
				ratio = fmt.Sprintf("ratio after %d transfers and with %d rows in each inbox, less than the target's", b.Grown, b.GrownInbox)
			}
			found.add("transfers in the tables", float64(h.transfers), "")
			found.add("rows in each inbox", float64(h.inbox), "")
			found.addPace("empty", empty)
			found.addPace("grown", grown)
			found.add(ratio, grown.rate/empty.rate, "")
			return nil
		})
		return found, err
	},
}

// vacuum brings both databases to rest, so that neither side pays for what came before it.
func (s *system) vacuum(ctx context.Context) error {
	for _, name := range serviceNames {
		if _, err := s.pools[name].Exec(ctx, "vacuum (analyze)"); err != nil {
			return fmt.Errorf("vacuum %s's database: %w", name, err)
		}
	}
	return s.administer(ctx, "checkpoint")
}

func roundUp(n, step int) int { return (n + step - 1) / step * step }
