package life

import (
	"context"

	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/journal"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/quarantine"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Read completes what a service tells of a transfer by what its inbox, outbox, journal and audit say. These are read one after another,
// so that a life that is being lived may be seen in the middle of a step; the next look has all of it.
func Read(ctx context.Context, pool *pgxpool.Pool, service string, transfer uuid.UUID, told Told) (Life, error) {
	var f found
	var err error
	if f.waiting, f.all, err = outbox.ListWaiting(ctx, pool, transfer.String()); err != nil {
		return Life{}, err
	}
	if f.attempts, err = journal.Of(ctx, pool, transfer); err != nil {
		return Life{}, err
	}
	heard := f.heard(told.Heard)
	keys, ids := make([]inbox.Key, len(heard)), make([]string, len(heard))
	for i, h := range heard {
		keys[i], ids[i] = h.Key, h.MessageID
	}
	if f.received, err = inbox.Received(ctx, pool, keys); err != nil {
		return Life{}, err
	}
	if f.audit, err = quarantine.History(ctx, pool, transfer, ids); err != nil {
		return Life{}, err
	}
	return Life{TransferID: transfer, Service: service, Events: assemble(transfer, told, f)}, nil
}
