// Package faulttest has fault points for tests that have no database to keep orders in.
package faulttest

import (
	"context"
	"log/slog"
	"sync/atomic"

	"example.com/banking/pkg/fault"
	"github.com/google/uuid"
)

// counted keeps the count of a fault in memory.
type counted struct{ left atomic.Int64 }

func (c *counted) Take(context.Context, uuid.UUID) (bool, error) { return c.left.Add(-1) >= 0, nil }

func (c *counted) Note(context.Context, uuid.UUID, int64) error { return nil }

// Once makes points with one fault that fires once.
func Once(f fault.Fault) *fault.Points {
	ledger := &counted{}
	ledger.left.Store(1)
	one := int64(1)
	f.Remaining = &one
	points := fault.New(ledger, slog.New(slog.DiscardHandler))
	points.Arm([]fault.Fault{f})
	return points
}
