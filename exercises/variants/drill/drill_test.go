package drill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/banking/exercises/variants/toybank"
	"example.com/banking/internal/testenv"
	"github.com/jackc/pgx/v5"
)

// programs are the real ones, built once.
var (
	programs = sync.OnceValues(func() (dir string, err error) {
		dir, remove, err = Programs(context.Background())
		return dir, err
	})
	remove func()
)

func TestMain(m *testing.M) {
	code := m.Run()
	if remove != nil {
		remove()
	}
	os.Exit(code)
}

func config(t *testing.T) (Config, *testenv.Env) {
	t.Helper()
	dir, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	env := testenv.New(t)
	return Config{AMQPURL: env.AMQPURL, DatabaseURL: env.Database(t, "account"), Programs: dir,
		Say: func(sentence string) { t.Log(sentence) }, Heard: func(program, line string) { t.Logf("  %s | %s", program, line) }}, env
}

// Each wrong form drifts by what was at stake, each right form by nothing, just as the page shows it, and nothing is left behind.
func TestWrongVariantsDriftAndRightOnesDoNot(t *testing.T) {
	t.Parallel()
	page := readPage(t)
	for _, v := range variants {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			c, env := config(t)
			r, err := run(t.Context(), c, v)
			if err == nil {
				err = r.Check()
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range []string{row(r.Name, "wrong", r.Wrong), row("", "right", r.Right)} {
				if !strings.Contains(page, row+"\n") {
					t.Errorf("the page does not show\n%s", row)
				}
			}
			for _, s := range []*Spin{r.Wrong.Spin, r.Bare} {
				if (s != nil) != r.spins || s != nil && (s.Handled != 0 || s.PerSecond() <= 0 || s.CPU <= 0) {
					t.Errorf("%+v, want nothing handled behind a message that spins", s)
				}
				if s != nil {
					t.Logf("%.0f laps per second", s.PerSecond())
				}
			}
			expectNothingLeft(t, c, env)
		})
	}
}

// row is an outcome as it stands on the page.
func row(program, form string, o Outcome) string {
	return fmt.Sprintf("%-20s %-5s %8s %10s %10s %10s %10s %11s  %s", program, form, toybank.Euros(o.Alice), toybank.Euros(o.Bob),
		toybank.Euros(o.InTransit), toybank.Euros(o.Found()), toybank.Euros(toybank.Expected), Signed(o.Drift()), o.Killed)
}

// Without its fault a wrong form does its work like any other, which is why it gets through a review. The drill must not take that for
// a demonstration.
func TestWithoutTheFaultNothingIsShown(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			c, _ := config(t)
			c.WithoutFault = true
			var said []string
			c.Heard = func(_, line string) { said = append(said, line) }
			wrong, err := (&stage{Config: c, Variant: v}).play(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(said) == 0 || !strings.HasPrefix(said[0], v.Name+": WRONG ON PURPOSE, never copy it") {
				t.Errorf("the wrong form does not begin by saying so: %q", said)
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
	c, env := config(t)
	var later []func(context.Context) error
	c.Later = func(drop func(context.Context) error) { later = append(later, drop) }
	wrong, err := (&stage{Config: c, Variant: v, swapped: true}).play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	right, err := (&stage{Config: c, Variant: v, right: true, swapped: true}).play(t.Context())
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

	// Whoever wants to look at what is left can, until it is dropped.
	if queues := env.Queues(t); len(queues) == 0 || len(later) != 2 {
		t.Errorf("%d queues of %d forms are there to be looked at", len(queues), len(later))
	}
	for _, drop := range later {
		if err := drop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	expectNothingLeft(t, c, env)
}

// Whoever breaks the drill off finds nothing of it afterwards, and can begin again.
func TestBrokenOffDrillLeavesNothing(t *testing.T) {
	t.Parallel()
	c, env := config(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.Say = func(sentence string) {
		if strings.Contains(sentence, "kill -9") {
			cancel()
		}
	}
	if err := Run(ctx, c, Report.Check); !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v, want %v", err, context.Canceled)
	}
	expectNothingLeft(t, c, env)
}

func expectNothingLeft(t *testing.T, c Config, env *testenv.Env) {
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
	for _, q := range env.Queues(t) {
		t.Errorf("the queue %s is left", q.Name)
	}
}

// Whoever comes upon one of these files or programs must not take it for an example.
func TestVariantsSayThatTheyAreWrong(t *testing.T) {
	t.Parallel()
	for _, v := range variants {
		source, err := os.ReadFile(filepath.Join("..", v.Name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"// WRONG ON PURPOSE", "// Command " + v.Name + " is wrong on purpose: ", "// WRONG: "} {
			if !strings.Contains(string(source), want) {
				t.Errorf("%s does not say %q", v.Name, want)
			}
		}
		if lines := strings.Count(string(source), "\n"); lines > 160 {
			t.Errorf("%s has %d lines: too long for one sitting", v.Name, lines)
		}
	}
}
