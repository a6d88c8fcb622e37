package main

import (
	"fmt"
	"os"
	"path/filepath"

	"example.com/banking/internal/newservice"
)

type newServiceCommand struct {
	Name     string   `arg:"" help:"What it is called: 2 to 30 small letters and digits."`
	Consumes []string `default:"transfers.transfer.completed" placeholder:"KEY,…" help:"Routing keys of the events that it consumes."`
	Retry    string   `default:"lap" enum:"in-process,lap,tiered" help:"Where a failed message waits: in-process (as account), lap (as transfer), or tiered."`
	Port     int      `help:"Where it usually listens; default the next that no service has."`
	Module   string   `placeholder:"PATH" help:"Make a module of its own with this path, in a folder of its own, instead of a service of this repository."`
	To       string   `placeholder:"DIR" help:"With --module: the folder; default one of the service's name in the present one."`
	Require  string   `placeholder:"VERSION" help:"With --module: require this version of example.com/banking; default the checkout replaces it."`
}

func (c *newServiceCommand) Run(term *terminal) error {
	if c.Module == "" && (c.To != "" || c.Require != "") {
		return fmt.Errorf("--to and --require belong to --module: a service of this repository has its place in it")
	}
	here, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("find present folder: %w", err)
	}
	o := newservice.Order{
		Name: c.Name, Keys: c.Consumes, Retry: c.Retry, Port: c.Port, Checkout: newservice.Checkout(here),
		Module: c.Module, Dir: c.To, Version: c.Require,
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(here, c.Name)
	}
	rendered, err := newservice.Render(o)
	if err != nil {
		return err
	}
	folder := o.Checkout
	if o.Module != "" {
		folder = o.Dir
	}
	written, err := newservice.Write(folder, rendered)
	if err != nil {
		return err
	}
	for _, path := range written {
		term.printf("  %s\n", path)
	}
	if o.Module != "" {
		term.printf("\n%s is a module in %s. Its README.md says how to test and run it.\n", o.Module, folder)
		return nil
	}
	test := "go test ./services/" + o.Name
	term.printf(`
services/%[1]s is a service. docs/new-service.md explains each file. Next:
  %-[2]*[3]s    its tests, on servers of their own
  %-[2]*[4]s    starts it with the others
`, o.Name, len(test), test, "make up")
	return nil
}
