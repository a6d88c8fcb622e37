// Package control arms the fault points of a service: over HTTP, for all replicas, and so that the order outlives the process
// that it ends.
//
// The faults are rows in the service's database. Each replica reads them before its first message, twice a second from then
// on, and at once when a change came in through itself. A fault with a count is taken out of its row before it acts, so that
// it fires that often and no more, however many replicas there are and however often they die.
package control

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/service"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what a control needs. All of it is required.
type Config struct {
	On       bool // false: no point is ever armed, and the routes answer 404
	Pool     *pgxpool.Pool
	Migrated <-chan struct{} // closed when the table is there
	Logger   *slog.Logger
}

// Control keeps the fault points of one replica in step with the table.
type Control struct {
	config Config
	store  *store
	points *fault.Points // nil when off
	loaded chan struct{}

	reading sync.Mutex // a list that was read earlier must not replace one that was read later
}

// pollInterval is how often the table is read: what another replica was told holds here within a second.
const pollInterval = 500 * time.Millisecond

// readTime bounds one reading of the table.
const readTime = 5 * time.Second

// New makes a control. When it is on it says so loudly: a service like that belongs into an exercise or a test.
func New(config Config) *Control {
	c := &Control{config: config, store: &store{config.Pool}, loaded: make(chan struct{})}
	if config.On {
		c.points = fault.New(c.store, config.Logger)
		config.Logger.Warn("FAULTS is on: whoever has the admin token can make this service fail, hang or die; never set it in production")
	}
	return c
}

// Points are the points to ask; nil when faults are off.
func (c *Control) Points() *fault.Points { return c.points }

// Component reads the table until the service stops.
func (c *Control) Component() service.Component {
	return service.Component{Name: "faults", Run: c.run, After: c.config.Migrated}
}

// Loaded is closed when the points are armed as the table says. What asks them starts after that: a process that comes back from
// a fault must not handle the message again before it knows that the fault is still there.
func (c *Control) Loaded() <-chan struct{} {
	if !c.config.On {
		return c.config.Migrated
	}
	return c.loaded
}

func (c *Control) run(ctx context.Context) error {
	if !c.config.On {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	first, failing := true, false
	for {
		err := c.refresh(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			c.config.Logger.LogAttrs(ctx, slog.LevelWarn, "faults cannot be read, what is armed stays armed", slog.Any("error", err))
		}
		failing = err != nil
		if err == nil && first {
			first = false
			close(c.loaded)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh notes what has fired and arms what the table says.
func (c *Control) refresh(ctx context.Context) error {
	c.reading.Lock()
	defer c.reading.Unlock()
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := c.points.NoteFired(ctx); err != nil {
		return fmt.Errorf("note what has fired: %w", err)
	}
	faults, err := c.store.list(ctx)
	if err != nil {
		return fmt.Errorf("read the faults: %w", err)
	}
	c.points.Arm(faults)
	return nil
}
