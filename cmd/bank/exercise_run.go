package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"example.com/banking/exercises"

	pages "example.com/banking/docs/exercises"
)

type exerciseRun struct {
	exerciseNumber
	Yes          bool          `help:"Do not wait for a prediction, nor before things are put back."`
	WithoutFault bool          `aliases:"no-fault" help:"Leave the fault out. The run must then fail: a proof that cannot fail proves nothing."`
	Outage       time.Duration `default:"1m" help:"Exercise 8: how long the database is away."`
	Patience     time.Duration `default:"1m" help:"How long to wait for a proof that the fault has happened."`
}

func (c *exerciseRun) Run(ctx context.Context, to *endpoints, out *output, term *terminal) error {
	e, page, err := c.find()
	if err != nil {
		return err
	}
	ctx, done := signal.NotifyContext(ctx, syscall.SIGHUP) // a terminal that is closed is an interruption
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signal.Ignore(syscall.SIGPIPE) // so is a reader that has gone; it must not end the program before all is put back
	out.Writer = &watchedWriter{to: out.Writer, gone: cancel}
	bank := breakable(to, term.dir)
	bank.WithoutFault, bank.Outage, bank.Patience = c.WithoutFault, c.Outage, c.Patience
	if out.json {
		err := e.Run(ctx, bank, func(event exercises.Event) { _ = out.line(event) }) // a reader that has gone ends the run
		if err != nil {
			return errExercise
		}
		return nil
	}
	t := &teller{out: out, page: page, began: time.Now()}
	if !c.Yes && isatty.IsTerminal(os.Stdin.Fd()) && out.terminal {
		t.keys = bufio.NewReader(os.Stdin)
		bank.BeforeReset = func(ctx context.Context) {
			t.ask(ctx, "Look around as long as you like: nothing has been put back yet. Press Enter to do so.")
		}
	}
	t.introduce(ctx, e)
	err = e.Run(ctx, bank, t.tell)
	t.close(err == nil)
	if err != nil {
		return errExercise
	}
	return nil
}

// watchedWriter tells when nobody reads any more.
type watchedWriter struct {
	to   io.Writer
	gone func()
}

func (w *watchedWriter) Write(text []byte) (int, error) {
	n, err := w.to.Write(text)
	if err != nil {
		w.gone()
	}
	return n, err
}

// teller tells people of a run: the page's words around what really happens.
type teller struct {
	out   *output
	page  pages.Page
	began time.Time
	keys  *bufio.Reader // nil: nobody is there to be asked
}

func (t *teller) introduce(ctx context.Context, e exercises.Exercise) {
	fmt.Fprintf(t.out, "%s\n\n%s\n", t.out.strong(fmt.Sprintf("Exercise %d. %s", e.Number, e.Title)), e.Question)
	t.section("Predict", pages.Predict)
	t.ask(ctx, "Think of an answer, then press Enter.")
	fmt.Fprintln(t.out)
	t.began = time.Now()
}

// ask waits for the Enter key, or for an interruption.
func (t *teller) ask(ctx context.Context, text string) {
	if t.keys == nil {
		return
	}
	fmt.Fprintf(t.out, "\n%s ", t.out.strong(text))
	pressed := make(chan struct{})
	go func() {
		_, _ = t.keys.ReadString('\n') // an end of the input is an answer too
		close(pressed)
	}()
	select {
	case <-pressed:
	case <-ctx.Done():
	}
}

func (t *teller) section(title, name string) {
	fmt.Fprintf(t.out, "\n%s\n%s\n", t.out.strong(title), t.page.Section(name))
}

// tell shows one event on one line, and its figures.
func (t *teller) tell(e exercises.Event) {
	mark := ""
	switch e.Kind {
	case exercises.Begun:
		return // has been asked
	case exercises.Doing:
		mark = "→   "
	case exercises.Saw:
		mark = "see "
	case exercises.Reset:
		mark = "back"
	case exercises.Checked:
		mark = t.out.good("ok  ")
		if !*e.OK {
			mark = t.out.bad("FAIL")
		}
	case exercises.Ended:
		if *e.OK {
			fmt.Fprintf(t.out, "\n%s\n", t.out.good(e.Text))
		} else {
			fmt.Fprintf(t.out, "\n%s\n", t.out.bad(foreign(e.Text)))
		}
		return
	}
	fmt.Fprintf(t.out, "%7.1f s  %s  %s\n", time.Since(t.began).Seconds(), mark, foreign(e.Text))
	if len(e.Figures) > 0 {
		var figures []string
		for _, f := range e.Figures {
			figures = append(figures, f.Name+": "+f.Value)
		}
		fmt.Fprintf(t.out, "                 %s\n", t.out.faint(foreign(strings.Join(figures, " · "))))
	}
	if e.Where != "" {
		fmt.Fprintf(t.out, "                 %s\n", t.out.faint("look: "+foreign(e.Where)))
	}
}

// close says what there was to be seen, and why.
func (t *teller) close(passed bool) {
	if !passed {
		return
	}
	t.section("What you saw, and where", pages.See)
	t.section("Why", pages.Why)
	t.section("How it is repaired", pages.Repair)
	t.section("How it is checked", pages.Check)
	t.section("Interview question", pages.Interview)
}
