package main

import "context"

// Among how many accounts a sustained load moves money, and over how many connections it asks for that.
const (
	customers   = 1_000
	connections = 32
)

var sustained = scenario{
	name: "sustained",
	about: "The sustained load. The clock runs from the first request to the last COMPLETED. CPU time is that of every process of the bank, its " +
		"servers included.",
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
			found.add("CPU of all per transfer", ofBank(r.cpu)*1000, "ms")
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
				func() (pace, error) { return m.pace(ctx, b.Transfers/2) },
				func() (pace, error) { return uneven.pace(ctx, b.Transfers/2) },
			)
			if err != nil {
				return err
			}
			found.addPace("spread", even)
			found.addPace("one hot account", oneHot)
			found.add("ratio", oneHot.rate/even.rate, "")
			return nil
		})
		return found, err
	},
}
