package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"example.com/banking/internal/control"
)

// knows refuses settings that the service does not have: a slip in a name would start it as usual, and look as if it had been heeded.
// The service itself says which it has.
func (s *service) knows(ctx context.Context, environment map[string]string) error {
	if len(environment) == 0 {
		return nil
	}
	known := s.settings(ctx)
	if len(known) == 0 { // a program that does not say
		return nil
	}
	for name := range environment {
		// The language's own and those of tracing are in no service's list.
		if !slices.Contains(known, name) && !strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "OTEL_") {
			return fmt.Errorf("%s %w: %s does not know it. It knows %s", name, control.ErrSetting, s.name, strings.Join(known, ", "))
		}
	}
	return nil
}

// settings are the names of the variables in the table that a service prints for --help, without those that the bank decides.
func (s *service) settings(ctx context.Context) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	help := exec.CommandContext(ctx, s.process.Path, "--help")
	help.Env, help.Dir = []string{}, s.process.Dir
	text, err := help.Output()
	if err != nil {
		return nil
	}
	_, table, _ := strings.Cut(string(text), "VARIABLE ")
	for i, line := range strings.Split(table, "\n") {
		name, _, _ := strings.Cut(line, " ")
		switch {
		case i == 0:
		case name == "":
			return names
		case control.Settable(name):
			names = append(names, name)
		}
	}
	return names
}
