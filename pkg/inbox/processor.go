package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/banking/pkg/fault"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/pipeline"
	"example.com/banking/pkg/retry"
	"github.com/jackc/pgx/v5"
)

type processor[C any] struct {
	config  Config[C]
	metrics *metrics
}

// item is a message that has been parsed. Its result is in the field err.
type item[C any] struct {
	message   *messaging.Message
	command   C
	hash      [32]byte
	duplicate bool
	err       error
}

// handle is the messaging.Handler.
func (p *processor[C]) handle(ctx context.Context, batch []*messaging.Message) (results []error, whole error) {
	defer func() { // Begin, Load, Save or one of their callbacks; the transaction has been rolled back on the way here
		if cause := recover(); cause != nil {
			results, whole = nil, panicError(cause)
		}
	}()
	results = make([]error, len(batch))
	items := make([]*item[C], len(batch)) // nil: did not get as far as the database
	byID := make(map[string]*item[C], len(batch))
	pending := make([]*item[C], 0, len(batch))
	for i, message := range batch {
		parsed, err := p.parse(message)
		if err != nil {
			results[i] = err
			continue
		}
		if first := byID[message.MessageID]; first != nil {
			// A second copy shares the fate of the first one. Consumers do not form such batches; money should not depend on it.
			if first.hash != parsed.hash {
				results[i] = otherPayload(message)
				continue
			}
			items[i] = first
			continue
		}
		byID[message.MessageID], items[i] = parsed, parsed
		pending = append(pending, parsed)
	}
	if err := p.transactAll(ctx, pending); err != nil {
		return nil, err
	}
	for i, it := range items {
		duplicate := false
		if it != nil {
			results[i], duplicate = it.err, it.duplicate || it.message != batch[i]
		}
		p.metrics.count(results[i], duplicate)
	}
	return results, nil
}

// parse checks a message alone, before any neighbour is involved.
func (p *processor[C]) parse(message *messaging.Message) (parsed *item[C], err error) {
	defer func() {
		if cause := recover(); cause != nil {
			parsed, err = nil, panicError(cause)
		}
	}()
	command, err := p.config.Parse(message)
	if err != nil {
		return nil, err
	}
	hash, err := message.PayloadHash()
	if err != nil {
		return nil, retry.Wrap(retry.Validation, fmt.Errorf("hash payload: %w", err))
	}
	return &item[C]{message: message, command: command, hash: hash}, nil
}

// transactAll runs the transaction. An Apply that panicked may have left its unit of work in any state, so nothing of that is saved:
// the message gets its error and the others start afresh without it.
func (p *processor[C]) transactAll(ctx context.Context, items []*item[C]) error {
	for len(items) > 0 {
		panicked, err := p.transact(ctx, items)
		if err != nil {
			return p.classify(ctx, err)
		}
		if panicked == nil {
			return nil
		}
		items = slices.DeleteFunc(slices.Clone(items), func(it *item[C]) bool { return it == panicked })
	}
	return nil
}

// transact runs one transaction over the items and fills in their results. If an Apply panics it stops there, rolls back and
// returns the item.
//
// First round trip: begin, insert the ids, load. Second: save, insert into the outbox, delete the ids of what failed, compare what
// was seen before, commit. When nothing was applied, the second only compares, and rolls back.
//
// READ COMMITTED is enough, because what must not be raced is serialised by rows, not by snapshots. Two copies of a message meet in
// the inbox's key: the second insert waits until the first transaction has ended, then finds the row (and does nothing) or
// not (and is the first). Two messages about one entity meet in the row that Load locks, and Load's statements come after
// the insert and take a new snapshot each, so they see all that was waited for. A stricter level would turn these waits
// into serialization failures.
func (p *processor[C]) transact(ctx context.Context, items []*item[C]) (panicked *item[C], err error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	commands := make([]C, len(items))
	for i, it := range items {
		commands[i], it.err, it.duplicate = it.command, nil, false
	}
	work := p.config.Begin()
	var fresh map[string]bool
	tx, err := pipeline.Begin(ctx, p.config.Pool, func(b *pgx.Batch) {
		queueInsert(b, p.config.Consumer, items, &fresh)
		work.Load(b, commands)
	})
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()

	outgoing, failed, seen, panicked := p.applyAll(ctx, work, items, fresh)
	if panicked != nil {
		return panicked, nil
	}
	if len(seen)+len(failed) == len(items) {
		if len(seen) == 0 {
			return nil, nil
		}
		return nil, tx.Discard(ctx, func(b *pgx.Batch) { queueExceptions(b, p.config.Consumer, nil, seen) })
	}
	if err := p.failAt(ctx, fault.BeforeCommit, items); err != nil {
		return nil, err
	}
	var queued *outbox.Queued
	err = tx.Commit(ctx, func(b *pgx.Batch) {
		work.Save(b)
		queued = p.config.Outbox.Queue(b, outgoing)
		queueExceptions(b, p.config.Consumer, failed, seen)
	})
	if err != nil {
		return nil, err
	}
	queued.Committed()
	return nil, p.failAt(ctx, fault.AfterCommit, items)
}

// failAt asks the fault point for every message that was applied.
func (p *processor[C]) failAt(ctx context.Context, at fault.Point, items []*item[C]) error {
	if p.config.Faults == nil {
		return nil
	}
	for _, it := range items {
		if it.duplicate || it.err != nil {
			continue
		}
		if err := p.config.Faults.At(ctx, at, it.message.MessageID); err != nil {
			return err
		}
	}
	return nil
}

// applyAll applies the fresh items in the order of their arrival, up to the first that panics.
func (p *processor[C]) applyAll(ctx context.Context, work Work[C], items []*item[C], fresh map[string]bool) (outgoing []outbox.Message, failed, seen []*item[C], panicked *item[C]) {
	for _, it := range items {
		if !fresh[it.message.MessageID] {
			it.duplicate = true
			seen = append(seen, it)
			continue
		}
		messages, recovered, err := p.apply(ctx, work, it)
		it.err = err
		switch {
		case recovered:
			return nil, nil, nil, it
		case err != nil:
			failed = append(failed, it)
		default:
			outgoing = append(outgoing, messages...)
		}
	}
	return outgoing, failed, seen, nil
}

func (p *processor[C]) apply(ctx context.Context, work Work[C], it *item[C]) (messages []outbox.Message, recovered bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			messages, recovered, err = nil, true, panicError(cause)
		}
	}()
	if err := p.config.Faults.At(ctx, fault.Handler, it.message.MessageID); err != nil {
		return nil, false, err
	}
	messages, err = work.Apply(it.message, it.command)
	return messages, false, err
}

// classify gives the error of a whole transaction its class. CANCELLED is not a failure and spends no attempt, so it must not be said
// because of anything but the caller's own shutdown.
func (p *processor[C]) classify(ctx context.Context, err error) error {
	err = fmt.Errorf("inbox of %s: %w", p.config.Consumer, err)
	if errors.Is(ctx.Err(), context.Canceled) {
		return &retry.Error{Class: retry.Cancelled, Err: err}
	}
	// The service is asked first: it knows which of its keys are there to catch a contradiction.
	class := retry.ClassOf(err, append(slices.Clone(p.config.Classifiers), uniqueViolation)...)
	if class == retry.Cancelled {
		class = retry.Timeout
	}
	return &retry.Error{Class: class, Err: err}
}

// uniqueViolation takes a broken key for what it nearly always is here: what Load did not see and Save collided with was committed in
// between, and will be seen the next time.
func uniqueViolation(err error) (retry.Class, bool) {
	var sqlState interface{ SQLState() string }
	if errors.As(err, &sqlState) && sqlState.SQLState() == "23505" {
		return retry.Conflict, true
	}
	return "", false
}
