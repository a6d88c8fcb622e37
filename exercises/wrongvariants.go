package exercises

import (
	"context"
	"fmt"
	"time"

	"example.com/banking/exercises/variants/drill"
	"example.com/banking/exercises/variants/toybank"
)

// wrongVariants runs programs that are wrong on purpose, kills them where that hurts, and counts the money. They have a bank of their
// own beside the real one, whose servers they share and whose tables and queues they never touch.
var wrongVariants = Exercise{
	Number: 13, Name: "wrong-variants", Title: "Wrong variants",
	Question: "Four programs move money correctly as long as nothing happens. One acks and then commits, one remembers in a map what it has handled, one publishes and then commits, one requeues what fails. How much does each lose, or make up, when something does happen?",
	Takes:    15 * time.Second,
	apart:    true,
	play: func(ctx context.Context, r *run) error {
		programs, remove, err := drill.Programs(ctx)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNeeds, err)
		}
		defer remove()
		what := "The schemas and queues of the wrong variants are dropped."
		return drill.Run(ctx, drill.Config{
			AMQPURL: r.AMQPURL, DatabaseURL: r.TransferDatabaseURL, Programs: programs, WithoutFault: r.WithoutFault,
			Say:   func(sentence string) { r.do("%s", sentence) },
			Heard: func(program, line string) { r.saw("", line) },
			Later: func(drop func(context.Context) error) {
				r.onReset(discarding, what, drop)
				what = "" // said once
			},
		}, r.counted)
	},
}

// counted judges a variant: its wrong form must have lost or made up what was at stake, and its corrected form nothing.
func (r *run) counted(v drill.Report) error {
	if v.Wrong.Spin != nil && v.Bare != nil {
		r.saw("", "One message came back again and again, moving money each time, and the good ones behind it waited.", spin(v.Wrong.Spin)...)
		r.saw("", "The same with a message that cannot even be read.", spin(v.Bare)...)
	}
	if err := r.happened(v.Wrong.Killed != "" && v.Wrong.Drift() == v.AtStake,
		fmt.Sprintf("%s %s. Killed, the money does not add up any more.", v.Name, v.Mistake), sum(v.Wrong)...); err != nil {
		return err
	}
	return r.recovered(v.Right.Killed != "" && v.Right.Drift() == 0,
		fmt.Sprintf("The corrected form %s. Killed, it has lost nothing and made up nothing.", v.Moral), sum(v.Right)...)
}

func sum(o drill.Outcome) []Figure {
	return []Figure{figure("alice", toybank.Euros(o.Alice)), figure("bob", toybank.Euros(o.Bob)), figure("in transit", toybank.Euros(o.InTransit)),
		figure("expected", toybank.Euros(toybank.Expected)), figure("found", toybank.Euros(o.Found())), figure("drift", drill.Signed(o.Drift()))}
}

func spin(s *drill.Spin) []Figure {
	return []Figure{figure("laps", s.Laps), figure("per second", fmt.Sprintf("%.0f", s.PerSecond())),
		figure("processor", fmt.Sprintf("%.0f %%", 100*s.CPU.Seconds()/s.Took.Seconds())),
		figure("handled behind it", fmt.Sprintf("%d of %d", s.Handled, s.Behind))}
}
