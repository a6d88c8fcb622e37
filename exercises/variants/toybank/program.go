package toybank

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Program is one of the wrong variants.
type Program struct {
	Name    string // also of its bank: wrong_ and this
	Mistake string // what it does wrong, as half a sentence
	Cure    string // what it does instead with --right
	// Serve handles messages until the channels of Bank.Consume close. Its context does not end before: what is begun is finished.
	Serve func(ctx context.Context, b *Bank) error
}

// commands is what every variant can be told to do.
type commands struct {
	Name string `env:"TOYBANK" help:"Name of the schema and the queues; by default wrong_ and the program's."`

	Serve  serveCommand  `cmd:"" default:"withargs" help:"Take messages until Ctrl-C: what this program does wrong."`
	Pay    payCommand    `cmd:"" help:"Take money from alice and send it to bob."`
	Ask    askCommand    `cmd:"" help:"Ask for money of alice's to be sent to bob."`
	Freeze freezeCommand `cmd:"" help:"Let alice refuse every debit from now on."`
	Sum    sumCommand    `cmd:"" help:"Count the money, while no program runs."`
	Drop   dropCommand   `cmd:"" help:"Remove the schema and the queues."`
}

type serveCommand struct {
	Right  bool   `help:"Do it right: the same program with the lines that prevent the mistake."`
	StopAt string `env:"STOP_AT" help:"Stop at this point until killed."`
}

type (
	payCommand struct {
		Minor int64 `arg:"" help:"Amount in cents."`
	}
	askCommand struct {
		Minor int64 `arg:"" help:"Amount in cents."`
	}
	freezeCommand struct{}
	sumCommand    struct{}
	dropCommand   struct{}
)

func (c *payCommand) Run(ctx context.Context, b *Bank) error    { return b.Pay(ctx, c.Minor) }
func (c *askCommand) Run(ctx context.Context, b *Bank) error    { return b.Ask(ctx, c.Minor) }
func (c *freezeCommand) Run(ctx context.Context, b *Bank) error { return b.Freeze(ctx, Alice) }
func (c *dropCommand) Run(ctx context.Context, b *Bank) error   { return b.Drop(ctx) }

func (c *sumCommand) Run(ctx context.Context, b *Bank) error {
	books, err := b.Sum(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("alice %s + bob %s + in transit %s = %s; expected %s; drift %s\n", Euros(books.Alice), Euros(books.Bob),
		Euros(books.InTransit), Euros(books.Found()), Euros(Expected), Euros(books.Drift()))
	return nil
}

// Run does the program's work and begins with what it is.
func (c *serveCommand) Run(ctx context.Context, b *Bank, p *Program) error {
	if c.Right {
		fmt.Printf("%s --right: CORRECTED: %s\n", p.Name, p.Cure)
	} else {
		fmt.Printf("%s: WRONG ON PURPOSE, never copy it: %s\n", p.Name, p.Mistake)
	}
	b.Right, b.stopAt = c.Right, c.StopAt
	err := p.Serve(context.WithoutCancel(ctx), b)
	if err == nil && ctx.Err() == nil {
		err = errors.New("the broker has ended the connection")
	}
	return err
}

// Main is the main function of a variant.
func Main(p Program) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	endWithParent()
	if err := run(ctx, p); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p Program) error {
	var cli commands
	parsed := kong.Parse(&cli, kong.Name(p.Name), kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Description("WRONG ON PURPOSE, for exercise 13: "+p.Mistake+". With --right "+p.Cure+".\n\n"+
			"It needs AMQP_URL and TRANSFER_DATABASE_URL in the environment, as they stand in .bank/endpoints.env."))
	if cli.Name == "" {
		cli.Name = "wrong_" + p.Name
	}
	at := Address{AMQPURL: os.Getenv("AMQP_URL"), DatabaseURL: os.Getenv("TRANSFER_DATABASE_URL"), Name: cli.Name}
	if at.AMQPURL == "" || at.DatabaseURL == "" {
		return errors.New("AMQP_URL or TRANSFER_DATABASE_URL is not set: start a bank with 'make up', then: set -a; . .bank/endpoints.env; set +a")
	}
	b, err := Open(ctx, at)
	if err != nil {
		return err
	}
	defer b.Close()
	return parsed.Run(b, &p)
}

// Stopped begins the line that a program prints when it stands still, see Reach.
const Stopped = "stopped at: "

// Reach is a point at which the program can be told, by STOP_AT, to stand still until it is killed. So the kill comes at the worst
// moment every time, and nobody has to be quick.
func (b *Bank) Reach(point string) error {
	if b.stopAt != point {
		return nil
	}
	// The broker answers in order: then it has seen everything that was sent before, an ack for instance. A kill could throw away
	// what is still in a socket, and the message would be saved by luck.
	if _, err := b.Channel.QueueDeclarePassive(b.Queue(Credits), true, false, false, false, nil); err != nil {
		return fmt.Errorf("stop at %s: %w", point, err)
	}
	fmt.Printf("%s%s; it waits for kill -9 %d\n", Stopped, point, os.Getpid())
	<-b.stopping.Done()
	os.Exit(1) // Ctrl-C is as sudden here as a kill: nothing is committed, acked or taken back
	return nil
}

// endWithParent ends the program when its standard input is a pipe that closes: whoever started it with one and is gone, killed
// perhaps, leaves no consumer behind.
func endWithParent() {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
}

// Euros writes cents as people read them: 250000 is "2500.00".
func Euros(minor int64) string {
	sign := ""
	if minor < 0 {
		sign, minor = "-", -minor
	}
	return fmt.Sprintf("%s%d.%02d", sign, minor/100, minor%100)
}
