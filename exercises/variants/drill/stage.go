package drill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/banking/exercises/variants/toybank"
)

// stage is one form of one variant, with a bank of its own.
type stage struct {
	Config
	Variant
	right bool
	bare  bool // the scene of Report.Bare
	// swapped runs the other form's program instead: a test of the drill.
	swapped bool
}

const (
	patience = time.Minute // for each step: only a drill that hangs comes near it
	glance   = 20 * time.Millisecond
)

func (s *stage) form() string {
	if s.right {
		return "right"
	}
	return "wrong"
}

func (s *stage) stop() string {
	if s.right {
		return s.rightStop
	}
	return s.wrongStop
}

// play founds the bank, lets the story happen, counts the money and drops the bank.
func (s *stage) play(ctx context.Context) (o Outcome, err error) {
	s.say("The %s form: alice and bob have %s each, alice sends money to bob.", s.form(), toybank.Euros(toybank.Opening))
	at := toybank.Address{AMQPURL: s.AMQPURL, DatabaseURL: s.DatabaseURL, Name: s.name()}
	if s.Later != nil {
		s.Later(func(ctx context.Context) error { return drop(ctx, at) })
	} else {
		defer func() {
			if failed := drop(ctx, at); err == nil {
				err = failed
			}
		}()
	}
	b, err := toybank.Open(ctx, at)
	if err != nil {
		return Outcome{}, err
	}
	defer b.Close()
	if err := b.Reset(ctx); err != nil {
		return Outcome{}, err
	}
	if err := s.traffic(ctx, b, !s.WithoutFault); err != nil {
		return Outcome{}, err
	}
	if s.WithoutFault {
		s.say("Left out: killing it.")
		err = s.quiet(ctx, b)
	} else {
		err = s.killed(ctx, b, &o)
	}
	if err != nil {
		return Outcome{}, err
	}
	if s.meanwhile != nil {
		s.say("Meanwhile alice's account is frozen.")
		if err := s.meanwhile(ctx, b); err != nil {
			return Outcome{}, err
		}
	}
	if o.Spin == nil {
		if err := s.quiet(ctx, b); err != nil {
			return Outcome{}, err
		}
	}
	o.Books, err = b.Sum(ctx)
	s.say("The money is counted: %s expected, %s found.", toybank.Euros(toybank.Expected), toybank.Euros(o.Found()))
	return o, err
}

func (s *stage) name() string {
	if s.bare {
		return "drill_" + s.Name + "_unreadable"
	}
	return "drill_" + s.Name + "_" + s.form()
}

// drop uses connections of its own: those of a drill that was broken off may be in any state.
func drop(ctx context.Context, at toybank.Address) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	b, err := toybank.Open(ctx, at)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Drop(ctx)
}

// killed runs the program to its point and kills it there.
func (s *stage) killed(ctx context.Context, b *toybank.Bank, o *Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := s.start(ctx, s.stop())
	if err != nil {
		return err
	}
	defer p.abandon()
	var first line
	if s.spins {
		if first, err = p.await(ctx, "failure 1:"); err != nil {
			return err
		}
	}
	stopped, err := p.await(ctx, toybank.Stopped+s.stop())
	if err != nil {
		return err
	}
	cpu, err := p.kill(ctx)
	if err != nil {
		return err
	}
	s.say("It is killed there (kill -9), and the broker takes back what it held.")
	waiting, err := s.settle(ctx, b)
	if err != nil {
		return err
	}
	if s.spins && !s.right {
		behind := waiting - 1 // the spinning one is there itself
		o.Spin = &Spin{Laps: laps, Took: stopped.at.Sub(first.at), CPU: cpu, Behind: payments, Handled: payments - behind}
	}
	o.Killed, _, _ = strings.Cut(strings.TrimPrefix(stopped.text, toybank.Stopped), ";")
	return nil
}

// quiet runs the program until it has nothing to do. Nothing is left when the program, asked to end, has ended what it had, and
// the queues and the outbox are empty then.
func (s *stage) quiet(ctx context.Context, b *toybank.Bank) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.say("It is started, and runs until nothing is left to do.")
		p, err := s.start(ctx, "")
		if err != nil {
			return err
		}
		err = s.until(ctx, p, func() (bool, error) {
			messages, _, err := b.Waiting(ctx)
			return messages == 0, err
		})
		if err == nil {
			err = p.stop(ctx)
		}
		p.abandon()
		if err != nil {
			return err
		}
		if waiting, err := s.settle(ctx, b); err != nil || waiting == 0 {
			return err
		}
	}
}

// settle waits until the broker has noticed that the program is gone, and counts the messages: what it held is back then.
func (s *stage) settle(ctx context.Context, b *toybank.Bank) (waiting int, err error) {
	err = s.until(ctx, nil, func() (bool, error) {
		messages, consumers, err := b.Waiting(ctx)
		waiting = messages
		return consumers == 0, err
	})
	return waiting, err
}

// until asks again and again, while the program, if there is one, must not end.
func (s *stage) until(ctx context.Context, p *process, ask func() (bool, error)) error {
	var lines chan line
	if p != nil {
		lines = p.lines
	}
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case l, more := <-lines:
			if !more {
				return errors.New("the variant has ended while there was work")
			}
			s.heard(s.Name, l.text)
		case <-ctx.Done():
			return fmt.Errorf("wait for quiet: %w", ctx.Err())
		}
	}
}
