package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/banking/pkg/contract"
	"github.com/google/uuid"
)

// ask makes a request for a transfer; key "" is none.
func (d *desk) ask(amount int64, key string) *asking {
	d.t.Helper()
	asked := newTransfer{Source: uuid.New(), Destination: uuid.New(), Money: contract.Money{Minor: amount, Currency: "EUR"}}
	var given *string
	if key != "" {
		given = &key
	}
	a, err := newAccepted(d.t.Context(), asked, given)
	if err != nil {
		d.t.Fatal(err)
	}
	return &asking{accepted: a, ctx: d.t.Context(), done: make(chan struct{})}
}

func (d *desk) count(query string, args ...any) (n int) {
	d.t.Helper()
	if err := d.db.QueryRow(d.t.Context(), query, args...).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// Requests that come while statements are under way share the next ones.
func TestRequestsShareStatements(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := intakeOf(d.db)
	lock, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(t.Context()) }()
	if _, err := lock.Exec(t.Context(), "lock table transfers in share mode"); err != nil {
		t.Fatal(err)
	}
	const requests = 40
	var clients sync.WaitGroup
	inTheQueue := func(atWork, waiting int) {
		eventually(t, fmt.Sprintf("%d statements are under way and %d requests wait", atWork, waiting), func() bool {
			i.mu.Lock()
			defer i.mu.Unlock()
			return i.atWork == atWork && len(i.waiting) == waiting
		})
	}
	for n := range requests {
		a := d.ask(int64(n+1), "")
		clients.Go(func() {
			if _, replayed, err := i.accept(t.Context(), a.accepted); err != nil || replayed {
				t.Errorf("request %d: replayed %v, %v", n, replayed, err)
			}
		})
		if n < intakeAtOnce {
			inTheQueue(n+1, 0)
		}
	}
	inTheQueue(intakeAtOnce, requests-intakeAtOnce)
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	if n := d.count("select count(distinct xmin::text) from transfers"); n > intakeAtOnce+1 {
		t.Errorf("%d transactions for %d requests", n, requests)
	}
	for _, table := range []string{"transfers", "facts", "outbox"} {
		if n := d.count("select count(*) from " + table); n != requests {
			t.Errorf("%d rows in %s, want %d", n, table, requests)
		}
	}
}

// A request that the database refuses fails alone.
func TestOneBadRequestFailsAlone(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	requests := []*asking{d.ask(1, ""), d.ask(0, ""), d.ask(3, "key")} // POST would not let 0 through
	intakeOf(d.db).storeAll(t.Context(), requests)
	for n, r := range requests {
		<-r.done
		if refused := n == 1; (r.err != nil) != refused || r.stored == refused {
			t.Errorf("request %d: stored %v, %v", n, r.stored, r.err)
		}
	}
	if n := d.count("select count(*) from transfers"); n != 2 || d.count("select count(*) from outbox") != 2 {
		t.Errorf("%d transfers", n)
	}
}

// Requests with one key in one statement: the first is stored, and the others learn of it.
func TestOneKeyTwiceInAStatement(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first, other := d.ask(1, "key"), d.ask(2, "key")
	again := &asking{accepted: first.accepted, ctx: t.Context(), done: make(chan struct{})}
	a, err := newAccepted(t.Context(), first.asked, first.key)
	if err != nil {
		t.Fatal(err)
	}
	again.accepted = a
	i := intakeOf(d.db)
	requests := []*asking{first, again, other, d.ask(3, "")}
	i.storeAll(t.Context(), requests)
	stored := slices.DeleteFunc(slices.Clone(requests[:3]), func(r *asking) bool { return !r.stored })
	if len(stored) != 1 || !requests[3].stored || d.count("select count(*) from transfers") != 2 || d.count("select count(*) from outbox") != 2 {
		t.Fatalf("%d of one key are stored", len(stored))
	}
	winner := stored[0]
	for _, r := range requests[:3] {
		found, err := i.store.replay(t.Context(), *r.key, r.asked.hash())
		if same := slices.Equal(r.asked.hash(), winner.asked.hash()); same && (err != nil || found.ID != winner.id) || !same && !errors.Is(err, errKeyReused) {
			t.Errorf("%v, %v", found.ID, err)
		}
	}
}

// Somebody else is storing a key and takes his time: who asks for the same key waits for that, his company does not.
func TestAKeyThatIsBeingStoredHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	other, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(t.Context()) }()
	if _, err := other.Exec(t.Context(), "insert into idempotency_keys values ('key', '', $1)", uuid.New()); err != nil {
		t.Fatal(err)
	}
	keyed, free := d.ask(1, "key"), d.ask(2, "")
	go intakeOf(d.db).storeAll(t.Context(), []*asking{keyed, free})
	<-free.done
	if free.err != nil || !free.stored {
		t.Errorf("stored %v, %v", free.stored, free.err)
	}
	select {
	case <-keyed.done:
		t.Errorf("it did not wait: %v", keyed.err)
	default:
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-keyed.done
	if keyed.err != nil || !keyed.stored {
		t.Errorf("stored %v, %v", keyed.stored, keyed.err)
	}
}

// Any number of clients that ask for a key which somebody else is storing leave the way free for all others.
func TestClientsThatWaitForAKeyHoldUpNobodyElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	other, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(t.Context()) }()
	if _, err := other.Exec(t.Context(), "insert into idempotency_keys values ('key', '', $1)", uuid.New()); err != nil {
		t.Fatal(err)
	}
	i := intakeOf(d.db)
	asked := d.ask(1, "key")
	var keyed sync.WaitGroup
	var stored, replayed atomic.Int64
	for range intakeAtOnce + intakeApart + 2 {
		a, err := newAccepted(t.Context(), asked.asked, asked.key)
		if err != nil {
			t.Fatal(err)
		}
		keyed.Go(func() {
			_, again, err := i.accept(t.Context(), a)
			switch {
			case err != nil:
				t.Error(err)
			case again:
				replayed.Add(1)
			default:
				stored.Add(1)
			}
		})
	}
	eventually(t, "as many wait for the key as may", func() bool { return len(i.apart) == intakeApart })
	if _, _, err := i.accept(t.Context(), d.ask(2, "").accepted); err != nil {
		t.Error(err)
	}
	if n := stored.Load() + replayed.Load(); n != 0 || len(i.apart) != intakeApart {
		t.Errorf("%d were answered before the key was free, %d wait for it", n, len(i.apart))
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	keyed.Wait()
	if stored.Load() != 1 || replayed.Load() != intakeAtOnce+intakeApart+1 {
		t.Errorf("%d are stored, %d are answered with that", stored.Load(), replayed.Load())
	}
}

// Statements that name the same keys in different orders do not wait for each other in a circle.
func TestKeysInAnyOrderDoNotDeadlock(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := intakeOf(d.db)
	var clients sync.WaitGroup
	for n := range 8 {
		clients.Go(func() {
			var requests []*asking
			for k := range 32 {
				requests = append(requests, d.ask(1, fmt.Sprint("key ", (k*(2*n+1))%32)))
			}
			i.storeAll(t.Context(), requests)
			for _, r := range requests {
				if r.err != nil {
					t.Error(r.err)
				}
			}
		})
	}
	clients.Wait()
	if n := d.count("select count(*) from transfers"); n != 32 || d.count("select count(*) from idempotency_keys") != 32 {
		t.Errorf("%d transfers of 32 keys", n)
	}
}

// Whoever has left before his request's turn came is not stored: he was told that it failed, may have asked again since, and a database that
// hangs must not fill the memory with what nobody waits for.
func TestWhoHasLeftIsNotStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	i := intakeOf(d.db)
	lock, err := d.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(t.Context()) }()
	if _, err := lock.Exec(t.Context(), "lock table transfers in share mode"); err != nil {
		t.Fatal(err)
	}
	inTheQueue := func(atWork, waiting int) {
		eventually(t, fmt.Sprintf("%d statements are under way and %d requests wait", atWork, waiting), func() bool {
			i.mu.Lock()
			defer i.mu.Unlock()
			return i.atWork == atWork && len(i.waiting) == waiting
		})
	}
	enter := func(ctx context.Context, clients *sync.WaitGroup, want error) {
		a := d.ask(1, "")
		clients.Go(func() {
			if _, _, err := i.accept(ctx, a.accepted); !errors.Is(err, want) {
				t.Errorf("answered %v, want %v", err, want)
			}
		})
	}
	var patient, impatient sync.WaitGroup
	for n := range intakeAtOnce {
		enter(t.Context(), &patient, nil)
		inTheQueue(n+1, 0)
	}
	ctx, leave := context.WithCancel(t.Context())
	for range 3 {
		enter(ctx, &impatient, context.Canceled)
	}
	enter(t.Context(), &patient, nil)
	inTheQueue(intakeAtOnce, 4)
	leave()
	impatient.Wait()
	i.mu.Lock()
	if n := len(i.waiting); n != 1 {
		t.Errorf("%d requests wait, of 1 whose client is there", n)
	}
	i.mu.Unlock()
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	patient.Wait()
	eventually(t, "nothing is under way", func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.atWork == 0
	})
	if n := d.count("select count(*) from transfers"); n != intakeAtOnce+1 {
		t.Errorf("%d transfers are stored, of %d whose clients were there", n, intakeAtOnce+1)
	}
}
