package main

import (
	"context"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// command is what an event of account tells about one transfer.
type command struct {
	transfer uuid.UUID // zero when data.transferId is a text that is no UUID: the id of nothing
	data     contract.Data
}

// work is the unit of work of one batch: the transfers it concerns, locked, what has been learnt about them, and what is to be
// written. Consumer and sweeper both go through it, so there is one way for a transfer to change.
//
// Lock order: transfers, by id. Facts and outcome counts need no locks of their own.
type work struct {
	now       func() time.Time
	transfers map[uuid.UUID]*lifecycle.Transfer

	learnt  []learntFact
	changed map[uuid.UUID]time.Time // which rows of transfers to write, and the time of the last change
	ended   map[lifecycle.Status]int64
}

type learntFact struct {
	transfer  uuid.UUID
	fact      lifecycle.Fact
	at        time.Time
	messageID string
}

func newWork(now func() time.Time) *work {
	return &work{
		now:       now,
		transfers: map[uuid.UUID]*lifecycle.Transfer{},
		changed:   map[uuid.UUID]time.Time{},
		ended:     map[lifecycle.Status]int64{},
	}
}

const lockTransfers = `
select id, source_account_id, destination_account_id, amount_minor, currency, coalesce(reason, '')
from transfers where id = any($1) order by id for update`

// Its own statement, behind the locking one: in READ COMMITTED it then sees what those who held the locks have written.
const readFacts = `select transfer_id, fact from facts where transfer_id = any($1)`

// Load queues the reading of the transfers that the commands are about.
func (w *work) Load(b *pgx.Batch, commands []command) {
	ids := make([]uuid.UUID, 0, len(commands))
	for _, c := range commands {
		ids = append(ids, c.transfer)
	}
	b.Queue(lockTransfers, ids).Query(w.scanTransfers)
	b.Queue(readFacts, ids).Query(w.scanFacts)
}

func (w *work) scanTransfers(rows pgx.Rows) error {
	for rows.Next() {
		t := new(lifecycle.Transfer)
		if err := rows.Scan(&t.ID, &t.Source, &t.Destination, &t.Money.Minor, &t.Money.Currency, &t.Reason); err != nil {
			return err
		}
		w.transfers[t.ID] = t
	}
	return rows.Err()
}

func (w *work) scanFacts(rows pgx.Rows) error {
	var id uuid.UUID
	var name string
	for rows.Next() {
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		fact, ok := lifecycle.ParseFact(name)
		if !ok {
			return retry.Errorf(retry.Invariant, "transfer %s has the unknown fact %q", id, name)
		}
		// A transfer that became visible between the two statements has facts and no locked row; the next attempt finds both.
		if t, locked := w.transfers[id]; locked {
			t.Facts = t.Facts.With(fact)
		}
	}
	return rows.Err()
}

// Apply lets a transfer hear one event of account.
func (w *work) Apply(m *messaging.Message, c command) ([]outbox.Message, error) {
	t, ok := w.transfers[c.transfer]
	if !ok {
		return nil, retry.Errorf(retry.NotFound, "there is no transfer %.60q", c.data.TransferID.Value)
	}
	return w.learn(t, m.MessageID, m.TraceParent, func(t *lifecycle.Transfer) (lifecycle.Step, error) {
		return t.Hear(m.Type, c.data)
	})
}

// timeOut tells a transfer that it has been open for too long. As no message came in that the timeline could show, it shows the
// one that asks for the money back; it goes out because of this, or has gone out when the transfer was REFUNDING already.
func (w *work) timeOut(t *lifecycle.Transfer, traceParent string) ([]outbox.Message, error) {
	return w.learn(t, "", traceParent, (*lifecycle.Transfer).TimeOut)
}

// learn takes one step of a transfer and notes what has to be written for it; with an error everything is as before.
func (w *work) learn(t *lifecycle.Transfer, cause, traceParent string, step func(*lifecycle.Transfer) (lifecycle.Step, error)) ([]outbox.Message, error) {
	next := *t
	taken, err := step(&next)
	if err != nil || !taken.New {
		return nil, err
	}
	at := w.now()
	fact := learntFact{transfer: t.ID, fact: taken.Fact, at: at, messageID: cause}
	var out []outbox.Message
	if taken.Message != nil {
		message, err := outgoing(*taken.Message, cause, traceParent, at)
		if err != nil {
			return nil, err
		}
		out = append(out, message)
	}
	if cause == "" {
		fact.messageID = next.Announce().ID.String()
	}
	*t = next
	w.learnt = append(w.learnt, fact)
	w.changed[t.ID] = at
	if taken.From != taken.To && taken.To.Terminal() {
		w.ended[taken.To]++
	}
	return out, nil
}

const insertFacts = `
insert into facts (transfer_id, fact, at, message_id)
select * from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[])`

const updateTransfers = `
update transfers t set status = n.status, reason = nullif(n.reason, ''), updated_at = n.at
from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) as n (id, status, reason, at)
where t.id = n.id`

const addOutcomes = `
insert into outcome_counts (outcome, n) select * from unnest($1::text[], $2::bigint[])`

// Save queues the writes, one statement for each table. The locks that Load took make a conflict of facts impossible; if the
// key nevertheless finds one, the transaction fails instead of forgetting something.
func (w *work) Save(b *pgx.Batch) {
	if len(w.learnt) == 0 {
		return
	}
	w.saveFacts(b)
	w.saveTransfers(b)
	if len(w.ended) > 0 {
		w.saveOutcomes(b)
	}
}

func (w *work) saveFacts(b *pgx.Batch) {
	n := len(w.learnt)
	ids, facts, ats, messages := make([]uuid.UUID, n), make([]string, n), make([]time.Time, n), make([]string, n)
	for i, l := range w.learnt {
		ids[i], facts[i], ats[i], messages[i] = l.transfer, l.fact.String(), l.at, l.messageID
	}
	b.Queue(insertFacts, ids, facts, ats, messages)
}

func (w *work) saveTransfers(b *pgx.Batch) {
	n := len(w.changed)
	ids, statuses, reasons, ats := make([]uuid.UUID, 0, n), make([]string, 0, n), make([]string, 0, n), make([]time.Time, 0, n)
	for id, at := range w.changed {
		t := w.transfers[id]
		ids, statuses = append(ids, id), append(statuses, string(t.Status()))
		reasons, ats = append(reasons, t.Reason), append(ats, at)
	}
	b.Queue(updateTransfers, ids, statuses, reasons, ats)
}

func (w *work) saveOutcomes(b *pgx.Batch) {
	var outcomes []string
	var counts []int64
	for status, n := range w.ended {
		outcomes, counts = append(outcomes, string(status)), append(counts, n)
	}
	b.Queue(addOutcomes, outcomes, counts)
}

// outgoing puts what a transfer says into an envelope. It goes on in the trace of what caused it, or starts one when whoever sent
// that had none.
func outgoing(m contract.Message, cause, traceParent string, at time.Time) (outbox.Message, error) {
	if traceParent == "" {
		traceParent = service.TraceParent(context.Background())
	}
	data, err := m.Data.Encode()
	if err != nil {
		return outbox.Message{}, err
	}
	return outbox.NewMessage(outbox.Draft{
		ID:            m.ID.String(),
		Type:          m.Type,
		CorrelationID: m.Data.TransferID.Value,
		CausationID:   cause,
		OccurredAt:    at,
		Data:          data,
		TraceParent:   traceParent,
	})
}
