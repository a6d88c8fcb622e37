package drill

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"example.com/banking/exercises/variants/toybank"
	"example.com/banking/internal/testenv"
	"github.com/jackc/pgx/v5"
)

// programs are the real ones, built once.
var programs = sync.OnceValues(func() (dir string, err error) {
	dir, _, err = Programs(context.Background())
	return dir, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := programs(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func config(t *testing.T) Config {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	env := testenv.New(t)
	return Config{AMQPURL: env.AMQPURL, DatabaseURL: env.Database(t, "account"), Programs: dir, Say: t.Logf}
}

// The exercise as people have it: each wrong form drifts by what was at stake, each right form by nothing, and nothing is left behind.
func TestWrongVariantsDriftAndRightOnesDoNot(t *testing.T) {
	t.Parallel()
	c := config(t)
	reports, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) != 4 {
		t.Errorf("%d variants were shown, want 4", len(reports))
	}
	for _, r := range reports {
		if s := r.Wrong.Spin; s != nil && (s.Handled != 0 || s.PerSecond() <= 0 || s.CPU <= 0) {
			t.Errorf("%s: %+v, want nothing handled behind a message that spins", r.Name, *s)
		}
	}
	expectNothingLeft(t, c)
}

// Without its fault a wrong form does its work like any other, which is why it gets through a review. The drill must not take that for
// a demonstration.
func TestWithoutTheFaultNothingIsShown(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			wrong, err := (&stage{Config: c, Variant: v}).play(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if wrong.Drift() != 0 {
				t.Errorf("without the fault the wrong form drifts by %s", toybank.Euros(wrong.Drift()))
			}
			right := Outcome{Books: wrong.Books, Killed: v.rightStop}
			if err := (Report{Variant: v, Wrong: wrong, Right: right}).Check(); !errors.Is(err, ErrNoFault) {
				t.Errorf("Check() = %v, want %v", err, ErrNoFault)
			}
		})
	}
}

// With the forms' programs exchanged the drill must notice both: a "wrong" form that is killed and loses nothing, a "right" one that drifts.
func TestExchangedFormsAreNoticed(t *testing.T) {
	t.Parallel()
	v := variants[0]
	c := config(t)
	wrong, err := (&stage{Config: c, Variant: v, fault: true, swapped: true}).play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	right, err := (&stage{Config: c, Variant: v, fault: true, right: true, swapped: true}).play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := (Report{Variant: v, Wrong: wrong, Right: wrong}).Check(); !errors.Is(err, ErrNoFault) {
		t.Errorf("Check() of a wrong form that loses nothing = %v, want %v", err, ErrNoFault)
	}
	if err := (Report{Variant: v, Wrong: right, Right: right}).Check(); err == nil || !strings.Contains(err.Error(), "right form drifts by -25.00") {
		t.Errorf("Check() of a right form that loses 25.00 = %v", err)
	}
	other := right
	other.Bob--
	if err := (Report{Variant: v, Wrong: other, Right: wrong}).Check(); err == nil || !strings.Contains(err.Error(), "at stake") {
		t.Errorf("Check() of a wrong form that loses 25.01 = %v", err)
	}
}

// Whoever breaks the drill off finds nothing of it afterwards, and can begin again.
func TestBrokenOffDrillLeavesNothing(t *testing.T) {
	t.Parallel()
	c := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.Say = func(format string, args ...any) {
		t.Logf(format, args...)
		if strings.Contains(format, "kill -9") {
			cancel()
		}
	}
	if _, err := Run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v, want %v", err, context.Canceled)
	}
	expectNothingLeft(t, c)
}

func TestSecondDrillIsRefused(t *testing.T) {
	t.Parallel()
	c := config(t)
	release, err := claim(t.Context(), c.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "running already") {
		t.Errorf("Run() beside another = %v", err)
	}
	release()
	again, err := claim(t.Context(), c.DatabaseURL)
	if err != nil {
		t.Fatalf("claim after the release: %v", err)
	}
	again()
}

func expectNothingLeft(t *testing.T, c Config) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var schemas int
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_namespace where nspname like 'drill%'`).Scan(&schemas); err != nil {
		t.Fatal(err)
	}
	if schemas != 0 {
		t.Errorf("%d schemas are left", schemas)
	}
}
