package main

import (
	"context"
	"log/slog"
	"math/big"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// conservation looks whether money is conserved, and says so in metrics: what GET /ledger sums up is 0 in each currency at every moment,
// or money has come from nowhere or is gone. Every replica looks at the same ledger, so its metrics are to be read with max().
type conservation struct {
	sums     func(context.Context) ([]currencySums, error)
	interval time.Duration // from the end of one look to the next, at least; see pause
	log      *slog.Logger

	imbalance *prometheus.GaugeVec
	checked   prometheus.Gauge
}

// conservationInterval is how often the ledger is summed up.
const conservationInterval = 30 * time.Second

func newConservation(s *store, registry prometheus.Registerer, log *slog.Logger) *conservation {
	c := &conservation{
		sums: s.ledger, interval: conservationInterval, log: log,
		imbalance: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "ledger_imbalance_minor",
			Help: "Sum of customers, transit and funding in minor units, at the last look; anything but 0 is an error.",
		}, []string{"currency"}),
		checked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ledger_checked_timestamp_seconds",
			Help: "When the ledger was last summed up, as a Unix time; 0 for not yet.",
		}),
	}
	registry.MustRegister(c.imbalance, c.checked)
	return c
}

// run looks until ctx ends. A failure is logged; that the last look was long ago can be seen in the metrics.
func (c *conservation) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		began := time.Now()
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "ledger not checked", "error", err)
		}
		timer.Reset(c.pause(time.Since(began)))
	}
}

// pause is the time until the next look. The sum reads every account, so it takes the longer the more there are; it may take a twentieth
// of one connection's time and no more.
func (c *conservation) pause(took time.Duration) time.Duration {
	return max(c.interval, 20*took)
}

func (c *conservation) look(ctx context.Context) error {
	sums, err := c.sums(ctx)
	if err != nil {
		return err
	}
	for _, of := range sums {
		// Beyond 2^53 the value is not exact, but what is not 0 never becomes 0.
		value, _ := new(big.Float).SetInt(of.Sum).Float64()
		c.imbalance.WithLabelValues(of.Currency).Set(value)
		if of.Sum.Sign() != 0 {
			c.log.ErrorContext(ctx, "money is not conserved", "currency", of.Currency, "sum_minor", of.Sum.String(),
				"customers_minor", of.Customers.String(), "in_transit_minor", of.InTransit.String(), "funding_minor", of.Funding.String())
		}
	}
	c.checked.SetToCurrentTime()
	return nil
}
