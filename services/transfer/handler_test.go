package main

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/banking/internal/testenv"
	"example.com/banking/pkg/contract"
	"example.com/banking/pkg/inbox"
	"example.com/banking/pkg/messaging"
	"example.com/banking/pkg/outbox"
	"example.com/banking/pkg/retry"
	"example.com/banking/pkg/service"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// desk is what lies between broker and database: the handler of account's events, with a real database and no broker. What
// it wants to send stays in the outbox, where a test can read it.
type desk struct {
	t      *testing.T
	db     *pgxpool.Pool
	store  *store
	outbox *outbox.Outbox
	handle messaging.Handler
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	db, err := service.OpenPool(t.Context(), testenv.New(t).Database(t, "transfer"), serviceName, quiet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := service.Migrate(t.Context(), db, migrations(), quiet()); err != nil {
		t.Fatal(err)
	}
	box := boxOf(db)
	return &desk{t: t, db: db, store: &store{pool: db}, outbox: box, handle: inbox.Handler(inbox.Config[command]{
		Pool: db, Consumer: contract.AccountEventsQueue, Outbox: box, Parse: parseEvent,
		Begin: func() inbox.Work[command] { return newWork(now) },
	})}
}

// boxOf is an outbox without a relay: what is put into it stays there, or is sent by a service on the same database.
func boxOf(db *pgxpool.Pool) *outbox.Outbox {
	return outbox.New(outbox.Config{Pool: db, Publisher: noBroker{}, Exchange: contract.EventsExchange, AppID: serviceName, Logger: quiet()})
}

// intakeOf stores transfers as POST does.
func intakeOf(db *pgxpool.Pool) *intake {
	return newIntake(db, &store{pool: db}, boxOf(db))
}

// noBroker is never asked: no relay runs.
type noBroker struct{}

func (noBroker) Publish(context.Context, []messaging.Publishing) ([]messaging.Outcome, error) {
	panic("a test without a broker published")
}

// accept stores a transfer as POST does.
func (d *desk) accept() transferView {
	d.t.Helper()
	o := newOrder()
	return d.acceptOf(newTransfer{Source: o.source, Destination: o.destination, Money: contract.Money{Minor: 2500, Currency: "EUR"}}, nil)
}

func (d *desk) acceptOf(asked newTransfer, key *string) transferView {
	d.t.Helper()
	a, err := newAccepted(d.t.Context(), asked, key)
	if err != nil {
		d.t.Fatal(err)
	}
	t, _, err := intakeOf(d.db).accept(d.t.Context(), a)
	if err != nil {
		d.t.Fatal(err)
	}
	return viewOf(t)
}

func (d *desk) find(id uuid.UUID) transferView {
	d.t.Helper()
	t, err := d.store.find(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return viewOf(t)
}

// outgoing are the types of the messages about each transfer that wait to be sent, in order.
func (d *desk) outgoing() map[uuid.UUID][]string {
	d.t.Helper()
	rows, err := d.db.Query(d.t.Context(), `select correlation_id::uuid, type from outbox order by id`)
	if err != nil {
		d.t.Fatal(err)
	}
	types := map[uuid.UUID][]string{}
	var id uuid.UUID
	var messageType string
	_, err = pgx.ForEachRow(rows, []any{&id, &messageType}, func() error {
		types[id] = append(types[id], messageType)
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return types
}

// hear gives the handler one batch and returns the class of each message's error, "" for those that are done.
func (d *desk) hear(events ...event) []retry.Class {
	d.t.Helper()
	batch := make([]*messaging.Message, len(events))
	for i, e := range events {
		envelope, err := messaging.Decode(e.body())
		if err != nil {
			d.t.Fatal(err)
		}
		batch[i] = &messaging.Message{Envelope: envelope, Queue: contract.AccountEventsQueue, Attempt: 1}
	}
	each, whole := d.handle(d.t.Context(), batch)
	if whole != nil {
		d.t.Fatalf("the batch failed as a whole: %v", whole)
	}
	classes := make([]retry.Class, len(each))
	for i, err := range each {
		classes[i] = retry.ClassOf(err)
	}
	return classes
}

func (d *desk) wants(got []retry.Class, want ...retry.Class) {
	d.t.Helper()
	if !slices.Equal(got, want) {
		d.t.Errorf("classes are %q, want %q", got, want)
	}
}

// Every event of a transfer comes three times, twice as a copy and once under a new messageId, in every order there is. What counts is
// which events there are and which came first; the other copies change nothing and send nothing.
func TestEveryEventThriceInEveryOrder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	type run struct {
		transfer transferView
		told     []event
		first    []lifecycle.Fact // in the order of their first copies
	}
	var runs []*run
	for _, types := range [][]string{
		{contract.AccountDebited, contract.AccountCredited},
		{contract.AccountDebited, contract.AccountCreditRejected, contract.AccountRefunded},
		{contract.AccountDebitRejected},
	} {
		for _, order := range orders(len(types), 3) {
			r := &run{transfer: d.accept()}
			copies := make([][]event, len(types))
			for i, messageType := range types {
				e := tells(r.transfer, messageType)
				copies[i] = []event{e, e, e.again()}
			}
			for _, i := range order {
				if len(copies[i]) == 3 {
					fact, _ := lifecycle.FactOf(types[i])
					r.first = append(r.first, fact)
				}
				r.told = append(r.told, copies[i][0])
				copies[i] = copies[i][1:]
			}
			runs = append(runs, r)
		}
	}
	t.Logf("%d orders", len(runs))

	// The n-th messages of all transfers together, in batches as a consumer makes them.
	for n := range 9 {
		var wave []event
		for _, r := range runs {
			if n < len(r.told) {
				wave = append(wave, r.told[n])
			}
		}
		for batch := range slices.Chunk(wave, 64) {
			for i, class := range d.hear(batch...) {
				if class != "" {
					t.Fatalf("%s failed with %s", batch[i].body(), class)
				}
			}
		}
	}

	outgoing := d.outgoing()
	for _, r := range runs {
		want, said := lifecycle.Request(r.transfer.ID, r.transfer.SourceAccountID, r.transfer.DestinationAccountID, contract.Money{Minor: 2500, Currency: "EUR"})
		types, facts := []string{said.Type}, []string{"REQUESTED"}
		for _, fact := range r.first {
			step, err := want.Learn(fact, "")
			if err != nil {
				t.Fatal(err)
			}
			facts = append(facts, fact.String())
			if step.Message != nil {
				types = append(types, step.Message.Type)
			}
		}
		slices.Sort(facts)
		got := d.find(r.transfer.ID)
		if got.Status != want.Status() || !got.Status.Terminal() {
			t.Errorf("%v: status %s, want %s", r.first, got.Status, want.Status())
		}
		if !slices.Equal(got.facts(), facts) {
			t.Errorf("%v: facts %v, want %v", r.first, got.facts(), facts)
		}
		if sent := outgoing[r.transfer.ID]; !slices.Equal(sent, types) {
			t.Errorf("%v: sent %v, want %v", r.first, sent, types)
		}
	}
}

// orders are all orders of n different things that come the same number of times each.
func orders(n, times int) [][]int {
	left := slices.Repeat([]int{times}, n)
	var all [][]int
	var extend func(prefix []int)
	extend = func(prefix []int) {
		if len(prefix) == n*times {
			all = append(all, slices.Clone(prefix))
			return
		}
		for i := range left {
			if left[i] > 0 {
				left[i]--
				extend(append(prefix, i))
				left[i]++
			}
		}
	}
	extend(nil)
	return all
}

// A message that contradicts what is known is refused for itself: the transfer stays as it was, and so do the others in its batch.
func TestContradictionsChangeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	completed, rejected, refused, refunded := d.accept(), d.accept(), d.accept(), d.accept()
	d.wants(d.hear(
		tells(completed, contract.AccountDebited), tells(completed, contract.AccountCredited),
		tells(rejected, contract.AccountDebitRejected),
		tells(refused, contract.AccountDebited), tells(refused, contract.AccountCreditRejected),
		tells(refunded, contract.AccountDebited), tells(refunded, contract.AccountRefunded),
	), "", "", "", "", "", "", "")
	open := d.accept()
	with := func(e event, old, new string) event {
		changed := strings.Replace(e.Data, old, new, 1)
		if changed == e.Data {
			t.Fatalf("%s does not contain %s", e.Data, old)
		}
		e.Data = changed
		return e
	}
	debited, credited := tells(open, contract.AccountDebited), tells(open, contract.AccountCredited)
	for name, e := range map[string]event{
		"credited after refunded":             tells(refunded, contract.AccountCredited),
		"refunded after credited":             tells(completed, contract.AccountRefunded),
		"debit rejected after debited":        tells(refused, contract.AccountDebitRejected),
		"debited after debit rejected":        tells(rejected, contract.AccountDebited),
		"credited after debit rejected":       tells(rejected, contract.AccountCredited),
		"credit rejected after debit refused": tells(rejected, contract.AccountCreditRejected),
		"refunded after debit rejected":       tells(rejected, contract.AccountRefunded),
		"credited after credit rejected":      tells(refused, contract.AccountCredited),
		"credit rejected after credited":      tells(completed, contract.AccountCreditRejected),
		"another amount":                      with(debited, "2500", "2501"),
		"another currency":                    with(debited, "EUR", "USD"),
		"no amount":                           with(debited, `"amountMinor":2500,`, ""),
		"no currency":                         with(debited, `,"currency":"EUR"`, ""),
		"debited from the destination":        with(debited, open.SourceAccountID.String(), open.DestinationAccountID.String()),
		"credited to the source":              with(credited, open.DestinationAccountID.String(), open.SourceAccountID.String()),
		"an account that is no UUID":          with(debited, open.SourceAccountID.String(), "somebody"),
		"no account":                          with(debited, `"accountId":"`+open.SourceAccountID.String()+`",`, ""),
		"refusal without an account":          {uuid.NewString(), contract.AccountDebitRejected, fmt.Sprintf(`{"transferId":%q}`, open.ID)},
	} {
		before := d.everything()
		neighbour := d.accept()
		d.wants(d.hear(tells(neighbour, contract.AccountDebited), e, tells(neighbour, contract.AccountCredited)), "", retry.Invariant, "")
		d.wants(d.hear(e), retry.Invariant) // delivered again: refused again, not taken for a duplicate
		if got := d.find(neighbour.ID).Status; got != lifecycle.StatusCompleted {
			t.Errorf("%s: the neighbour is %s", name, got)
		}
		d.forget(neighbour.ID)
		if after := d.everything(); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: before\n%v\nafter\n%v", name, before, after)
		}
	}
}

// everything is the content of all tables that tell of transfers.
func (d *desk) everything() []string {
	d.t.Helper()
	var lines []string
	for _, query := range []string{
		`select t::text from transfers t order by id`,
		`select f::text from facts f order by transfer_id, fact`,
		`select message_id || type || body from outbox order by message_id`,
		`select message_id from inbox order by message_id`,
	} {
		var some []string
		if err := d.db.QueryRow(d.t.Context(), `select coalesce(array_agg(line), '{}') from (`+query+`) as q (line)`).Scan(&some); err != nil {
			d.t.Fatal(err)
		}
		lines = append(lines, some...)
	}
	return lines
}

// forget removes a transfer and all that was said about it.
func (d *desk) forget(id uuid.UUID) {
	d.t.Helper()
	for _, statement := range []string{
		`delete from inbox where message_id in (select message_id from facts where transfer_id = $1)`,
		`delete from outbox where correlation_id = $1::text`,
		`delete from facts where transfer_id = $1`,
		`delete from transfers where id = $1`,
	} {
		if _, err := d.db.Exec(d.t.Context(), strings.ReplaceAll(statement, "$1::text", "$1::uuid::text"), id); err != nil {
			d.t.Fatal(err)
		}
	}
}

// What is demanded of an event comes in an order, so that the same body always fails in the same way.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	known := d.accept()
	for name, c := range map[string]struct {
		messageType, data string
		want              retry.Class
	}{
		"exercise 1":                    {contract.AccountDebited, `{"transferId":"not-a-real-id"}`, retry.NotFound},
		"unknown transfer":              {contract.AccountDebited, fmt.Sprintf(`{"transferId":%q}`, uuid.NewString()), retry.NotFound},
		"the id of nothing":             {contract.AccountDebited, `{"transferId":"00000000-0000-0000-0000-000000000000"}`, retry.NotFound},
		"an empty id":                   {contract.AccountDebited, `{"transferId":""}`, retry.NotFound},
		"no id":                         {contract.AccountDebited, `{"accountId":"a","amountMinor":1,"currency":"EUR"}`, retry.Validation},
		"an id that is a number":        {contract.AccountDebited, `{"transferId":7}`, retry.Validation},
		"an id that is null":            {contract.AccountDebited, `{"transferId":null}`, retry.Validation},
		"an id in another letter case":  {contract.AccountDebited, fmt.Sprintf(`{"transferID":%q}`, known.ID), retry.Validation},
		"a text amount, unknown id":     {contract.AccountDebited, `{"transferId":"not-a-real-id","amountMinor":"1"}`, retry.Validation},
		"a text amount where none is":   {contract.AccountDebitRejected, fmt.Sprintf(`{"transferId":%q,"accountId":%q,"amountMinor":"1"}`, known.ID, known.SourceAccountID), retry.Validation},
		"data that is a list":           {contract.AccountDebited, `[]`, retry.Validation},
		"data that is null":             {contract.AccountDebited, `null`, retry.Validation},
		"a member twice":                {contract.AccountDebited, fmt.Sprintf(`{"transferId":%[1]q,"transferId":%[1]q}`, known.ID), retry.Validation},
		"nothing but the id":            {contract.AccountDebited, fmt.Sprintf(`{"transferId":%q}`, known.ID), retry.Invariant},
		"a reason that cannot be kept":  {contract.AccountDebitRejected, fmt.Sprintf(`{"transferId":%q,"accountId":%q,"reason":"a\u0000b"}`, known.ID, known.SourceAccountID), retry.Validation},
		"a reason without end":          {contract.AccountDebitRejected, fmt.Sprintf(`{"transferId":%q,"accountId":%q,"reason":%q}`, known.ID, known.SourceAccountID, strings.Repeat("x", 201)), retry.Validation},
		"a known type of another queue": {contract.TransferRequested, fmt.Sprintf(`{"transferId":%q}`, known.ID), retry.Validation},
		"an unknown type":               {"Accounts.Account.Merged", fmt.Sprintf(`{"transferId":%q}`, known.ID), retry.Validation},
		"a type in another letter case": {"accounts.account.debited", fmt.Sprintf(`{"transferId":%q}`, known.ID), retry.Validation},
	} {
		envelope, err := messaging.Decode(event{uuid.NewString(), c.messageType, c.data}.body())
		if err != nil { // found while decoding, which is the first check
			if class := retry.ClassOf(err); class != c.want {
				t.Errorf("%s: %s, want %s", name, class, c.want)
			}
			continue
		}
		m := &messaging.Message{Envelope: envelope, Queue: contract.AccountEventsQueue, Attempt: 1}
		for range 2 {
			each, whole := d.handle(t.Context(), []*messaging.Message{m})
			if whole != nil {
				t.Fatalf("%s: %v", name, whole)
			}
			if class := retry.ClassOf(each[0]); class != c.want {
				t.Errorf("%s: %s (%v), want %s", name, class, each[0], c.want)
			}
		}
	}
	if got := d.find(known.ID); got.Status != lifecycle.StatusRequested || len(got.Timeline) != 1 {
		t.Errorf("the transfer has become %s with %d facts", got.Status, len(got.Timeline))
	}
}

func TestSameMessageIDWithAnotherPayloadIsAContradiction(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, second := d.accept(), d.accept()
	e := tells(first, contract.AccountDebited)
	d.wants(d.hear(e), "")
	forged := tells(second, contract.AccountDebited)
	forged.MessageID = e.MessageID
	d.wants(d.hear(forged, tells(first, contract.AccountCredited)), retry.Invariant, "")
	d.wants(d.hear(e), "") // the real one is still a duplicate
	if got := d.find(second.ID).Status; got != lifecycle.StatusRequested {
		t.Errorf("the forged event made the other transfer %s", got)
	}
	if got := d.find(first.ID).Status; got != lifecycle.StatusCompleted {
		t.Errorf("the transfer is %s", got)
	}
}

// The reason of a transfer is that of the first fact that turned it back; a completed one has none.
func TestReason(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	rejected, refunded, completed := d.accept(), d.accept(), d.accept()
	d.wants(d.hear(tells(rejected, contract.AccountDebitRejected),
		tells(refunded, contract.AccountDebited), tells(refunded, contract.AccountCreditRejected), tells(refunded, contract.AccountRefunded),
		tells(completed, contract.AccountDebited), tells(completed, contract.AccountCredited)), "", "", "", "", "", "")
	for _, c := range []struct {
		id   uuid.UUID
		want string
	}{{rejected.ID, contract.InsufficientFunds}, {refunded.ID, contract.AccountFrozen}, {completed.ID, ""}} {
		got := d.find(c.id)
		if reason := pointee(got.Reason); reason != c.want {
			t.Errorf("%s has the reason %q, want %q", got.Status, reason, c.want)
		}
		if !got.UpdatedAt.After(got.CreatedAt) || time.Since(got.UpdatedAt) > patience {
			t.Errorf("%s was updated at %s, created at %s", got.Status, got.UpdatedAt, got.CreatedAt)
		}
	}
}

func pointee(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
