package service_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/banking/pkg/service"
	"go.uber.org/goleak"
)

// patience is how long tests wait for what should come at once; a busy machine may need some of it.
const patience = 30 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// diary notes what happens in which order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, " ")
}

// steady runs until it is told to stop and notes when it ended.
func steady(d *diary, name string, started chan<- struct{}) service.Component {
	return service.Component{Name: name, Run: func(ctx context.Context) error {
		started <- struct{}{}
		<-ctx.Done()
		d.note(name)
		return nil
	}}
}

func await(t *testing.T, n int, signals <-chan struct{}) {
	t.Helper()
	deadline := time.After(patience)
	for range n {
		select {
		case <-signals:
		case <-deadline:
			t.Fatal("waited in vain")
		}
	}
}

func result(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("Run did not return")
		return nil
	}
}

func runAsync(ctx context.Context, grace time.Duration, components ...service.Component) <-chan error {
	done := make(chan error, 1)
	go func() { done <- service.Run(ctx, grace, quiet, components...) }()
	return done
}

func TestRunStopsInReverseOrder(t *testing.T) {
	t.Parallel()
	for range 20 {
		var d diary
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan struct{}, 3)
		done := runAsync(ctx, patience, steady(&d, "session", started), steady(&d, "relay", started), steady(&d, "http", started))
		await(t, 3, started)
		cancel()
		if err := result(t, done); err != nil {
			t.Fatal(err)
		}
		if got := d.String(); got != "http relay session" {
			t.Fatalf("stopped in the order %s", got)
		}
	}
}

func TestRunEndsWhenAComponentDoes(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, test := range []struct {
		name string
		run  func(context.Context) error
		want string
	}{
		{"with an error", func(context.Context) error { return broken }, "relay: broken"},
		{"without one", func(context.Context) error { return nil }, "relay: ended without being told to"},
		{"in a panic", func(context.Context) error { panic("oh") }, "relay: panic: oh"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var d diary
			started := make(chan struct{}, 2)
			err := result(t, runAsync(t.Context(), patience,
				steady(&d, "session", started), service.Component{Name: "relay", Run: test.run}, steady(&d, "http", started)))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			await(t, 2, started)
			if got := d.String(); got != "http session" {
				t.Errorf("stopped %s", got)
			}
		})
	}
	if err := service.Run(t.Context(), patience, quiet, service.Component{Name: "a", Run: func(context.Context) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("%v does not wrap the component's error", err)
	}
}

func TestRunNamesWhatDoesNotStop(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	stuckEnded, sessionEnded := make(chan struct{}), make(chan struct{})
	var d diary
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 3)
	session := service.Component{Name: "session", Run: func(ctx context.Context) error {
		defer close(sessionEnded)
		started <- struct{}{}
		<-ctx.Done()
		return nil
	}}
	done := runAsync(ctx, 50*time.Millisecond, session, service.Component{Name: "stuck", Run: func(context.Context) error {
		defer close(stuckEnded)
		started <- struct{}{}
		<-release
		return nil
	}}, steady(&d, "http", started))
	await(t, 3, started)
	cancel()
	err := result(t, done)
	if err == nil || !strings.HasPrefix(err.Error(), "did not stop within 50ms: ") || !strings.HasSuffix(err.Error(), "stuck") {
		t.Errorf("got %v", err)
	}
	// The one below it was told to stop all the same, though its turn never came.
	await(t, 1, sessionEnded)
	close(release)
	await(t, 1, stuckEnded)
}

func TestRunReportsWhatWentWrongWhileStopping(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	done := runAsync(ctx, patience,
		service.Component{Name: "cancelled", Run: cancelled},
		service.Component{Name: "failing", Run: func(ctx context.Context) error { cancel(); <-ctx.Done(); return errors.New("close failed") }})
	if err := result(t, done); err == nil || err.Error() != "stop failing: close failed" {
		t.Errorf("got %v", err)
	}
}

func TestRunHoldsBackWhatStartsAfter(t *testing.T) {
	t.Parallel()
	migrated := make(chan struct{})
	var d diary
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 1)
	late := steady(&d, "late", started)
	late.After = migrated
	never := service.Component{Name: "never", After: make(chan struct{}), Run: func(context.Context) error { return errors.New("started") }}
	done := runAsync(ctx, patience, late, never)
	select {
	case <-started:
		t.Error("started before what it waits for")
	case <-time.After(20 * time.Millisecond): // it has nothing to start for
	}
	close(migrated)
	await(t, 1, started)
	cancel()
	if err := result(t, done); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestRunSurvivesMisuse(t *testing.T) {
	t.Parallel()
	if err := service.Run(t.Context(), patience, quiet, service.Component{Name: "empty"}); err == nil {
		t.Error("a component without Run was accepted")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	neverStarts := service.Component{Name: "a", Run: func(context.Context) error { return errors.New("started") }}
	if err := result(t, runAsync(ended, patience, neverStarts)); err != nil {
		t.Errorf("an ended context: %v", err)
	}
	if err := result(t, runAsync(ended, patience)); err != nil {
		t.Errorf("no components: %v", err)
	}
}

func TestMain(m *testing.M) {
	if asService() {
		return
	}
	goleak.VerifyTestMain(m)
}
