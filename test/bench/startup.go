package main

import (
	"context"
	"fmt"
	"slices"
)

// starts is how often each service is started.
const starts = 10

var startUp = scenario{
	name: "startup",
	about: fmt.Sprintf("From the start of the process to the first 200 of /readyz, with database and broker up: the first time, when the tables have "+
		"to be made, and the median and the longest of %d starts after it.", starts),
	run: func(ctx context.Context, b *bench) (found result, err error) {
		err = b.withSystem(ctx, func(s *system) error {
			for i, name := range serviceNames {
				var took []float64
				for range starts {
					if err := s.services[name].Stop(); err != nil {
						return err
					}
					start, err := s.startService(ctx, name)
					if err != nil {
						return err
					}
					took = append(took, start.Seconds())
				}
				found.add(name+": first start", s.firstStarts[i].Seconds(), "s")
				found.add(name+": start to ready", median(took), "s")
				found.add(name+": longest", slices.Max(took), "s")
			}
			return nil
		})
		return found, err
	},
}
