// Package drill runs the wrong variants of exercise 13: each as a real process, with traffic, killed with kill -9 at the moment at which
// it hurts, started again, and then the money is counted. The corrected form goes through the same.
//
// It believes nothing: a wrong form that was not killed, or that was and has lost nothing, is a failure of the drill.
package drill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/banking/exercises/variants/toybank"
)

// Config says where the drill takes place. Nothing that is there before is touched: it has schemas and queues of its own, which it
// drops at the end.
type Config struct {
	AMQPURL     string // of a user who may declare, delete, read and write queues named drill_…
	DatabaseURL string // of a user who may create schemas in it
	Programs    string // the folder of the built variants, see Programs

	// WithoutFault leaves out what hurts, and nothing else: the test of the drill.
	WithoutFault bool
	// Say tells what is done, a sentence at a time, and Heard what a program has printed, a line at a time. They may be nil.
	Say   func(sentence string)
	Heard func(program, line string)
	// Later is given what drops the schema and queues of each form before they come about, and has it done when nobody wants to look
	// at them any more. Without it they are dropped when the money has been counted.
	Later func(drop func(context.Context) error)
}

func (c *Config) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

func (c *Config) heard(program, line string) {
	if c.Heard != nil {
		c.Heard(program, line)
	}
}

// Outcome is where the money was in the end, and how that came about.
type Outcome struct {
	toybank.Books
	Killed string // the point at which the program was killed; "" when it was not
	Spin   *Spin  // only of a form that spins
}

// Spin is what was measured of a message that comes back at once.
type Spin struct {
	Laps    int           // how often it came back
	Took    time.Duration // for all of them
	CPU     time.Duration // of the program alone: the broker and the database are busy, too
	Behind  int           // messages that waited behind it
	Handled int           // how many of them were handled meanwhile
}

// PerSecond is how often the message came back in a second.
func (s *Spin) PerSecond() float64 { return float64(s.Laps) / s.Took.Seconds() }

// Report is what became of both forms of a variant.
type Report struct {
	Variant
	Wrong, Right Outcome
	// Bare is how fast a message spins that cannot even be read: it costs the broker and the program, and no database. Only of a
	// variant that spins.
	Bare *Spin
}

// ErrNoFault says that nothing went wrong where something should have: then nothing has been shown either.
var ErrNoFault = errors.New("the fault did not happen")

// Check says whether the drill has shown what it is there to show.
func (r Report) Check() error {
	for form, o := range map[string]Outcome{"wrong": r.Wrong, "right": r.Right} {
		if o.Killed == "" {
			return fmt.Errorf("%s: %w: its %s form was not killed", r.Name, ErrNoFault, form)
		}
	}
	switch drift := r.Wrong.Drift(); {
	case drift == 0:
		return fmt.Errorf("%s: %w: its wrong form was killed and the money is all there", r.Name, ErrNoFault)
	case drift != r.AtStake:
		return fmt.Errorf("%s: its wrong form drifts by %s, and not by the %s that were at stake", r.Name, toybank.Euros(drift), toybank.Euros(r.AtStake))
	}
	if drift := r.Right.Drift(); drift != 0 {
		return fmt.Errorf("%s: its right form drifts by %s", r.Name, toybank.Euros(drift))
	}
	return nil
}

// Run runs the variants one after the other and hands each one's report to shown, whose error ends the drill. Two drills with the same servers
// at the same time would spoil each other; what a drill has left behind that was killed is no obstacle.
func Run(ctx context.Context, config Config, shown func(Report) error) error {
	for _, v := range variants {
		config.say("%s %s: exercises/variants/%[1]s/main.go.", v.Name, v.Mistake)
		report, err := run(ctx, config, v)
		if ctx.Err() != nil {
			return fmt.Errorf("%s: broken off: %w", v.Name, ctx.Err()) // whatever that looked like to who was at it
		}
		if err == nil {
			err = shown(report)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run takes both forms of a variant through the same story.
func run(ctx context.Context, config Config, v Variant) (Report, error) {
	report := Report{Variant: v}
	var err error
	if report.Wrong, err = (&stage{Config: config, Variant: v}).play(ctx); err != nil {
		return report, fmt.Errorf("%s, wrong form: %w", v.Name, err)
	}
	if report.Right, err = (&stage{Config: config, Variant: v, right: true}).play(ctx); err != nil {
		return report, fmt.Errorf("%s, right form: %w", v.Name, err)
	}
	if v.spins && !config.WithoutFault {
		config.say("The wrong form once more, with a message that cannot even be read in front.")
		v.traffic = garbage
		bare, err := (&stage{Config: config, Variant: v, bare: true}).play(ctx)
		if err != nil {
			return report, fmt.Errorf("%s, unreadable: %w", v.Name, err)
		}
		report.Bare = bare.Spin
	}
	return report, nil
}

// Signed writes cents as toybank.Euros does, with a sign where there is more than there should be.
func Signed(minor int64) string {
	if minor > 0 {
		return "+" + toybank.Euros(minor)
	}
	return toybank.Euros(minor)
}
