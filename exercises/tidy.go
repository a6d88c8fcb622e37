package exercises

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"example.com/banking/internal/control"
)

// tidy puts back what a run has left that was killed before it could do so: servers first, which the services need.
func (r *run) tidy(ctx context.Context) error {
	if r.control != nil {
		left, err := r.tidyProcesses(ctx)
		if err != nil {
			return err
		}
		if left { // and all that it sets in motion: it would be the next fault's victim
			if err := r.await(ctx, resetTime, r.calm); err != nil {
				return fmt.Errorf("messages still move that it has held up: %w", err)
			}
		}
	}
	for _, s := range []*service{r.account, r.transfer} {
		if err := r.await(ctx, r.patience(), func(ctx context.Context) (bool, error) { // somebody may be looking into it
			err := r.discardLeft(ctx, s)
			return err == nil, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// tidyProcesses says whether faults were left.
func (r *run) tidyProcesses(ctx context.Context) (left bool, err error) {
	processes, err := r.control.Processes(ctx)
	if err != nil {
		return false, err
	}
	for _, kind := range []string{"server", "service"} {
		if kind == "service" {
			if left, err = r.tidyFaults(ctx); err != nil {
				return false, err
			}
		}
		for _, p := range processes {
			if p.Kind != kind {
				continue
			}
			if err := r.tidyProcess(ctx, p); err != nil {
				return false, err
			}
		}
	}
	if left { // what they have made wait has to pass before the next fault comes
		return true, r.removeTiers(ctx)
	}
	return false, nil
}

// tidyFaults deletes the faults that a killed run has left. They outlive the services, which may be stopped or paused, so that nobody can
// be asked but the databases. It is done before a service starts: under other settings than the killed run's, what was made to fail often
// would be parked the next time.
func (r *run) tidyFaults(ctx context.Context) (left bool, err error) {
	for _, of := range []struct{ service, url string }{{r.account.name, r.AccountDatabaseURL}, {r.transfer.name, r.TransferDatabaseURL}} {
		var deleted int64
		if err := r.await(ctx, r.patience(), func(ctx context.Context) (_ bool, err error) { // it may just be starting
			deleted, err = deleteFaults(ctx, of.url)
			return err == nil, err
		}); err != nil {
			return left, fmt.Errorf("deleting the faults of %s: %w", of.service, err)
		}
		if deleted > 0 {
			left = true
			r.say(Event{Kind: Reset, Text: fmt.Sprintf("Faults of %s were left; they are deleted first.", of.service), Figures: []Figure{figure("faults", deleted)}})
		}
	}
	return left, nil
}

func deleteFaults(ctx context.Context, database string) (int64, error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tag, err := conn.Exec(ctx, "delete from faults")
	return tag.RowsAffected(), err
}

// tidyPostgres puts PostgreSQL back before the lock in it is asked for, after a run that was killed while it was stopped. Whoever calls
// holds the other lock: nobody is about to do so.
func (r *run) tidyPostgres(ctx context.Context) error {
	if r.control == nil {
		return nil
	}
	p, err := r.control.Process(ctx, "postgres")
	if err == nil {
		err = r.tidyProcess(ctx, p)
	}
	if err != nil {
		return fmt.Errorf("putting back what an earlier run left: %w", err)
	}
	return nil
}

func (r *run) tidyProcess(ctx context.Context, p control.Process) error {
	if p.Usual() {
		return nil
	}
	r.say(Event{Kind: Reset, Text: p.Name + " is not as usual; it is put back first."})
	return r.usual(ctx, p.Name)
}
