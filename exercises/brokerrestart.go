package exercises

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"example.com/banking/internal/control"
)

// brokerRestart takes the broker away while transfers are asked for.
var brokerRestart = Exercise{
	Number: 12, Name: "broker-restart", Title: "The broker restarts mid-traffic",
	Question: "RabbitMQ is stopped and started while customers go on sending money. What do they see, where are the messages meanwhile, and who reconnects whom?",
	Needs:    []Need{Control},
	Takes:    30 * time.Second,
	play: func(ctx context.Context, r *run) error {
		payer, payee, err := r.pair(ctx)
		if err != nil {
			return err
		}
		sessions, err := r.sessions(ctx)
		if err != nil {
			return err
		}
		r.usualLater("rabbitmq")
		r.do("Customers send a transfer every 100 ms.")
		var seen trafficSeen
		var traffic sync.WaitGroup
		until, stop := context.WithCancel(ctx)
		traffic.Go(func() { seen = r.traffic(ctx, until, payer, payee) })
		defer traffic.Wait() // also when this ends early
		defer stop()

		var stuck string
		if err := r.inject("RabbitMQ is stopped.", func() error {
			if _, err := r.order(ctx, "rabbitmq", control.Stop, nil); err != nil {
				return err
			}
			if stuck, err = r.ask(ctx, uuid.NewString(), payer, payee); err != nil {
				return err
			}
			if err := r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) { return r.waits(ctx, stuck) }); err != nil {
				return fmt.Errorf("a message in the outbox: %w", err)
			}
			r.saw("bank transfer show "+stuck+" --life", "The broker is away; a transfer is accepted all the same, and its first message waits in the outbox.")
			r.do("RabbitMQ is started again.")
			_, err := r.order(ctx, "rabbitmq", control.Start, nil)
			return err
		}); err != nil {
			return err
		}
		if err := r.awaitFault(ctx, "Both services have lost their session and have a new one.", func(ctx context.Context) (bool, error) {
			now, err := r.sessions(ctx)
			return now[0] > sessions[0] && now[1] > sessions[1], err
		}); err != nil {
			return err
		}
		stop()
		traffic.Wait()
		if err := r.recovered(len(seen.refused) == 0, "No customer was refused.", figure("transfers", len(seen.ids)), figure("slowest answer", seen.slowest),
			figure("refused", seen.refused)); err != nil {
			return err
		}
		if err := r.awaitRecovery(ctx, "Every transfer completes.", func(ctx context.Context) (bool, error) {
			done, err := r.completed(ctx, append(seen.ids, stuck))
			return done == len(seen.ids)+1, err
		}); err != nil {
			return err
		}
		return r.awaitRecovery(ctx, "Both services are ready again, without anybody's help.", func(ctx context.Context) (bool, error) {
			if ok, err := r.account.ready(ctx); !ok {
				return false, err
			}
			return r.transfer.ready(ctx)
		})
	},
}

// waits says whether a message about the transfer lies in transfer's outbox.
func (r *run) waits(ctx context.Context, transferID string) (bool, error) {
	var life struct {
		Events []lifeEvent `json:"events"`
	}
	err := r.transfer.call(ctx, http.MethodGet, "/transfers/"+transferID+"/life", nil, &life)
	return slices.ContainsFunc(life.Events, func(e lifeEvent) bool { return e.Kind == "WAITING" }), err
}

// sessions counts the connections to the broker that each service has had.
func (r *run) sessions(ctx context.Context) (n [2]float64, err error) {
	for i, s := range []*service{r.account, r.transfer} {
		if n[i], err = s.metric(ctx, "messaging_sessions_total"); err != nil {
			return n, err
		}
	}
	return n, nil
}

// trafficSeen is what customers have seen.
type trafficSeen struct {
	ids     []string
	refused []error
	slowest time.Duration
}

// traffic asks for a transfer every tenth of a second, once each, until it is told to stop. What has begun is finished.
func (r *run) traffic(ctx, until context.Context, from, to customer) (seen trafficSeen) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-until.Done():
			return seen
		}
		began := time.Now()
		id, err := r.ask(ctx, uuid.NewString(), from, to)
		if err != nil {
			seen.refused = append(seen.refused, err)
			continue
		}
		seen.ids = append(seen.ids, id)
		seen.slowest = max(seen.slowest, time.Since(began))
	}
}
