package exercises

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"example.com/banking/internal/control"
	"example.com/banking/internal/supervise"
)

// slowKeeper keeps RabbitMQ. Who has told it to stop gets no answer before the end of the order, which comes when it was looked at twice.
type slowKeeper struct {
	mu    sync.Mutex
	now   control.Process
	looks int
	told  []control.Verb
	given func() // an order has arrived; may be nil
}

func (k *slowKeeper) Processes() []control.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	shown := k.now
	if k.looks++; k.looks == 2 && k.now.Ordered {
		k.now = control.Process{Name: k.now.Name, State: control.Stopped}
	}
	return []control.Process{shown}
}

func (k *slowKeeper) Act(_ context.Context, _ string, verb control.Verb, _ map[string]string) (control.Process, error) {
	if k.given != nil {
		k.given()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, verb)
	k.now.State = map[control.Verb]control.State{control.Stop: control.Stopped, control.Start: control.Running}[verb]
	return k.now, nil
}

func (k *slowKeeper) serve(t *testing.T) *run {
	t.Helper()
	mux := http.NewServeMux()
	control.Register(mux, k)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &run{Bank: &Bank{}, report: func(Event) {}, control: control.NewClient(server.URL, "")}
}

// While it is still being stopped, RabbitMQ is told to be running. Who believed that would leave it stopped.
func TestPuttingBackWaitsForAnOpenOrder(t *testing.T) {
	t.Parallel()
	k := &slowKeeper{now: control.Process{Name: "rabbitmq", State: control.Running, Ordered: true}}
	if err := k.serve(t).usual(t.Context(), "rabbitmq"); err != nil {
		t.Error(err)
	}
	if !k.now.Usual() || !slices.Equal(k.told, []control.Verb{control.Start}) {
		t.Errorf("told %v, RabbitMQ is %+v", k.told, k.now)
	}
}

// A killed run of exercise 8 leaves PostgreSQL stopped. The lock of the next one lies in there, so it is put back before that is asked for;
// but not while the first run still goes on, which holds the lock in the folder.
func TestPostgresIsPutBackBeforeItsLockIsTaken(t *testing.T) {
	t.Parallel()
	k := &slowKeeper{now: control.Process{Name: "postgres", State: control.Stopped}}
	r := k.serve(t)
	r.LockFile, r.TransferDatabaseURL = filepath.Join(t.TempDir(), "exercise.lock"), "postgres://127.0.0.1:1/none"
	first, err := supervise.TryLock(r.LockFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.lock(t.Context()); !errors.Is(err, ErrBusy) || len(k.told) > 0 {
		t.Errorf("beside another run: %v, told %v", err, k.told)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.lock(t.Context()); err == nil || errors.Is(err, ErrBusy) { // there is none behind the address
		t.Errorf("after it: %v", err)
	}
	if !k.now.Usual() || !slices.Equal(k.told, []control.Verb{control.Start}) {
		t.Errorf("told %v, PostgreSQL is %+v", k.told, k.now)
	}
}

// An interruption does not leave an order behind that is carried out later.
func TestAnInterruptedRunWaitsForItsOrder(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	k := &slowKeeper{now: control.Process{Name: "rabbitmq", State: control.Running}, given: interrupt}
	r := k.serve(t)
	p, err := r.order(ctx, "rabbitmq", control.Stop, nil)
	if p.State != control.Stopped || err == nil {
		t.Errorf("interrupted while it stopped: %+v, %v", p, err)
	}
	if _, err := r.order(ctx, "rabbitmq", control.Start, nil); err == nil || len(k.told) != 1 {
		t.Errorf("after the interruption: %v, told %v", err, k.told)
	}
}
