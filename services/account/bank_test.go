package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/account/ledger"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// bank is a migrated database with the handlers of the three queues over it, but no broker: what a test hands to a handler
// is what the consumer would, and what the service says is found in the outbox.
type bank struct {
	*store
	url      string
	handlers map[ledger.Kind]messaging.Handler
}

func newBank(t testing.TB) *bank {
	t.Helper()
	return bankAt(t, testenv.New(t).Database(t, "account"))
}

func bankAt(t testing.TB, url string) *bank {
	t.Helper()
	pool, err := service.OpenPool(t.Context(), url, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	migrations, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Migrate(t.Context(), pool, migrations, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	b := &bank{store: &store{pool: pool}, url: url, handlers: map[ledger.Kind]messaging.Handler{}}
	unsent := outbox.New(outbox.Config{Pool: pool, Publisher: silent{}, Exchange: contract.EventsExchange, AppID: serviceName})
	for kind, queue := range queueOf {
		b.handlers[kind] = inbox.Handler(inbox.Config[command]{
			Pool:        pool,
			Consumer:    queue.name,
			Outbox:      unsent,
			Parse:       queue.read,
			Begin:       func() inbox.Work[command] { return newWork(time.Now) },
			Classifiers: []retry.Classifier{classify},
		})
	}
	return b
}

var queueOf = map[ledger.Kind]requestQueue{
	ledger.Requested:       requestQueues[0],
	ledger.CreditRequested: requestQueues[1],
	ledger.RefundRequested: requestQueues[2],
}

// silent is the publisher of an outbox whose relay never runs.
type silent struct{}

func (silent) Publish(context.Context, []messaging.Publishing) ([]messaging.Outcome, error) {
	panic("the relay of this test does not run")
}

// open opens an account and answers its id.
func (b *bank) open(t testing.TB, currency string, opening int64) uuid.UUID {
	t.Helper()
	account, _, err := b.openAccount(t.Context(), uuid.New(), "Ada", currency, opening, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return account.ID
}

// transfer is what the requests of one transfer have in common.
type transfer struct {
	id, from, to uuid.UUID
	amount       int64
	currency     string
}

func newTransfer(from, to uuid.UUID, amount int64) transfer {
	return transfer{uuid.New(), from, to, amount, "EUR"}
}

func (tr transfer) data() contract.Data {
	return contract.Data{
		TransferID:           contract.Some(tr.id.String()),
		SourceAccountID:      contract.Some(tr.from.String()),
		DestinationAccountID: contract.Some(tr.to.String()),
		AmountMinor:          contract.Amount(tr.amount),
		Currency:             contract.Some(tr.currency),
	}
}

// envelope is a request as transfer would send it, under a new messageId.
func (tr transfer) envelope(t testing.TB, kind ledger.Kind) messaging.Envelope {
	t.Helper()
	asked := tr.data()
	if kind == ledger.RefundRequested {
		asked.Reason = contract.Some(contract.TimedOut)
	}
	data, err := asked.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return messaging.Envelope{MessageID: uuid.NewString(), Type: string(kind), OccurredAt: time.Now(), CorrelationID: tr.id.String(), Data: data}
}

func (tr transfer) message(t testing.TB, kind ledger.Kind) *messaging.Message {
	t.Helper()
	return &messaging.Message{Envelope: tr.envelope(t, kind), Queue: queueOf[kind].name, Attempt: 1}
}

// handle hands a batch to the handler twice, as a broker may, and answers the first results. The second time must find nothing to do
// for what was done, and the same errors for what was not.
func (b *bank) handle(t *testing.T, kind ledger.Kind, batch ...*messaging.Message) []error {
	t.Helper()
	results, err := b.handlers[kind](t.Context(), batch)
	if err != nil {
		t.Fatalf("handle %s: %v", kind, err)
	}
	before := b.outgoing(t)
	again, err := b.handlers[kind](t.Context(), batch)
	if err != nil {
		t.Fatalf("handle %s again: %v", kind, err)
	}
	for i := range results {
		if retry.ClassOf(results[i]) != retry.ClassOf(again[i]) {
			t.Errorf("message %d: %v, the second time %v", i, results[i], again[i])
		}
	}
	if after := b.outgoing(t); len(after) != len(before) {
		t.Errorf("handled a second time, %d messages became %d", len(before), len(after))
	}
	return results
}

// ask has one request handled, which must succeed.
func (b *bank) ask(t *testing.T, kind ledger.Kind, tr transfer) {
	t.Helper()
	if results := b.handle(t, kind, tr.message(t, kind)); results[0] != nil {
		t.Fatalf("%s: %v", kind, results[0])
	}
}

// said is an outgoing message, as far as tests look at it.
type said struct {
	ID, Type string
	Data     contract.Data
}

// outgoing reads the outbox in the order of writing.
func (b *bank) outgoing(t *testing.T) []said {
	t.Helper()
	rows, _ := b.pool.Query(t.Context(), `select body from outbox order by id`)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (said, error) {
		var body string
		if err := row.Scan(&body); err != nil {
			return said{}, err
		}
		return decodeSaid([]byte(body))
	})
	if err != nil {
		t.Fatalf("read outbox: %v", err)
	}
	return all
}

func decodeSaid(body []byte) (said, error) {
	envelope, err := messaging.Decode(body)
	if err != nil {
		return said{}, err
	}
	data, err := contract.ParseData(envelope.Data)
	return said{envelope.MessageID, envelope.Type, data}, err
}

// expectSaid compares the types of everything said about a transfer, and the reasons behind a blank, with want.
func expectSaid(t *testing.T, all []said, tr transfer, want ...string) {
	t.Helper()
	var got []string
	for _, s := range all {
		if s.Data.TransferID.Value != tr.id.String() {
			continue
		}
		text := s.Type
		if s.Data.Reason.Present {
			text += " " + s.Data.Reason.Value
		}
		got = append(got, text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("said %q, want %q", got, want)
	}
}

func (b *bank) expectBalance(t *testing.T, account uuid.UUID, want int64) {
	t.Helper()
	a, err := b.account(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	if a.Balance != want {
		t.Errorf("balance %d, want %d", a.Balance, want)
	}
}

func (b *bank) expectLeg(t *testing.T, tr transfer, state ledger.State, reason string) {
	t.Helper()
	leg, _, err := b.leg(t.Context(), tr.id)
	if err != nil {
		t.Fatal(err)
	}
	if leg.State != state || leg.Reason != reason {
		t.Errorf("leg is %s %s, want %s %s", leg.State, leg.Reason, state, reason)
	}
}

// expectEntries compares a transfer's customer entries, e.g. "DEBIT -5", in the order of posting.
func (b *bank) expectEntries(t *testing.T, tr transfer, want ...string) {
	t.Helper()
	rows, _ := b.pool.Query(t.Context(),
		`select kind || ' ' || amount_minor from entries where transfer_id = $1 and ledger = 'CUSTOMER' order by id`, tr.id)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}

// Each query answers the offenders of one invariant of the ledger.
var invariants = map[string]string{
	"the ledger sums up to zero": `select currency || ' ' || sum(amount_minor) from entries group by currency having sum(amount_minor) <> 0`,
	"a balance is the sum of its entries": `
select a.id || ' ' || a.balance_minor || ' ' || coalesce(sum(e.amount_minor), 0) from accounts a
left join entries e on e.account_id = a.id group by a.id having a.balance_minor <> coalesce(sum(e.amount_minor), 0)`,
	"every movement is two entries that cancel out": `
select transfer_id || kind from entries where transfer_id is not null
group by transfer_id, kind having count(*) <> 2 or sum(amount_minor) <> 0`,
	"a leg says what its entries say": `
select l.id || ' ' || l.state || ' ' || coalesce(string_agg(e.kind, '+' order by e.id), '') from legs l
left join entries e on e.transfer_id = l.id and e.ledger = 'CUSTOMER' group by l.id
having coalesce(string_agg(e.kind, '+' order by e.id), '') <> case l.state when 'DEBIT_REJECTED' then '' when 'CREDITED' then 'DEBIT+CREDIT'
    when 'REFUNDED' then 'DEBIT+REFUND' else 'DEBIT' end`,
	"no entries without a leg": `
select e.transfer_id::text from entries e left join legs l on l.id = e.transfer_id where e.transfer_id is not null and l.id is null`,
	"room is kept for what may return": `
select a.id::text from accounts a join legs l on l.source_account_id = a.id and l.state in ('DEBITED', 'CREDIT_REJECTED')
group by a.id having sum(l.amount_minor) > a.may_return_minor`,
}

// expectInvariants checks what must hold whenever a transaction has committed.
func expectInvariants(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for name, query := range invariants {
		rows, _ := pool.Query(context.WithoutCancel(t.Context()), query)
		offenders, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(fmt.Errorf("%s: %w", name, err))
		}
		if len(offenders) > 0 {
			t.Errorf("broken: %s: %q", name, offenders)
		}
	}
}
