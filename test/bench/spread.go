package main

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/internal/plot"
	"example.com/banking/internal/testenv/servers"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/contract/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// spread lets a thousand messages fail together and looks when they come back.
var spread = scenario{
	name: "spread",
	once: true,
	about: "1,000 events fail at the same moment and wait 5 s at the broker (tiered profile). Without jitter they come back as they went, all at once; with " +
		"RETRY_JITTER=0.2 each waits in one of three queues of 4, 5 and 6 s. Counted by what leaves the retry queues.",
	run: func(ctx context.Context, b *bench) (found result, err error) {
		chart := plot.Chart{
			Title: "1,000 messages that failed together, and their retries", About: "Retries in each tenth of a second: one wave without jitter, three smaller ones with it.",
			XLabel: "seconds after the failure", YLabel: "retries in 100 ms",
		}
		for _, jitter := range []float64{0, 0.2} {
			waves, err := b.measureSpread(ctx, jitter)
			if err != nil {
				return found, fmt.Errorf("jitter %v: %w", jitter, err)
			}
			label := fmt.Sprintf("jitter %v: ", jitter)
			found.add(label+"most retries in 100 ms", waves.peak(), "")
			found.add(label+"from the first retry to the last", waves.span().Seconds(), "s")
			chart.Series = append(chart.Series, plot.Series{Name: fmt.Sprintf("jitter %v", jitter), Kind: plot.Step, Points: waves.points()})
		}
		found.charts = map[string]plot.Chart{"retry-spread": chart}
		return found, nil
	},
}

const (
	failingEvents = 1000
	bucket        = 100 * time.Millisecond
)

// waves counts retries by the tenth of a second after the failure.
type waves []int

func (w waves) peak() float64 {
	most := 0
	for _, n := range w {
		most = max(most, n)
	}
	return float64(most)
}

func (w waves) span() time.Duration {
	first, last := -1, 0
	for i, n := range w {
		if n > 0 {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	return time.Duration(last-first+1) * bucket
}

func (w waves) points() (points []plot.Point) {
	for i, n := range w {
		points = append(points, plot.Point{X: (time.Duration(i) * bucket).Seconds(), Y: float64(n)})
	}
	return append(points, plot.Point{X: (time.Duration(len(w)) * bucket).Seconds()})
}

func (b *bench) measureSpread(ctx context.Context, jitter float64) (_ waves, err error) {
	s, err := b.startSystem(ctx, servers.Config{}, "RETRY_PROFILE=tiered", "RETRY_TIERS=5s", fmt.Sprintf("RETRY_JITTER=%v", jitter), "MAX_ATTEMPTS=2", "BREAKER=off", "RETRY_BUDGET=off")
	if err != nil {
		return nil, err
	}
	defer func() {
		if failed := s.stop(); err == nil {
			err = failed
		}
	}()
	conn, err := amqp.Dial(s.access.OperatorAMQPURL)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	queues := topology.RetryTiers([]time.Duration{5 * time.Second}, jitter)[0].Queues
	for i := range failingEvents { // about transfers that nobody knows: NOT_FOUND, retried while young
		body := fmt.Sprintf(`{"messageId":"spread-%d","type":%q,"data":{"transferId":"unknown-%d"}}`, i, contract.AccountDebited, i)
		err := ch.PublishWithContext(ctx, contract.EventsExchange, contract.RoutingKey(contract.AccountDebited), false, false,
			amqp.Publishing{Body: []byte(body), DeliveryMode: amqp.Persistent})
		if err != nil {
			return nil, err
		}
	}
	w, err := departures(ctx, ch, queues)
	if err != nil {
		return nil, err
	}
	// The second attempt was their last. Where they are between two queues nobody counts them, so that a look in that moment would miss some.
	parked, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := await(parked, 50*time.Millisecond, "the events to be parked", func() (bool, error) {
		n, err := waiting(ch, contract.ParkingLot)
		return n >= failingEvents, err
	}); err != nil {
		return nil, err
	}
	return w, s.verify(ctx, failingEvents)
}

// departures waits until all events are in the retry queues, and then counts how they leave.
func departures(ctx context.Context, ch *amqp.Channel, queues []string) (w waves, err error) {
	depth := func() (n int, err error) {
		for _, name := range queues {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			if err != nil {
				return 0, err
			}
			n += q.Messages
		}
		return n, nil
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	var failed time.Time // when the middle one of them entered
	left := failingEvents
	full := false
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for left > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("the %d events were not all in the retry queues at once, or did not leave: %w", failingEvents, ctx.Err())
		}
		n, err := depth()
		if err != nil {
			return nil, err
		}
		if failed.IsZero() && n >= failingEvents/2 {
			failed = time.Now()
		}
		if !full {
			full = n == failingEvents
			continue
		}
		if n < left {
			at := int(time.Since(failed) / bucket)
			for len(w) <= at {
				w = append(w, 0)
			}
			w[at] += left - n
			left = n
		}
	}
	return w, nil
}
