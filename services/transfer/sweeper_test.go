package main

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/banking/pkg/contract"
	"example.com/banking/services/transfer/lifecycle"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// sweeper is one that sees the future: everything there is now is older than its timeout.
func (d *desk) sweeper(batch int) *sweeper {
	later := func() time.Time { return now().Add(time.Hour) }
	return &sweeper{pool: d.db, outbox: d.outbox, timeout: time.Minute, interval: time.Minute, batch: batch, now: later, log: quiet(),
		overdue: newOverdue(prometheus.NewRegistry())}
}

func (d *desk) round(s *sweeper) {
	d.t.Helper()
	if err := s.round(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
}

func TestSweeperTurnsBackWhatIsOverdue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	requested, debited, refunding, completed := d.accept(), d.accept(), d.accept(), d.accept()
	d.wants(d.hear(tells(debited, contract.AccountDebited),
		tells(refunding, contract.AccountDebited), tells(refunding, contract.AccountCreditRejected),
		tells(completed, contract.AccountDebited), tells(completed, contract.AccountCredited)), "", "", "", "", "")
	young := d.sweeper(10)
	young.now = now
	never := d.sweeper(10)
	never.timeout = 0
	patient := d.sweeper(10)
	patient.timeout = 1_000_000 * time.Hour // begins before there were ids
	d.round(young)
	d.round(never)
	d.round(patient)
	if got := d.find(requested.ID).Status; got != lifecycle.StatusRequested {
		t.Fatalf("a transfer that is not overdue became %s", got)
	}

	s := d.sweeper(10)
	d.round(s)
	d.round(s) // a second round finds nothing
	outgoing := d.outgoing()
	for _, c := range []struct {
		transfer transferView
		status   lifecycle.Status
		reason   string
		sent     []string
	}{
		{requested, lifecycle.StatusRefunding, contract.TimedOut,
			[]string{contract.TransferRequested, contract.TransferRefundRequested}},
		{debited, lifecycle.StatusRefunding, contract.TimedOut,
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested}},
		{refunding, lifecycle.StatusRefunding, contract.AccountFrozen,
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferRefundRequested}},
		{completed, lifecycle.StatusCompleted, "",
			[]string{contract.TransferRequested, contract.TransferCreditRequested, contract.TransferCompleted}},
	} {
		got := d.find(c.transfer.ID)
		if got.Status != c.status || pointee(got.Reason) != c.reason {
			t.Errorf("transfer is %s (%s), want %s (%s)", got.Status, pointee(got.Reason), c.status, c.reason)
		}
		if sent := outgoing[c.transfer.ID]; !slices.Equal(sent, c.sent) {
			t.Errorf("%s: sent %v, want %v", c.status, sent, c.sent)
		}
	}
	for _, overdue := range []transferView{requested, debited, refunding} {
		timeline := d.find(overdue.ID).Timeline
		last := timeline[len(timeline)-1]
		if last.Fact != "TIMED_OUT" || last.MessageID != contract.Say(overdue.ID, contract.TransferRefundRequested, contract.Data{}).ID.String() {
			t.Errorf("the timeline ends with %+v", last)
		}
	}
	if n, err := s.sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("%d transfers were timed out again (%v)", n, err)
	}
}

// After a timeout it is account that decides: the credit may have won, the debit may never have been, or the money comes back.
func TestAfterTheTimeoutAccountDecides(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	credited, cancelled, refunded := d.accept(), d.accept(), d.accept()
	d.wants(d.hear(tells(credited, contract.AccountDebited), tells(refunded, contract.AccountDebited)), "", "")
	d.round(d.sweeper(10))
	refusal := tells(cancelled, contract.AccountDebitRejected)
	d.wants(d.hear(tells(credited, contract.AccountCredited), refusal, tells(refunded, contract.AccountRefunded)), "", "", "")
	for _, c := range []struct {
		transfer transferView
		status   lifecycle.Status
		reason   string
		facts    []string
	}{
		{credited, lifecycle.StatusCompleted, "", []string{"CREDITED", "DEBITED", "REQUESTED", "TIMED_OUT"}},
		{cancelled, lifecycle.StatusRejected, contract.TimedOut, []string{"DEBIT_REJECTED", "REQUESTED", "TIMED_OUT"}},
		{refunded, lifecycle.StatusRefunded, contract.TimedOut, []string{"DEBITED", "REFUNDED", "REQUESTED", "TIMED_OUT"}},
	} {
		got := d.find(c.transfer.ID)
		if got.Status != c.status || pointee(got.Reason) != c.reason || !slices.Equal(got.facts(), c.facts) {
			t.Errorf("transfer is %s (%s) by %v, want %s (%s) by %v", got.Status, pointee(got.Reason), got.facts(), c.status, c.reason, c.facts)
		}
	}
}

// Turned back is not yet ended: a transfer is overdue until account has answered.
func TestOverdueTransfersAreCounted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	s := d.sweeper(10)
	counts := func(what string, want float64) {
		t.Helper()
		if err := s.count(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := testutil.ToFloat64(s.overdue); got != want {
			t.Fatalf("%s: %v overdue, want %v", what, got, want)
		}
	}
	counts("none at all", 0)
	first, second, ended := d.accept(), d.accept(), d.accept()
	d.wants(d.hear(tells(ended, contract.AccountDebitRejected)), "")
	counts("open", 2)
	d.round(s)
	counts("turned back", 2)
	d.wants(d.hear(tells(first, contract.AccountDebitRejected)), "")
	counts("one has ended", 1)
	d.wants(d.hear(tells(second, contract.AccountDebited), tells(second, contract.AccountRefunded)), "", "")
	counts("all have", 0)
	d.accept()
	s.now = now
	counts("not yet overdue", 0)
}

func TestTwoSweepersShareNothingTwice(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const overdue = 250
	var ids []uuid.UUID
	for range overdue {
		ids = append(ids, d.accept().ID)
	}
	var swept atomic.Int64
	deadline := time.Now().Add(patience)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			s := d.sweeper(20)
			for swept.Load() < overdue && time.Now().Before(deadline) {
				n, err := s.sweep(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				swept.Add(int64(n))
			}
		})
	}
	wg.Wait()
	if swept.Load() != overdue {
		t.Errorf("%d transfers were swept, want %d", swept.Load(), overdue)
	}
	want := []string{contract.TransferRequested, contract.TransferRefundRequested}
	outgoing := d.outgoing()
	for _, id := range ids {
		if sent := outgoing[id]; !slices.Equal(sent, want) {
			t.Fatalf("sent %v, want %v", sent, want)
		}
	}
}

func TestOneSweeperIsActive(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.accept()
	tx, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // done already when all is well
	var active bool
	if err := tx.QueryRow(t.Context(), becomeSweeper).Scan(&active); err != nil || !active {
		t.Fatalf("active %v, %v", active, err)
	}
	if n, err := d.sweeper(10).sweep(t.Context()); err != nil || n != 0 {
		t.Errorf("a second sweeper swept %d (%v)", n, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := d.sweeper(10).sweep(t.Context()); err != nil || n != 1 {
		t.Errorf("the sweeper that followed swept %d (%v)", n, err)
	}
}

func TestSweeperDoesNotWaitForAConsumer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	busy, idle := d.accept(), d.accept()
	tx, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }() // done already when all is well
	if _, err := tx.Exec(t.Context(), lockTransfers, []uuid.UUID{busy.ID}); err != nil {
		t.Fatal(err)
	}
	d.round(d.sweeper(10))
	if got := d.find(idle.ID).Status; got != lifecycle.StatusRefunding {
		t.Errorf("the idle transfer is %s", got)
	}
	if got := d.find(busy.ID).Status; got != lifecycle.StatusRequested {
		t.Errorf("the busy transfer is %s", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.round(d.sweeper(10))
	if got := d.find(busy.ID).Status; got != lifecycle.StatusRefunding {
		t.Errorf("the transfer that was busy is %s", got)
	}
}

// Folding the counts into one row each changes no sum, also while transfers end.
func TestFoldingKeepsTheCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const each = 150 // one row each: batches of one
	ended := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		s := d.sweeper(1)
		s.timeout = 0
		for {
			err := s.round(t.Context())
			select {
			case <-ended:
				failed <- errors.Join(err, s.round(t.Context()))
				return
			default:
			}
			if err != nil {
				failed <- err
				return
			}
		}
	}()
	for range each {
		completed, rejected := d.accept(), d.accept()
		d.hear(tells(completed, contract.AccountDebited), tells(completed, contract.AccountCredited))
		d.hear(tells(rejected, contract.AccountDebitRejected))
	}
	close(ended)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := d.db.QueryRow(t.Context(), `select count(*) from outcome_counts`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if rows >= 2*each {
		t.Errorf("%d increments were never folded", rows)
	}
	got, err := d.store.summary(t.Context())
	want := map[lifecycle.Status]int64{lifecycle.StatusCompleted: each, lifecycle.StatusRejected: each}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("summary is %v (%v), want %v", got, err, want)
	}
}
