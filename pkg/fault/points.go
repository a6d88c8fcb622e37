package fault

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"example.com/banking/pkg/retry"
	"github.com/google/uuid"
)

// Ledger keeps the count of firings where every replica sees it, and where it outlives the process.
type Ledger interface {
	// Take takes one of a counted fault's firings. It says false when none was left: another replica had the last one, or
	// the fault has been deleted.
	Take(ctx context.Context, id uuid.UUID) (bool, error)
	// Note adds firings of a fault that is not counted.
	Note(ctx context.Context, id uuid.UUID, firings int64) error
}

// Points is what the code asks at its fault points. A nil *Points never fails anything.
//
// It is safe for concurrent use. What is armed is an immutable list behind one atomic pointer: asking takes no lock, and no
// more than a comparison for each armed fault.
type Points struct {
	ledger Ledger
	log    *slog.Logger
	exit   func(code int)
	armed  atomic.Pointer[[]*armed]
}

// armed is a fault on this replica.
type armed struct {
	Fault
	spent   atomic.Bool  // the ledger said that nothing is left
	unnoted atomic.Int64 // firings that the ledger does not know yet
}

// New makes points at which nothing is armed.
func New(ledger Ledger, log *slog.Logger) *Points {
	return &Points{ledger: ledger, log: log, exit: os.Exit}
}

// At asks whether to fail here for this message, and does so: it returns an error, takes its time, panics, or does not return
// at all. Several faults can meet at one point; they act in the order in which they were armed, up to the first error.
func (p *Points) At(ctx context.Context, at Point, messageID string) error {
	if p == nil {
		return nil
	}
	return p.ask(ctx, at, messageID)
}

func (p *Points) ask(ctx context.Context, at Point, messageID string) error {
	all := p.armed.Load()
	if all == nil {
		return nil
	}
	for _, f := range *all {
		if f.Point != at || f.MessageID != "" && f.MessageID != messageID {
			continue
		}
		if err := p.fire(ctx, f, messageID); err != nil {
			return err
		}
	}
	return nil
}

func (p *Points) fire(ctx context.Context, f *armed, messageID string) error {
	if !p.take(ctx, f) {
		return nil
	}
	p.log.LogAttrs(ctx, slog.LevelWarn, "fault fires", slog.String("fault", f.ID.String()), slog.String("point", string(f.Point)),
		slog.String("action", string(f.Action)), slog.String("message_id", messageID))
	switch f.Action {
	case Exit:
		p.exit(ExitCode)
	case Panic:
		panic(fmt.Sprintf("fault %s at %s", f.ID, f.Point))
	case Delay:
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("fault %s at %s: %w", f.ID, f.Point, ctx.Err())
		}
	case Error:
		return retry.Errorf(f.Class, "fault %s at %s", f.ID, f.Point)
	}
	return nil
}

// countTime bounds the question whether a counted fault may fire, and the last word of a process about to end.
const countTime = 2 * time.Second

// take says whether the fault may fire. A counted one is taken first and acts then: were it the other way round, an exit would
// repeat for ever. One that cannot be taken, because the database is away, does not fire. One that is not counted asks nobody.
func (p *Points) take(ctx context.Context, f *armed) bool {
	if f.Remaining == nil {
		if f.Action != Exit && f.Action != Panic {
			f.unnoted.Add(1)
			return true
		}
		ctx, cancel := context.WithTimeout(ctx, countTime)
		defer cancel()
		_ = p.ledger.Note(ctx, f.ID, 1) // only for who looks at the count
		return true
	}
	if f.spent.Load() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	taken, err := p.ledger.Take(ctx, f.ID)
	switch {
	case err != nil:
		p.log.LogAttrs(ctx, slog.LevelWarn, "fault does not fire: it could not be counted", slog.String("fault", f.ID.String()), slog.Any("error", err))
	case !taken:
		f.spent.Store(true)
	}
	return taken && err == nil
}

// Arm makes these the faults that can fire, instead of those of the last call. Faults with nothing left are passed over.
func (p *Points) Arm(faults []Fault) {
	known := map[uuid.UUID]*armed{}
	if before := p.armed.Load(); before != nil {
		for _, f := range *before {
			known[f.ID] = f
		}
	}
	var all []*armed
	for _, f := range faults {
		if f.Remaining != nil && *f.Remaining <= 0 {
			continue
		}
		a := known[f.ID] // keeps its firings that are not noted yet
		if a == nil {
			a = &armed{Fault: f}
		}
		all = append(all, a)
	}
	if all == nil {
		p.armed.Store(nil)
		return
	}
	p.armed.Store(&all)
}

// NoteFired tells the ledger of the firings that it does not know yet.
func (p *Points) NoteFired(ctx context.Context) error {
	all := p.armed.Load()
	if all == nil {
		return nil
	}
	for _, f := range *all {
		n := f.unnoted.Swap(0)
		if n == 0 {
			continue
		}
		if err := p.ledger.Note(ctx, f.ID, n); err != nil {
			f.unnoted.Add(n)
			return err
		}
	}
	return nil
}
